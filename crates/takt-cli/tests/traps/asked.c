/* Work that few programs give the GPU in this way, as often as would matter to others. The argument says which. */
#include "trap.h"
#include <GLES3/gl32.h>
#include <unistd.h>

#define SIDE 1024
#define ROUNDS 5

static uint8_t texels[SIDE * SIDE * 4];

/* Draws, and hands that over long after the grant for it has come. */
static void late(useconds_t us) {
    GLuint made = program_of(PLAIN, "precision highp float; uniform vec4 colour; void main() { float a = gl_FragCoord.x;"
                                    "for (int i = 0; i < 100; i++) a = sin(a * 0.9) + 0.7 * sin(a - gl_FragCoord.y);"
                                    "gl_FragColor = colour * vec4(a, a, 1.0, 1.0); }");
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
    glEnableVertexAttribArray(0);
    for (int round = 0; round < ROUNDS; round++) {
        use(made, 0.1f * (float)round);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        usleep(us);
        glFlush();
    }
    say("late");
}

static void little_reads(void) {
    uint8_t pixels[4 * 4 * 4];
    unsigned sum = 0;
    glClearColor(0.25f, 0.5f, 0.75f, 1.0f);
    glClear(GL_COLOR_BUFFER_BIT);
    for (int round = 0; round < 20 * ROUNDS; round++) {
        glReadPixels(round % 8, 3, 4, 4, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
        for (size_t at = 0; at < sizeof pixels; at++) sum = sum * 31 + pixels[at];
    }
    printf("sum %u, error %#x\n", sum, glGetError());
}

/* Texels that come from the beginning of a buffer. */
static void from_buffer(void) {
    GLuint buffer = 0, texture = 0, reader = 0;
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer);
    glBufferData(GL_PIXEL_UNPACK_BUFFER, sizeof texels, texels, GL_STREAM_DRAW);
    glGenFramebuffers(1, &reader);
    for (int round = 0; round < ROUNDS; round++) {
        glGenTextures(1, &texture);
        glBindTexture(GL_TEXTURE_2D, texture);
        glFinish();
        glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, SIDE, SIDE, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
        glBindFramebuffer(GL_FRAMEBUFFER, reader);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
        say("from buffer");
        glBindFramebuffer(GL_FRAMEBUFFER, 0);
        glDeleteTextures(1, &texture);
    }
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    for (size_t at = 0; at < sizeof texels; at++) texels[at] = (uint8_t)(at * 7 + at / 4099);
    start();
    if (!strcmp(what, "late")) late(60000);
    else if (!strcmp(what, "too-late")) late(250000);
    else if (!strcmp(what, "little-reads")) little_reads();
    else if (!strcmp(what, "from-buffer")) from_buffer();
    else return 2;
    return 0;
}
