/* Two contexts in two threads that share objects, contexts that wander, objects deleted in use. */
#include "trap.h"
#include <pthread.h>

static EGLContext second;
static EGLSurface other;
static GLuint shared_program, shared_buffer;

static void *elsewhere(void *nothing) {
    eglBindAPI(EGL_OPENGL_ES_API);
    if (!eglMakeCurrent(display, other, other, second)) die("eglMakeCurrent in a thread");
    glEnableVertexAttribArray(0);
    glBindBuffer(GL_ARRAY_BUFFER, shared_buffer);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glUseProgram(shared_program);
    for (int frame = 0; frame < 500; frame++) {
        glClear(GL_COLOR_BUFFER_BIT);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        if (frame % 50 == 0) glFinish();
    }
    say("thread");
    eglReleaseThread();
    return nothing;
}

int main(void) {
    pthread_t thread;
    start();
    second = new_context(context);
    other = new_surface();
    shared_program = program();
    use(shared_program, 0.3f);
    glGenBuffers(1, &shared_buffer);
    glBindBuffer(GL_ARRAY_BUFFER, shared_buffer);
    glBufferData(GL_ARRAY_BUFFER, sizeof TRIANGLE, TRIANGLE, GL_STATIC_DRAW);
    glFinish();
    pthread_create(&thread, NULL, elsewhere, NULL);
    for (int turn = 0; turn < 500; turn++) {
        GLuint mine;
        glGenBuffers(1, &mine);
        glBindBuffer(GL_ARRAY_BUFFER, mine);
        glBufferData(GL_ARRAY_BUFFER, sizeof TRIANGLE, TRIANGLE, GL_STATIC_DRAW);
        glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
        glEnableVertexAttribArray(0);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        glDeleteBuffers(1, &mine);
        if (turn % 100 == 0) eglSwapBuffers(display, surface);
    }
    pthread_join(thread, NULL);
    printf("error %#x\n", glGetError());
    glDeleteBuffers(1, &shared_buffer);
    /* Current in no thread, then again here; destroyed while current. */
    printf("none %d\n", eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT));
    glDrawArrays(GL_TRIANGLES, 0, 3);
    printf("second %d\n", eglMakeCurrent(display, other, other, second));
    printf("destroy %d\n", eglDestroyContext(display, second));
    glClear(GL_COLOR_BUFFER_BIT);
    say("destroyed but current");
    printf("first %d\n", eglMakeCurrent(display, surface, surface, context));
    glClear(GL_COLOR_BUFFER_BIT);
    say("first");
    printf("without surface %d\n", eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context));
    return 0;
}
