/* A window on X11 that changes its size; Xlib is loaded, so that its headers are not needed. */
#include "trap.h"
#include <dlfcn.h>

int main(void) {
    static const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_WINDOW_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT,
                                    EGL_RED_SIZE, 8, EGL_GREEN_SIZE, 8, EGL_BLUE_SIZE, 8, EGL_NONE};
    void *xlib = dlopen("libX11.so.6", RTLD_NOW | RTLD_GLOBAL);
    if (!xlib) return 98;
    void *(*open_display)(const char *) = (void *)dlsym(xlib, "XOpenDisplay");
    unsigned long (*root)(void *) = (void *)dlsym(xlib, "XDefaultRootWindow");
    unsigned long (*create)(void *, unsigned long, int, int, unsigned, unsigned, unsigned, unsigned long, unsigned long) =
        (void *)dlsym(xlib, "XCreateSimpleWindow");
    int (*map)(void *, unsigned long) = (void *)dlsym(xlib, "XMapWindow");
    int (*resize)(void *, unsigned long, unsigned, unsigned) = (void *)dlsym(xlib, "XResizeWindow");
    int (*sync)(void *, int) = (void *)dlsym(xlib, "XSync");
    void *x11 = open_display(NULL);
    if (!x11) return 97;
    unsigned long window = create(x11, root(x11), 0, 0, 120, 96, 0, 0, 0);
    map(x11, window);
    sync(x11, 0);
    EGLint count = 0, type = 0;
    display = eglGetDisplay((EGLNativeDisplayType)x11);
    if (!eglInitialize(display, NULL, NULL)) die("eglInitialize");
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || !count) die("eglChooseConfig");
    eglGetConfigAttrib(display, config, EGL_SURFACE_TYPE, &type);
    printf("windows %d\n", (type & EGL_WINDOW_BIT) != 0);
    surface = eglCreateWindowSurface(display, config, (EGLNativeWindowType)window, NULL);
    context = new_context(EGL_NO_CONTEXT);
    if (!surface || !eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
    for (int at = 0; at < 3; at++) {
        EGLint width = 0, height = 0;
        resize(x11, window, 120u + 40u * (unsigned)at, 96u + 10u * (unsigned)at);
        sync(x11, 0);
        for (int swap = 0; swap < 2; swap++) {
            glClear(GL_COLOR_BUFFER_BIT);
            eglSwapBuffers(display, surface);
        }
        eglQuerySurface(display, surface, EGL_WIDTH, &width);
        eglQuerySurface(display, surface, EGL_HEIGHT, &height);
        glViewport(0, 0, width, height);
        glClearColor(0.2f * (float)at, 1, 0, 1);
        glClear(GL_COLOR_BUFFER_BIT);
        uint8_t pixel[4] = {0};
        glReadPixels(width - 1, height - 1, 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, pixel);
        printf("size %d %d, corner %d %d %d, error %#x\n", width, height, pixel[0], pixel[1], pixel[2], glGetError());
    }
    printf("current %d\n", eglGetCurrentContext() == context);
    eglMakeCurrent(display, NULL, NULL, NULL);
    printf("destroy %d\n", eglDestroySurface(display, surface));
    return 0;
}
