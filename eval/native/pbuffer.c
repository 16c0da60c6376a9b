// Runs programs that want windows on a driver without a window system, and without Takt: the
// native side of a comparison with `takt run --offscreen`, which does the same under Takt.
//
// Displays become that of the first EGL device, and windows pbuffers of PBUFFER_SIZE (WxH, else
// 800x600). glmark2 finds this library as its libEGL.so and reaches everything that is not here
// through its dependency, the real libEGL.so.1; other programs get it by LD_PRELOAD.
#define _GNU_SOURCE
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl3.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES_MAX = 64 };
// How many frames may be unfinished, and how many fences are kept beyond (as in takt-gl's backlog.rs).
enum { FRAMES_AHEAD = 2, FENCES_KEPT = 8, WINDOWS_MAX = 8 };
static const GLuint64 PATIENCE_NS = 10000000000u;

// The function behind ours. The real library is loaded already: we depend on it.
static void *real(const char *name) {
    static void *library;
    if (!library) {
        library = dlopen("libEGL.so.1", RTLD_NOW);
    }
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "pbuffer: libEGL.so.1 has no %s\n", name);
        exit(2);
    }
    return found;
}
#define REAL(name) ((__typeof__(&name))real(#name))

static EGLDisplay device_display(void) {
    PFNEGLQUERYDEVICESEXTPROC query = (PFNEGLQUERYDEVICESEXTPROC)REAL(eglGetProcAddress)("eglQueryDevicesEXT");
    PFNEGLGETPLATFORMDISPLAYEXTPROC get =
        (PFNEGLGETPLATFORMDISPLAYEXTPROC)REAL(eglGetProcAddress)("eglGetPlatformDisplayEXT");
    EGLDeviceEXT device;
    EGLint count = 0;
    if (!query || !get || !query(1, &device, &count) || count < 1) {
        fprintf(stderr, "pbuffer: EGL has no device\n");
        return EGL_NO_DISPLAY;
    }
    return get(EGL_PLATFORM_DEVICE_EXT, device, NULL);
}

EGLDisplay eglGetDisplay(EGLNativeDisplayType native) {
    (void)native;
    return device_display();
}

EGLDisplay eglGetPlatformDisplay(EGLenum platform, void *native, const EGLAttrib *attributes) {
    (void)platform, (void)native, (void)attributes;
    return device_display();
}

EGLDisplay eglGetPlatformDisplayEXT(EGLenum platform, void *native, const EGLint *attributes) {
    (void)platform, (void)native, (void)attributes;
    return device_display();
}

EGLBoolean eglChooseConfig(EGLDisplay display, const EGLint *asked, EGLConfig *configs, EGLint size, EGLint *count) {
    EGLint list[ATTRIBUTES_MAX + 3];
    int at = 0, named = 0;
    for (; asked && asked[at] != EGL_NONE && at < ATTRIBUTES_MAX; at += 2) {
        list[at] = asked[at];
        list[at + 1] = asked[at + 1];
        if (asked[at] == EGL_SURFACE_TYPE) {
            list[at + 1] = (asked[at + 1] & ~EGL_WINDOW_BIT) | EGL_PBUFFER_BIT;
            named = 1;
        }
    }
    if (!named) { // Not to ask means to ask for windows.
        list[at++] = EGL_SURFACE_TYPE;
        list[at++] = EGL_PBUFFER_BIT;
    }
    list[at] = EGL_NONE;
    return REAL(eglChooseConfig)(display, list, configs, size, count);
}

EGLBoolean eglGetConfigAttrib(EGLDisplay display, EGLConfig config, EGLint name, EGLint *value) {
    EGLBoolean done = REAL(eglGetConfigAttrib)(display, config, name, value);
    if (done && name == EGL_NATIVE_VISUAL_ID && *value == 0) {
        *value = 0x21; // The visual of our X server.
    } else if (done && name == EGL_SURFACE_TYPE && (*value & EGL_PBUFFER_BIT)) {
        *value |= EGL_WINDOW_BIT;
    }
    return done;
}

// Pbuffers that stand for windows: those made last.
static EGLSurface windows[WINDOWS_MAX];
static unsigned windows_made;

static EGLSurface pbuffer(EGLDisplay display, EGLConfig config) {
    int width = 800, height = 600;
    const char *size = getenv("PBUFFER_SIZE");
    if (size && sscanf(size, "%dx%d", &width, &height) != 2) {
        fprintf(stderr, "pbuffer: PBUFFER_SIZE=%s is no size such as 800x600\n", size);
        return EGL_NO_SURFACE;
    }
    const EGLint list[] = {EGL_WIDTH, width, EGL_HEIGHT, height, EGL_NONE};
    EGLSurface made = REAL(eglCreatePbufferSurface)(display, config, list);
    windows[windows_made++ % WINDOWS_MAX] = made;
    return made;
}

