/* Every way to find a function, all in one program that links against no GL. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *(*find_t)(const char *);
typedef unsigned (*query_t)(void *, int, int *);

static void *(*find)(const char *);

int main(int count, char **arguments) {
    int flags = count > 1 ? atoi(arguments[1]) : RTLD_LAZY;
    void *egl = dlopen("libEGL.so.1", flags), *gles = dlopen("libGLESv2.so.2", flags);
    if (!egl || !gles) return printf("cannot load: %s\n", dlerror()), 98;
    find = (find_t)dlsym(egl, "eglGetProcAddress");
    void *(*platform)(unsigned, void *, void *) = (void *)find("eglGetPlatformDisplay");
    unsigned (*initialize)(void *, int *, int *) = (void *)dlsym(egl, "eglInitialize");
    unsigned (*choose)(void *, const int *, void **, int, int *) = (void *)find("eglChooseConfig");
    void *(*context)(void *, void *, void *, const int *) = (void *)dlsym(egl, "eglCreateContext");
    unsigned (*current)(void *, void *, void *, void *) = (void *)dlsym(egl, "eglMakeCurrent");
    void *(*pbuffer)(void *, void *, const int *) = (void *)find("eglCreatePbufferSurface");
    unsigned (*swap)(void *, void *) = (void *)find("eglSwapBuffers");
    void *display = platform(0x31DD, NULL, NULL), *config = NULL;
    int configs = 0;
    initialize(display, NULL, NULL);
    choose(display, (const int[]){0x3033, 1, 0x3040, 4, 0x3038}, &config, 1, &configs);
    void *surface = pbuffer(display, config, (const int[]){0x3057, 64, 0x3056, 64, 0x3038});
    void *made = context(display, config, NULL, (const int[]){0x3098, 2, 0x3038});
    printf("current %u\n", current(display, surface, surface, made));
    void (*clear)(unsigned) = (void *)dlsym(gles, "glClear");
    void (*colour)(float, float, float, float) = (void *)find("glClearColor");
    void (*finish)(void) = (void *)dlsym(gles, "glFinish");
    void (*read)(int, int, int, int, unsigned, unsigned, void *) = (void *)find("glReadPixels");
    unsigned (*error)(void) = (void *)dlsym(gles, "glGetError");
    for (int frame = 0; frame < 3; frame++) {
        unsigned char pixel[4] = {0};
        colour(0.25f * frame, 0.5f, 1, 1);
        clear(0x4000);
        finish();
        read(0, 0, 1, 1, 0x1908, 0x1401, pixel);
        printf("pixel %d %d %d %d, error %#x, swap %u\n", pixel[0], pixel[1], pixel[2], pixel[3], error(), swap(display, surface));
    }
    printf("unknown %d\n", dlsym(gles, "glNoSuchFunctionTAKT") != NULL);
    return 0;
}
