/* Blits from one texture to another until its input ends. Says when it has begun. */
#include "trap.h"
#include <GLES3/gl3.h>
#include <poll.h>

#define SIDE 512

int main(void) {
    struct pollfd input = {0, POLLIN, 0};
    GLuint targets[2], textures[2];
    int begun = 0;
    start();
    glGenTextures(2, textures);
    glGenFramebuffers(2, targets);
    for (int at = 0; at < 2; at++) {
        glBindTexture(GL_TEXTURE_2D, textures[at]);
        glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, SIDE, SIDE);
        glBindFramebuffer(at ? GL_DRAW_FRAMEBUFFER : GL_READ_FRAMEBUFFER, targets[at]);
        glFramebufferTexture2D(at ? GL_DRAW_FRAMEBUFFER : GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D,
                               textures[at], 0);
    }
    while (!poll(&input, 1, 0)) {
        glBlitFramebuffer(0, 0, SIDE, SIDE, 0, 0, SIDE, SIDE, GL_COLOR_BUFFER_BIT, GL_NEAREST);
        glFinish();
        if (!begun++) fprintf(stderr, "it blits\n");
    }
    printf("error %#x\n", glGetError());
    return 0;
}
