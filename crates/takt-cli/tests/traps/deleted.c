/* Objects that are deleted while they are bound, attached or shared, and names that come again. */
#include "trap.h"

static void error(const char *what) { printf("%s: %#x\n", what, glGetError()); }

/* Draws what there is; a driver may refuse, but must do so as before. */
static void draw(const char *what) {
    glDrawArrays(GL_TRIANGLES, 0, 3);
    glDrawElements(GL_TRIANGLES, 3, GL_UNSIGNED_BYTE, (const GLubyte[]){0, 1, 2});
    say(what);
}

int main(void) {
    start();
    GLuint name = program(), buffers[2], texture, framebuffer, renderbuffer, array;
    use(name, 0.1f);
    glEnableVertexAttribArray(0);

    /* A buffer that an attribute points to: unbound, but still in the array. */
    glGenBuffers(2, buffers);
    glBindBuffer(GL_ARRAY_BUFFER, buffers[0]);
    glBufferData(GL_ARRAY_BUFFER, sizeof TRIANGLE, TRIANGLE, GL_STATIC_DRAW);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    draw("with a buffer");
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glDisableVertexAttribArray(0);
    glDeleteBuffers(1, buffers);
    glDeleteBuffers(1, buffers);
    draw("its buffer is gone");
    glBindBuffer(GL_ARRAY_BUFFER, buffers[0]);
    glBufferSubData(GL_ARRAY_BUFFER, 0, 8, TRIANGLE);
    error("an old name is an empty buffer");
    glBindBuffer(GL_ARRAY_BUFFER, 0);
    glEnableVertexAttribArray(0);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);

    /* A texture that a framebuffer draws to. */
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, SIZE, SIZE, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    glClear(GL_COLOR_BUFFER_BIT);
    draw("into a texture");
    glDeleteTextures(1, &texture);
    printf("status %#x\n", glCheckFramebufferStatus(GL_FRAMEBUFFER));
    draw("its texture is gone");
    glGenRenderbuffers(1, &renderbuffer);
    glBindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA4, SIZE, SIZE);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, renderbuffer);
    glClear(GL_COLOR_BUFFER_BIT);
    draw("into a renderbuffer");
    glDeleteFramebuffers(1, &framebuffer);
    draw("its framebuffer is gone");
    glDeleteRenderbuffers(1, &renderbuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    draw("an old name is an empty framebuffer");
    glBindFramebuffer(GL_FRAMEBUFFER, 0);

    /* A program that is deleted in use lives on until another one comes. */
    glDeleteProgram(name);
    draw("with a deleted program");
    glUseProgram(0);
    glUseProgram(name);
    error("its name is gone");

    /* A vertex array that is deleted while bound. */
    void (*gen)(GLsizei, GLuint *) = (void *)eglGetProcAddress("glGenVertexArraysOES");
    void (*bind)(GLuint) = (void *)eglGetProcAddress("glBindVertexArrayOES");
    void (*drop)(GLsizei, const GLuint *) = (void *)eglGetProcAddress("glDeleteVertexArraysOES");
    use(program(), 0.3f);
    gen(1, &array);
    bind(array);
    glBindBuffer(GL_ARRAY_BUFFER, buffers[1]);
    glBufferData(GL_ARRAY_BUFFER, sizeof TRIANGLE, TRIANGLE, GL_STATIC_DRAW);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glEnableVertexAttribArray(0);
    draw("with a vertex array");
    drop(1, &array);
    draw("its vertex array is gone");
    bind(array);
    error("its name is gone");

    /* A buffer that is deleted here, and bound there. */
    EGLContext second = new_context(context);
    eglMakeCurrent(display, surface, surface, second);
    use(program(), 0.4f);
    glBindBuffer(GL_ARRAY_BUFFER, buffers[1]);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glEnableVertexAttribArray(0);
    eglMakeCurrent(display, surface, surface, context);
    glDeleteBuffers(1, &buffers[1]);
    eglMakeCurrent(display, surface, surface, second);
    draw("deleted elsewhere");
    /* The surface goes while it is current. */
    printf("destroy %d\n", eglDestroySurface(display, surface));
    draw("its surface is gone");
    return 0;
}
