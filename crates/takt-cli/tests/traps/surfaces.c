/* Two windows on X11, one of them current, and pixels that are read elsewhere. */
#include "trap.h"
#include <dlfcn.h>

static void *x11;
static int (*resize)(void *, unsigned long, unsigned, unsigned);
static int (*sync_with)(void *, int);

static void show(const char *what, EGLSurface of) {
    EGLint width = 0, height = 0;
    EGLBoolean done = eglSwapBuffers(display, of);
    EGLint error = eglGetError();
    eglQuerySurface(display, of, EGL_WIDTH, &width);
    eglQuerySurface(display, of, EGL_HEIGHT, &height);
    printf("%s: shown %d, egl error %#x, %dx%d\n", what, done, error, width, height);
}

static void pixel(const char *what, int x, int y) {
    uint8_t found[4] = {9, 9, 9, 9};
    glReadPixels(x, y, 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, found);
    printf("%s: %d %d %d, error %#x\n", what, found[0], found[1], found[2], glGetError());
}

static void size(unsigned long window, unsigned width, unsigned height) {
    resize(x11, window, width, height);
    sync_with(x11, 0);
}

int main(void) {
    static const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_WINDOW_BIT | EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                                    EGL_OPENGL_ES2_BIT, EGL_RED_SIZE, 8, EGL_GREEN_SIZE, 8, EGL_BLUE_SIZE, 8, EGL_NONE};
    void *xlib = dlopen("libX11.so.6", RTLD_NOW | RTLD_GLOBAL);
    if (!xlib) return 98;
    void *(*open_display)(const char *) = (void *)dlsym(xlib, "XOpenDisplay");
    unsigned long (*root)(void *) = (void *)dlsym(xlib, "XDefaultRootWindow");
    unsigned long (*create)(void *, unsigned long, int, int, unsigned, unsigned, unsigned, unsigned long, unsigned long) =
        (void *)dlsym(xlib, "XCreateSimpleWindow");
    int (*map)(void *, unsigned long) = (void *)dlsym(xlib, "XMapWindow");
    resize = (void *)dlsym(xlib, "XResizeWindow");
    sync_with = (void *)dlsym(xlib, "XSync");
    x11 = open_display(NULL);
    if (!x11) return 97;
    EGLint count = 0;
    unsigned long windows[2];
    EGLSurface surfaces[2];
    display = eglGetDisplay((EGLNativeDisplayType)x11);
    if (!eglInitialize(display, NULL, NULL)) die("eglInitialize");
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || !count) die("eglChooseConfig");
    for (int at = 0; at < 2; at++) {
        windows[at] = create(x11, root(x11), 0, 0, 120, 96, 0, 0, 0);
        map(x11, windows[at]);
        surfaces[at] = eglCreateWindowSurface(display, config, (EGLNativeWindowType)windows[at], NULL);
    }
    sync_with(x11, 0);
    context = new_context(EGL_NO_CONTEXT);
    surface = new_surface();
    if (!eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
    glClearColor(1, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    glFinish();

    /* The other window is not current, so it cannot be shown, and stays where it is. */
    if (!eglMakeCurrent(display, surfaces[0], surfaces[0], context)) die("eglMakeCurrent");
    glClearColor(0, 1, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    show("current", surfaces[0]);
    size(windows[1], 40, 30);
    EGLBoolean done = eglSwapBuffers(display, surfaces[1]);
    printf("other: shown %d, egl error %#x\n", done, eglGetError());
    glViewport(0, 0, 120, 96);
    glClear(GL_COLOR_BUFFER_BIT);
    pixel("corner of the current one", 119, 95);

    /* Pixels are read from elsewhere, however large the window becomes. */
    if (!eglMakeCurrent(display, surfaces[0], surface, context)) die("eglMakeCurrent");
    for (unsigned at = 1; at < 4; at++) {
        size(windows[0], 120 + 30 * at, 96 + 20 * at);
        glClear(GL_COLOR_BUFFER_BIT);
        eglSwapBuffers(display, surfaces[0]);
        glClear(GL_COLOR_BUFFER_BIT);
        show("larger", surfaces[0]);
        pixel("what is read", 5, 5);
    }
    return 0;
}
