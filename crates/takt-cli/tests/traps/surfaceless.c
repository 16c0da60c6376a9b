/* A compositor without a surface: it draws to framebuffers of its own in turns, and hands each over in one of the ways
 * that compositors and video pipelines have. Arguments: how it does so (flush; fence, waited for by another thread;
 * image, a new one of each frame), how many microseconds apart it begins frames (0: at once), how many frames (0: until
 * it is killed), and how many times it draws over each. */
#include "trap.h"
#include <GLES3/gl3.h>
#include <pthread.h>
#include <time.h>

#define BUFFERS 3

static GLuint textures[BUFFERS], framebuffers[BUFFERS];
static EGLContext waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static GLsync fence;
static int over;

static void start_surfaceless(void) {
    static const EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_NONE};
    static const EGLint version[] = {EGL_CONTEXT_CLIENT_VERSION, 3, EGL_NONE};
    EGLint count = 0;
    display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    if (!display || !eglInitialize(display, NULL, NULL)) die("eglInitialize");
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || !count) die("eglChooseConfig");
    context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
    waiting = eglCreateContext(display, config, context, version);
    if (!context || !waiting) die("eglCreateContext");
    if (!eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context)) die("eglMakeCurrent");
    glGenTextures(BUFFERS, textures);
    glGenFramebuffers(BUFFERS, framebuffers);
    for (int at = 0; at < BUFFERS; at++) {
        glBindTexture(GL_TEXTURE_2D, textures[at]);
        glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, SIZE, SIZE);
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffers[at]);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, textures[at], 0);
        /* Those that clients draw to are made once, at the start. */
        if (!eglCreateImage(display, context, EGL_GL_TEXTURE_2D, (EGLClientBuffer)(uintptr_t)textures[at], NULL))
            die("eglCreateImage");
    }
    glViewport(0, 0, SIZE, SIZE);
}

/* Waits for fences of the other thread, and draws nothing. */
static void *waits(void *nothing) {
    if (!eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, waiting)) die("eglMakeCurrent");
    pthread_mutex_lock(&lock);
    while (!over) {
        if (!fence) {
            pthread_cond_wait(&news, &lock);
            continue;
        }
        GLsync mine = fence;
        fence = NULL;
        pthread_mutex_unlock(&lock);
        glClientWaitSync(mine, 0, 1000000000);
        glDeleteSync(mine);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    return nothing;
}

static void hand_over(const char *how, GLuint texture) {
    if (!strcmp(how, "flush")) {
        glFlush();
    } else if (!strcmp(how, "image")) {
        EGLImage image =
            eglCreateImage(display, context, EGL_GL_TEXTURE_2D, (EGLClientBuffer)(uintptr_t)texture, NULL);
        if (!image) die("eglCreateImage");
        eglDestroyImage(display, image);
    } else {
        GLsync made = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
        glFlush();
        pthread_mutex_lock(&lock);
        if (fence) glDeleteSync(fence);
        fence = made;
        pthread_cond_signal(&news);
        pthread_mutex_unlock(&lock);
    }
}

int main(int count, char **arguments) {
    if (count < 5) return 2;
    long us = atol(arguments[2]), frames = atol(arguments[3]), times = atol(arguments[4]);
    struct timespec next;
    pthread_t thread;
    start_surfaceless();
    GLuint drawn = program();
    use(drawn, 0.1f);
    glEnableVertexAttribArray(0);
    GLuint buffer = 0;
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, sizeof TRIANGLE, TRIANGLE, GL_STATIC_DRAW);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    if (pthread_create(&thread, NULL, waits, NULL)) return 3;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long frame = 0; frames == 0 || frame < frames; frame++) {
        if (us > 0) {
            next.tv_nsec += us * 1000;
            next.tv_sec += next.tv_nsec / 1000000000;
            next.tv_nsec %= 1000000000;
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        }
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffers[frame % BUFFERS]);
        glClear(GL_COLOR_BUFFER_BIT);
        for (long time = 0; time < times; time++) glDrawArrays(GL_TRIANGLES, 0, 3);
        hand_over(arguments[1], textures[frame % BUFFERS]);
    }
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    say("done");
    return 0;
}
