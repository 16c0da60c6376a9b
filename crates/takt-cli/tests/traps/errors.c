/* Calls that are wrong must stay wrong in the same way. */
#include "trap.h"

static void error(const char *what) { printf("%s: %#x\n", what, glGetError()); }

int main(void) {
    start();
    GLuint name = program(), buffer, texture;
    glDrawArrays(GL_TRIANGLES, 0, 3); error("draw without program");
    use(name, 0);
    glDrawArrays(77, 0, 3); error("mode");
    glDrawArrays(GL_TRIANGLES, -1, 3); error("first");
    glDrawArrays(GL_TRIANGLES, 0, -3); error("count");
    glDrawElements(GL_TRIANGLES, 3, 77, TRIANGLE); error("index type");
    glBindBuffer(77, 1); error("buffer target");
    glBufferData(GL_ARRAY_BUFFER, 8, TRIANGLE, GL_STATIC_DRAW); error("data without buffer");
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, -8, TRIANGLE, GL_STATIC_DRAW); error("negative size");
    glBufferData(GL_ARRAY_BUFFER, sizeof TRIANGLE, TRIANGLE, GL_STATIC_DRAW); error("data");
    glBufferSubData(GL_ARRAY_BUFFER, 20, 400, TRIANGLE); error("beyond the end");
    glVertexAttribPointer(99, 2, GL_FLOAT, GL_FALSE, 0, NULL); error("attribute");
    glVertexAttribPointer(0, 7, GL_FLOAT, GL_FALSE, 0, NULL); error("components");
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL); error("pointer");
    glEnableVertexAttribArray(0);
    glUniform4f(12345, 1, 2, 3, 4); error("location");
    glUniform1i(glGetUniformLocation(name, "colour"), 3); error("type");
    glUniformMatrix4fv(-1, 1, GL_FALSE, NULL); error("no location, no data");
    glViewport(0, 0, -1, 5); error("viewport");
    glBindTexture(77, 1); error("texture target");
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, -1, 4, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL); error("width");
    glTexImage2D(GL_TEXTURE_2D, 99, GL_RGBA, 4, 4, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL); error("level");
    glUseProgram(4711); error("program");
    glLinkProgram(4711); error("link");
    glShaderSource(4711, 1, (const char *const[]){"x"}, NULL); error("source");
    glAttachShader(name, 4711); error("attach");
    glDeleteBuffers(-1, NULL); error("delete");
    glEnable(77); error("enable");
    glClear(0xffffffffu); error("clear");
    /* Deleted but bound: the draw still works, or fails as before. */
    glDeleteBuffers(1, &buffer); error("delete what is bound");
    printf("is buffer %d\n", glIsBuffer(buffer));
    glDisableVertexAttribArray(0);
    glDeleteProgram(name); error("delete what is in use");
    glDrawArrays(GL_TRIANGLES, 0, 3); error("draw with a deleted program");
    glDeleteTextures(1, &texture); error("delete texture");
    glDrawArrays(GL_TRIANGLES, 0, 0x7fffffff / 1024); error("many vertices");
    /* An EGL error must survive our own calls to EGL. */
    printf("query %d\n", eglQuerySurface(display, surface, 77, &(EGLint){0}));
    glClear(GL_COLOR_BUFFER_BIT);
    glFlush();
    printf("egl error %#x\n", eglGetError());
    printf("query %d\n", eglQuerySurface(display, surface, EGL_WIDTH, &(EGLint){0}));
    glClear(GL_COLOR_BUFFER_BIT);
    glFlush();
    printf("egl error %#x, again %#x\n", eglGetError(), eglGetError());
    printf("make current %d, error %#x\n", eglMakeCurrent(display, (EGLSurface)77, (EGLSurface)77, context), eglGetError());
    say("end");
    return 0;
}
