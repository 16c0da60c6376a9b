/* Several drivers in one process: a context of each, in turns in one thread, then in a thread each. */
#include "trap.h"
#include <pthread.h>

#define DRIVERS 4

struct driver {
    EGLDisplay display;
    EGLSurface surface;
    EGLContext context;
    int number;
};

static struct driver drivers[DRIVERS];
static int count;

static void open_driver(struct driver *driver, EGLDeviceEXT device) {
    static const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT,
                                    EGL_RED_SIZE, 8, EGL_GREEN_SIZE, 8, EGL_BLUE_SIZE, 8, EGL_NONE};
    EGLint configs = 0;
    display = eglGetPlatformDisplay(EGL_PLATFORM_DEVICE_EXT, device, NULL);
    if (!display || !eglInitialize(display, NULL, NULL)) die("eglInitialize");
    if (!eglChooseConfig(display, wanted, &config, 1, &configs) || !configs) die("eglChooseConfig");
    driver->display = display;
    driver->surface = new_surface();
    driver->context = new_context(EGL_NO_CONTEXT);
}

static void show(const struct driver *driver, int frame) {
    uint8_t pixel[4] = {0};
    if (!eglMakeCurrent(driver->display, driver->surface, driver->surface, driver->context)) die("eglMakeCurrent");
    glClearColor(0.25f * (float)driver->number, 0.1f * (float)frame, 1, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    glReadPixels(0, 0, 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, pixel);
    eglSwapBuffers(driver->display, driver->surface);
    if (frame < 10) printf("driver %d, frame %d: %d %d %d, error %#x\n", driver->number, frame, pixel[0], pixel[1], pixel[2], glGetError());
    else if (pixel[2] != 255) die("a pixel");
}

static void *alone(void *given) {
    for (int frame = 10; frame < 60; frame++) show(given, frame);
    eglReleaseThread();
    return NULL;
}

int main(void) {
    EGLDeviceEXT devices[DRIVERS];
    EGLBoolean (*list)(EGLint, EGLDeviceEXT *, EGLint *) = (void *)eglGetProcAddress("eglQueryDevicesEXT");
    if (!list || !list(DRIVERS, devices, &count)) die("eglQueryDevicesEXT");
    printf("drivers %d\n", count);
    for (int at = 0; at < count; at++) {
        drivers[at].number = at;
        open_driver(&drivers[at], devices[at]);
    }
    for (int frame = 0; frame < 5; frame++)
        for (int at = 0; at < count; at++) show(&drivers[at], frame);
    /* An error of one driver is the error of the thread. */
    printf("foreign surface %d\n", eglSwapBuffers(drivers[0].display, drivers[count - 1].surface));
    printf("error %#x\n", eglGetError());
    eglMakeCurrent(drivers[count - 1].display, NULL, NULL, NULL);
    pthread_t threads[DRIVERS];
    for (int at = 0; at < count; at++) pthread_create(&threads[at], NULL, alone, &drivers[at]);
    for (int at = 0; at < count; at++) pthread_join(threads[at], NULL);
    for (int at = 0; at < count; at++) {
        printf("destroy %d\n", eglDestroyContext(drivers[at].display, drivers[at].context));
        printf("terminate %d\n", eglTerminate(drivers[at].display));
    }
    return 0;
}