EGLSurface eglCreateWindowSurface(EGLDisplay display, EGLConfig config, EGLNativeWindowType window, const EGLint *list) {
    (void)window, (void)list;
    return pbuffer(display, config);
}

EGLSurface eglCreatePlatformWindowSurface(EGLDisplay display, EGLConfig config, void *window, const EGLAttrib *list) {
    (void)window, (void)list;
    return pbuffer(display, config);
}

EGLSurface eglCreatePlatformWindowSurfaceEXT(EGLDisplay display, EGLConfig config, void *window, const EGLint *list) {
    (void)window, (void)list;
    return pbuffer(display, config);
}

// What swaps need of GL, looked up once.
static struct {
    PFNGLGETSTRINGPROC get_string;
    PFNGLFLUSHPROC flush;
    PFNGLFINISHPROC finish;
    PFNGLFENCESYNCPROC fence;
    PFNGLCLIENTWAITSYNCPROC wait;
    PFNGLDELETESYNCPROC delete;
    __typeof__(&eglSwapBuffers) swap;
    __typeof__(&eglGetCurrentContext) context;
} gl;

static void look_up(void) {
    __typeof__(&eglGetProcAddress) get = REAL(eglGetProcAddress);
    gl.get_string = (PFNGLGETSTRINGPROC)get("glGetString");
    gl.flush = (PFNGLFLUSHPROC)get("glFlush");
    gl.finish = (PFNGLFINISHPROC)get("glFinish");
    gl.fence = (PFNGLFENCESYNCPROC)get("glFenceSync");
    gl.wait = (PFNGLCLIENTWAITSYNCPROC)get("glClientWaitSync");
    gl.delete = (PFNGLDELETESYNCPROC)get("glDeleteSync");
    gl.context = REAL(eglGetCurrentContext);
    gl.swap = REAL(eglSwapBuffers);
}

// A swap of a window waits for a free buffer; a pbuffer's waits for nothing, and programs would queue
// up seconds of work. So it waits until no more than two frames are unfinished, as Takt's does.
static void bound_backlog(void) {
    static __thread GLsync fences[FRAMES_AHEAD + FENCES_KEPT];
    static __thread unsigned swaps;
    static __thread EGLContext last;
    static __thread int has_fences;
    EGLContext context = gl.context();
    if (context != last) { // Fences belong to contexts, and go with them.
        const unsigned char *version = gl.get_string(GL_VERSION);
        has_fences = version && strncmp((const char *)version, "OpenGL ES 3", 11) == 0;
        memset(fences, 0, sizeof fences);
        last = context;
    }
    if (!has_fences) {
        gl.finish();
        return;
    }
    const unsigned room = sizeof fences / sizeof *fences;
    GLsync *now = &fences[swaps % room], *before = &fences[(swaps + room - FRAMES_AHEAD) % room];
    if (*now) {
        gl.delete(*now);
    }
    *now = gl.fence(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (*before) {
        gl.wait(*before, 0, PATIENCE_NS);
    }
    swaps++;
}

// A window's swap hands the frame to the GPU; a pbuffer's need not, and nothing might ever be drawn.
EGLBoolean eglSwapBuffers(EGLDisplay display, EGLSurface surface) {
    if (!gl.swap) {
        look_up();
    }
    EGLBoolean done = gl.swap(display, surface);
    gl.flush();
    for (int at = 0; at < WINDOWS_MAX; at++) {
        if (windows[at] && windows[at] == surface) {
            bound_backlog();
        }
    }
    return done;
}

__eglMustCastToProperFunctionPointerType eglGetProcAddress(const char *name) {
    static const char *const ours[] = {"eglGetDisplay", "eglGetPlatformDisplay", "eglGetPlatformDisplayEXT",
        "eglChooseConfig", "eglGetConfigAttrib", "eglCreateWindowSurface", "eglCreatePlatformWindowSurface",
        "eglCreatePlatformWindowSurfaceEXT", "eglSwapBuffers"};
    for (unsigned at = 0; at < sizeof ours / sizeof *ours; at++) {
        if (strcmp(name, ours[at]) == 0) {
            return (__eglMustCastToProperFunctionPointerType)dlsym(RTLD_DEFAULT, name);
        }
    }
    return REAL(eglGetProcAddress)(name);
}
