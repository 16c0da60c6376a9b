/* An app whose frames begin by all kinds of clocks, one after the other. The first argument is its surface (pbuffer,
 * window); each further one is a phase, INTERVAL:MICROSECONDS:FRAMES[:HOW]: the swap interval, how far apart it
 * begins frames (0: at once), how many, and how it waits (sleep, busy). Of each phase it says how far apart the
 * middle ones of its last frames were, and how long they were in their swaps. */
#include "trap.h"
#include <dlfcn.h>
#include <time.h>

#define LAST 20

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void wait_until(int64_t at, int busy) {
    struct timespec until = {at / 1000000000, at % 1000000000};
    if (busy) {
        while (now_ns() < at) {}
    } else {
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
}

/* Xlib is loaded, so that its headers are not needed. */
static void start_window(void) {
    static const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_WINDOW_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT,
                                    EGL_RED_SIZE, 8, EGL_GREEN_SIZE, 8, EGL_BLUE_SIZE, 8, EGL_NONE};
    void *xlib = dlopen("libX11.so.6", RTLD_NOW | RTLD_GLOBAL);
    if (!xlib) exit(98);
    void *(*open_display)(const char *) = (void *)dlsym(xlib, "XOpenDisplay");
    unsigned long (*root)(void *) = (void *)dlsym(xlib, "XDefaultRootWindow");
    unsigned long (*create)(void *, unsigned long, int, int, unsigned, unsigned, unsigned, unsigned long, unsigned long) =
        (void *)dlsym(xlib, "XCreateSimpleWindow");
    int (*map)(void *, unsigned long) = (void *)dlsym(xlib, "XMapWindow");
    int (*sync)(void *, int) = (void *)dlsym(xlib, "XSync");
    void *x11 = open_display(NULL);
    if (!x11) exit(97);
    unsigned long window = create(x11, root(x11), 0, 0, SIZE, SIZE, 0, 0, 0);
    map(x11, window);
    sync(x11, 0);
    EGLint count = 0;
    display = eglGetDisplay((EGLNativeDisplayType)x11);
    if (!eglInitialize(display, NULL, NULL)) die("eglInitialize");
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || !count) die("eglChooseConfig");
    surface = eglCreateWindowSurface(display, config, (EGLNativeWindowType)window, NULL);
    context = new_context(EGL_NO_CONTEXT);
    if (!surface || !eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
}

static int by_size(const void *one, const void *other) {
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static long median_us(int64_t *times) {
    qsort(times, LAST, sizeof *times, by_size);
    return (long)(times[LAST / 2] / 1000);
}

static void phase(const char *text) {
    long interval = 0, us = 0, frames = 0;
    char how[16] = "sleep";
    int64_t apart[LAST] = {0}, swaps[LAST] = {0}, before = now_ns(), next = before;
    if (sscanf(text, "%ld:%ld:%ld:%15s", &interval, &us, &frames, how) < 3) exit(2);
    eglSwapInterval(display, (EGLint)interval);
    for (long frame = 0; frame < frames; frame++) {
        next += us * 1000;
        if (us > 0) wait_until(next, !strcmp(how, "busy"));
        int64_t began = now_ns();
        /* A timer does not catch up. */
        if (began > next) next = began;
        glClear(GL_COLOR_BUFFER_BIT);
        int64_t swap = now_ns();
        eglSwapBuffers(display, surface);
        swaps[frame % LAST] = now_ns() - swap;
        apart[frame % LAST] = began - before;
        before = began;
    }
    printf("%s: %ld us apart, %ld us in swaps\n", text, median_us(apart), median_us(swaps));
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    if (!strcmp(arguments[1], "window")) start_window(); else start();
    for (int at = 2; at < count; at++) phase(arguments[at]);
    return 0;
}
