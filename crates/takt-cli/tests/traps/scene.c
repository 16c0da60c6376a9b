/* A deterministic scene that uses much of what is shadowed. */
#include "trap.h"

int main(void) {
    start();
    printf("renderer %s\n", (const char *)glGetString(GL_RENDERER));
    GLuint name = program(), buffers[2], texture, framebuffer;
    const GLfloat quad[] = {-0.5f, -0.5f, 0.5f, -0.5f, -0.5f, 0.5f, 0.5f, 0.5f};
    const GLushort strip[] = {0, 1, 2, 3};
    glGenBuffers(2, buffers);
    glBindBuffer(GL_ARRAY_BUFFER, buffers[0]);
    glBufferData(GL_ARRAY_BUFFER, sizeof quad, NULL, GL_STATIC_DRAW);
    glBufferSubData(GL_ARRAY_BUFFER, 0, sizeof quad, quad);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, buffers[1]);
    glBufferData(GL_ELEMENT_ARRAY_BUFFER, sizeof strip, strip, GL_STATIC_DRAW);
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 64, 64, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glGenFramebuffers(1, &framebuffer);
    glEnableVertexAttribArray(0);
    for (int frame = 0; frame < 20; frame++) {
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
        glViewport(0, 0, 64, 64);
        glClearColor(0.1f * (frame % 10), 0, 0, 1);
        glClear(GL_COLOR_BUFFER_BIT);
        glBindFramebuffer(GL_FRAMEBUFFER, 0);
        glViewport(0, 0, SIZE, SIZE);
        glClearColor(0, 0, 0.2f, 1);
        glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
        use(name, 0.05f * frame);
        glBindBuffer(GL_ARRAY_BUFFER, buffers[0]);
        glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
        if (frame % 2) { glEnable(GL_BLEND); glBlendFunc(GL_ONE, GL_ONE); } else glDisable(GL_BLEND);
        glDrawElements(GL_TRIANGLE_STRIP, 4, GL_UNSIGNED_SHORT, NULL);
        glBindBuffer(GL_ARRAY_BUFFER, 0);
        glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
        glEnable(GL_SCISSOR_TEST);
        glScissor(frame, frame, SIZE / 2, SIZE / 2);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        glDisable(GL_SCISSOR_TEST);
        if (frame % 5 == 0) glFlush();
        if (frame % 7 == 0) glFinish();
        say("frame");
        printf("swap %d\n", eglSwapBuffers(display, surface));
    }
    eglMakeCurrent(display, NULL, NULL, NULL);
    printf("terminate %d\n", eglTerminate(display));
    return 3;
}
