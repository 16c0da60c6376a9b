/* Every way in which a program can wait: for the GPU, for a surface, for another thread of its own.
 * Under a daemon, the waiting context may have a grant, and the one it waits for none. */
#include "trap.h"
#include <GLES3/gl32.h>
#include <pthread.h>

#define FRAMES 8

/* Uniforms are the program's, so threads that shared one would draw with each other's. */
static _Thread_local GLuint linked;

static void draw(int count) {
    if (!linked) linked = program();
    use(linked, 0.1f * (float)count);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
    glEnableVertexAttribArray(0);
    for (int at = 0; at < count; at++) glDrawArrays(GL_TRIANGLES, 0, 3);
}

static void gpu(const char *how) {
    GLuint buffer = 0;
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
    glBufferData(GL_PIXEL_PACK_BUFFER, SIZE * SIZE * 4, NULL, GL_STREAM_READ);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    for (int frame = 0; frame < FRAMES; frame++) {
        draw(3);
        if (!strcmp(how, "finish")) {
            glFinish();
        } else if (!strcmp(how, "client-wait")) {
            GLsync sync = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
            GLenum end = glClientWaitSync(sync, GL_SYNC_FLUSH_COMMANDS_BIT, ~0ull);
            if (end == GL_TIMEOUT_EXPIRED || end == GL_WAIT_FAILED) printf("waited in vain: %#x\n", end);
            glDeleteSync(sync);
        } else if (!strcmp(how, "wait")) {
            GLsync sync = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
            glFlush();
            glWaitSync(sync, 0, GL_TIMEOUT_IGNORED);
            draw(1);
            glDeleteSync(sync);
        } else if (!strcmp(how, "egl-client-wait")) {
            EGLSync sync = eglCreateSync(display, EGL_SYNC_FENCE, NULL);
            EGLint end = eglClientWaitSync(display, sync, EGL_SYNC_FLUSH_COMMANDS_BIT, EGL_FOREVER);
            if (end != EGL_CONDITION_SATISFIED) printf("waited in vain: %#x\n", end);
            eglDestroySync(display, sync);
        } else if (!strcmp(how, "map")) {
            glBindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
            glReadPixels(0, 0, SIZE, SIZE, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
            const uint8_t *pixels = glMapBufferRange(GL_PIXEL_PACK_BUFFER, 0, SIZE * SIZE * 4, GL_MAP_READ_BIT);
            printf("mapped %d\n", pixels ? pixels[(SIZE / 2 * SIZE + SIZE / 2) * 4] : -1);
            glUnmapBuffer(GL_PIXEL_PACK_BUFFER);
            glBindBuffer(GL_PIXEL_PACK_BUFFER, 0);
        } else if (!strcmp(how, "swap")) {
            if (!eglSwapBuffers(display, surface)) die("eglSwapBuffers");
            draw(1);
        }
        say(how);
    }
}

/* Two contexts take turns in one thread, and leave work behind at each turn. */
static void turns(void) {
    EGLContext other = new_context(context);
    EGLSurface else_where = new_surface();
    if (!eglMakeCurrent(display, else_where, else_where, other)) die("eglMakeCurrent");
    glClear(GL_COLOR_BUFFER_BIT);
    if (!eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
    for (int frame = 0; frame < FRAMES; frame++) {
        draw(2);
        if (!eglMakeCurrent(display, else_where, else_where, other)) die("eglMakeCurrent");
        draw(2);
        say("other");
        if (!eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
        say("first");
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static int step;
static GLsync made;
static GLuint texture, picture;
static EGLContext contexts[4];
static EGLSurface surfaces[4];

static void await(int wanted) {
    pthread_mutex_lock(&lock);
    while (step < wanted) pthread_cond_wait(&news, &lock);
    pthread_mutex_unlock(&lock);
}

static void reach(int next) {
    pthread_mutex_lock(&lock);
    step = next;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
}

/* Makes a picture per frame in a texture; the context that shows it waits for it by a fence. */
static void *produce(void *unused) {
    (void)unused;
    if (!eglMakeCurrent(display, surfaces[1], surfaces[1], contexts[1])) die("eglMakeCurrent");
    glGenFramebuffers(1, &picture);
    glBindFramebuffer(GL_FRAMEBUFFER, picture);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    for (int frame = 0; frame < FRAMES; frame++) {
        await(2 * frame);
        glClearColor(0.1f * (float)frame, 0.2f, 0.3f, 1.0f);
        glClear(GL_COLOR_BUFFER_BIT);
        draw(frame);
        made = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
        glFlush();
        reach(2 * frame + 1);
    }
    eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    return NULL;
}

static void shared(void) {
    pthread_t thread;
    GLuint source = 0;
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, SIZE, SIZE);
    glFinish();
    contexts[1] = new_context(context);
    surfaces[1] = new_surface();
    glGenFramebuffers(1, &source);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, source);
    glFramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    pthread_create(&thread, NULL, produce, NULL);
    for (int frame = 0; frame < FRAMES; frame++) {
        /* Work of our own that has begun, and is not handed over while we wait. */
        glBindFramebuffer(GL_READ_FRAMEBUFFER, 0);
        draw(1);
        await(2 * frame + 1);
        glWaitSync(made, 0, GL_TIMEOUT_IGNORED);
        glBindFramebuffer(GL_READ_FRAMEBUFFER, source);
        glBlitFramebuffer(0, 0, SIZE, SIZE, 0, 0, SIZE, SIZE, GL_COLOR_BUFFER_BIT, GL_NEAREST);
        glBindFramebuffer(GL_READ_FRAMEBUFFER, 0);
        glDeleteSync(made);
        say("shown");
        reach(2 * frame + 2);
    }
    pthread_join(thread, NULL);
}

/* Some begin work and stop in the middle of it, until the last one is through with its own. */
static void *hold(void *which) {
    intptr_t at = (intptr_t)which;
    if (!eglMakeCurrent(display, surfaces[at], surfaces[at], contexts[at])) die("eglMakeCurrent");
    glClear(GL_COLOR_BUFFER_BIT);
    for (int frame = 0; frame < FRAMES; frame++) {
        await(4 * frame + (int)at - 1);
        draw(1);
        reach(4 * frame + (int)at);
        await(4 * frame + 4);
        draw(1);
        glFinish();
    }
    eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    return NULL;
}

static void held(void) {
    pthread_t threads[4];
    for (intptr_t at = 1; at < 4; at++) {
        contexts[at] = new_context(context);
        surfaces[at] = new_surface();
        pthread_create(&threads[at], NULL, hold, (void *)at);
    }
    for (int frame = 0; frame < FRAMES; frame++) {
        await(4 * frame + 3);
        draw(2);
        say("held");
        reach(4 * frame + 4);
    }
    for (int at = 1; at < 4; at++) pthread_join(threads[at], NULL);
}

/* A context goes from thread to thread, with work that has begun. */
static void *carry(void *which) {
    int at = (int)(intptr_t)which;
    for (int frame = 0; frame < FRAMES; frame++) {
        await(2 * frame + at);
        if (!eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
        draw(2);
        if (at) say("carried");
        eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        reach(2 * frame + at + 1);
    }
    return NULL;
}

static void carried(void) {
    pthread_t threads[2];
    eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    for (intptr_t at = 0; at < 2; at++) pthread_create(&threads[at], NULL, carry, (void *)at);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    if (!eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "finish";
    start();
    if (!strcmp(how, "turns")) turns();
    else if (!strcmp(how, "shared")) shared();
    else if (!strcmp(how, "held")) held();
    else if (!strcmp(how, "carried")) carried();
    else gpu(how);
    say("end");
    return 0;
}
