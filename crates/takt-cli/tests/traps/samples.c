/* Draws on targets with several samples per pixel, long enough to be cut: every sample must be what it is uncut. */
#include "trap.h"
#include <GLES3/gl32.h>

#define ROUNDS 3
#define WIDTH 100
#define HEIGHT 84
#define VERTICES 180

static const char *VERTEX =
    "#version 300 es\n"
    "in vec4 at; out vec2 p; flat out float kind;"
    "void main() { p = at.zw * 2.0; kind = float(gl_VertexID % 5) / 5.0; gl_PointSize = 7.0;"
    "gl_Position = vec4(at.xy, at.z * 0.5, 1.0); }";
static const char *FRAGMENT =
    "#version 300 es\n"
    "precision highp float; in vec2 p; flat in float kind; out vec4 colour;"
    "void main() { float a = kind;"
    "for (int i = 0; i < 400; i++) { a = sin(a * 0.9 + p.x) + 0.7 * sin(a - p.y * 1.3); }"
    "colour = vec4(0.5 + 0.5 * sin(a + vec3(0.0, 1.2, 2.4)), 0.4); }";
static const char *WHOLE =
    "#version 310 es\nvoid main() { gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0, 0.0, 1.0); }";
static const char *SAMPLE =
    "#version 310 es\nprecision highp float; uniform highp sampler2DMS image; uniform int number; out vec4 colour;"
    "void main() { colour = texelFetch(image, ivec2(gl_FragCoord.xy), number); }";

static GLfloat vertices[VERTICES * 4];
static GLuint main_program, sample_program, plain, target;

static GLuint linked(const char *vertex, const char *fragment) {
    GLuint made = glCreateProgram();
    GLint status = 0;
    glAttachShader(made, shader(GL_VERTEX_SHADER, vertex));
    glAttachShader(made, shader(GL_FRAGMENT_SHADER, fragment));
    glBindAttribLocation(made, 0, "at");
    glLinkProgram(made);
    glGetProgramiv(made, GL_LINK_STATUS, &status);
    if (!status) die("linking");
    return made;
}

/* The first six cover everything, the others lie all over the place. */
static void scatter(void) {
    static const GLfloat quad[6][2] = {{-1, -1}, {1, -1}, {-1, 1}, {-1, 1}, {1, -1}, {1, 1}};
    uint32_t seed = 11;
    for (int at = 0; at < VERTICES * 4; at++) {
        seed = seed * 1664525u + 1013904223u;
        vertices[at] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    for (int at = 0; at < 6; at++) {
        vertices[at * 4] = quad[at][0] * 0.93f;
        vertices[at * 4 + 1] = quad[at][1] * 0.87f;
    }
}

static void read_hash(const char *what, int number) {
    static uint8_t pixels[WIDTH * HEIGHT * 4];
    uint64_t hash = 0;
    glReadPixels(0, 0, WIDTH, HEIGHT, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    for (size_t at = 0; at < sizeof pixels; at++) hash = hash * 1099511628211u + pixels[at];
    printf("%s %d: %016llx, error %#x\n", what, number, (unsigned long long)hash, glGetError());
}

/* Each sample of a texture, and the mean of a render buffer. */
static void tell(const char *what, GLuint texture, GLint samples) {
    glDisable(GL_BLEND);
    if (!texture) {
        glBindFramebuffer(GL_READ_FRAMEBUFFER, target);
        glBindFramebuffer(GL_DRAW_FRAMEBUFFER, plain);
        glBlitFramebuffer(0, 0, WIDTH, HEIGHT, 0, 0, WIDTH, HEIGHT, GL_COLOR_BUFFER_BIT, GL_NEAREST);
        glBindFramebuffer(GL_FRAMEBUFFER, plain);
        read_hash(what, -1);
        return;
    }
    glBindFramebuffer(GL_FRAMEBUFFER, plain);
    glUseProgram(sample_program);
    glBindTexture(GL_TEXTURE_2D_MULTISAMPLE, texture);
    glDisableVertexAttribArray(0);
    for (GLint number = 0; number < samples; number++) {
        glUniform1i(glGetUniformLocation(sample_program, "number"), number);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        read_hash(what, number);
    }
    glEnableVertexAttribArray(0);
}

static void shapes(const char *kind, GLuint texture, GLint samples) {
    static const struct { GLenum mode; GLint first; GLsizei count; GLfloat width; const char *name; } all[] = {
        {GL_TRIANGLES, 0, 6, 1, "quad"}, {GL_TRIANGLES, 0, 180, 1, "triangles"}, {GL_LINES, 6, 174, 1, "lines"},
        {GL_LINES, 6, 174, 5, "wide lines"}, {GL_POINTS, 0, 180, 1, "points"}, {GL_TRIANGLE_FAN, 6, 60, 1, "fan"}};
    char text[64];
    for (size_t at = 0; at < sizeof all / sizeof *all * 2; at++) {
        for (int round = 0; round < ROUNDS; round++) {
            glBindFramebuffer(GL_FRAMEBUFFER, target);
            glViewport(0, 0, WIDTH, HEIGHT);
            glUseProgram(main_program);
            glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
            if (at % 2) glEnable(GL_BLEND);
            glBlendFunc(GL_SRC_ALPHA, GL_ONE);
            glLineWidth(all[at / 2].width);
            glDrawArrays(all[at / 2].mode, all[at / 2].first, all[at / 2].count);
            snprintf(text, sizeof text, "%s, %s%s", kind, all[at / 2].name, at % 2 ? " blended" : "");
            tell(text, texture, samples);
        }
    }
}

int main(void) {
    GLuint texture = 0, buffer = 0, result = 0;
    GLint samples = 4;
    start();
    scatter();
    glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, 0, vertices);
    glEnableVertexAttribArray(0);
    main_program = linked(VERTEX, FRAGMENT);
    sample_program = linked(WHOLE, SAMPLE);
    glGenTextures(1, &result);
    glBindTexture(GL_TEXTURE_2D, result);
    glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, WIDTH, HEIGHT);
    glGenFramebuffers(1, &plain);
    glBindFramebuffer(GL_FRAMEBUFFER, plain);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, result, 0);
    glGenFramebuffers(1, &target);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D_MULTISAMPLE, texture);
    glTexStorage2DMultisample(GL_TEXTURE_2D_MULTISAMPLE, samples, GL_RGBA8, WIDTH, HEIGHT, GL_TRUE);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D_MULTISAMPLE, texture, 0);
    shapes("texture", texture, samples);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glGenRenderbuffers(1, &buffer);
    glBindRenderbuffer(GL_RENDERBUFFER, buffer);
    glRenderbufferStorageMultisample(GL_RENDERBUFFER, samples, GL_RGBA8, WIDTH, HEIGHT);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, buffer);
    shapes("render buffer", 0, samples);
    return 0;
}
