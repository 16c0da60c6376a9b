/* Nothing is drawn and nothing shown: the GPU only copies. With an argument, just a little. */
#include "trap.h"

#define SIDE 512

int main(int count, char **arguments) {
    static uint8_t texels[SIDE * SIDE * 4];
    const int little = count > 1;
    GLuint texture, buffer;
    start();
    glFinish();
    for (size_t at = 0; at < sizeof texels; at++) texels[at] = (uint8_t)(at * 7);
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    if (!little)
        glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, SIDE, SIDE, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, 4096, NULL, GL_DYNAMIC_DRAW);
    for (int at = 0; at < 30; at++) {
        texels[0] = (uint8_t)at;
        if (little) {
            if (at < 3) glBufferSubData(GL_ARRAY_BUFFER, 0, 64, texels);
        } else {
            glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, texels);
            glCopyTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 0, 0, SIZE / 2, SIZE / 2);
            glGenerateMipmap(GL_TEXTURE_2D);
        }
        glFlush();
    }
    if (!little) {
        GLuint framebuffer;
        glGenFramebuffers(1, &framebuffer);
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    }
    say("copied");
    return 0;
}
