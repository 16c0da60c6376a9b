/* What all trap programs need: a context without a window, a scene, and answers on standard output.
 * Whatever a program prints must be the same with and without Takt. */
#define EGL_EGLEXT_PROTOTYPES
#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES2/gl2.h>
#include <GLES2/gl2ext.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 96

static EGLDisplay display;
static EGLConfig config;
static EGLSurface surface;
static EGLContext context;

static void die(const char *what) {
    fprintf(stderr, "%s failed: egl error %#x\n", what, eglGetError());
    exit(99);
}

/* Drivers may give no more than what is asked for; Mesa gives its newest version in any case. */
static EGLint client_version = 2;

static EGLContext new_context(EGLContext share) {
    const EGLint version[] = {EGL_CONTEXT_CLIENT_VERSION, client_version, EGL_NONE};
    EGLContext made = eglCreateContext(display, config, share, version);
    if (!made) die("eglCreateContext");
    return made;
}

static EGLSurface new_surface(void) {
    static const EGLint size[] = {EGL_WIDTH, SIZE, EGL_HEIGHT, SIZE, EGL_NONE};
    EGLSurface made = eglCreatePbufferSurface(display, config, size);
    if (!made) die("eglCreatePbufferSurface");
    return made;
}

/* Mesa's platform without surfaces, or else the first GPU of a driver that has none. */
static void open_display(void) {
    PFNEGLQUERYDEVICESEXTPROC devices = (PFNEGLQUERYDEVICESEXTPROC)eglGetProcAddress("eglQueryDevicesEXT");
    EGLDeviceEXT device;
    EGLint count = 0;
    display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    if (display && eglInitialize(display, NULL, NULL)) return;
    if (!devices || !devices(1, &device, &count) || !count) die("eglQueryDevicesEXT");
    display = eglGetPlatformDisplay(EGL_PLATFORM_DEVICE_EXT, device, NULL);
    if (!display || !eglInitialize(display, NULL, NULL)) die("eglInitialize");
    client_version = 3;
}

static void start(void) {
    static const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT,
                                    EGL_RED_SIZE, 8, EGL_GREEN_SIZE, 8, EGL_BLUE_SIZE, 8, EGL_DEPTH_SIZE, 16, EGL_NONE};
    EGLint count = 0;
    open_display();
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || !count) die("eglChooseConfig");
    surface = new_surface();
    context = new_context(EGL_NO_CONTEXT);
    if (!eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
    /* What is in a fresh surface is undefined. */
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
}

static GLuint shader(GLenum kind, const char *source) {
    GLuint made = glCreateShader(kind);
    glShaderSource(made, 1, &source, NULL);
    glCompileShader(made);
    return made;
}

/* A program whose first attribute is called "at". */
static GLuint program_of(const char *vertex, const char *fragment) {
    GLuint made = glCreateProgram();
    glAttachShader(made, shader(GL_VERTEX_SHADER, vertex));
    glAttachShader(made, shader(GL_FRAGMENT_SHADER, fragment));
    glBindAttribLocation(made, 0, "at");
    glLinkProgram(made);
    return made;
}

/* Vertices where they are. */
#define PLAIN "attribute vec2 at; void main() { gl_Position = vec4(at, 0.0, 1.0); }"

static GLuint program(void) {
    return program_of("attribute vec2 at; uniform mat4 turn; varying vec2 place;"
                      "void main() { place = at; gl_Position = turn * vec4(at, 0.0, 1.0); }",
                      "precision mediump float; varying vec2 place; uniform vec4 colour;"
                      "void main() { gl_FragColor = colour * vec4(place * 0.5 + 0.5, 1.0, 1.0); }");
}

static void use(GLuint name, float turn) {
    const GLfloat matrix[16] = {1, turn, 0, 0, -turn, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    glUseProgram(name);
    glUniformMatrix4fv(glGetUniformLocation(name, "turn"), 1, GL_FALSE, matrix);
    glUniform4f(glGetUniformLocation(name, "colour"), 1.0f, 0.5f, 0.25f, 1.0f);
}

/* Says what is on the screen, and which error is pending. */
static void say(const char *what) {
    static uint8_t pixels[SIZE * SIZE * 4];
    uint64_t hash = 0xcbf29ce484222325u;
    GLenum error = glGetError();
    memset(pixels, 0, sizeof pixels);
    glReadPixels(0, 0, SIZE, SIZE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    for (size_t at = 0; at < sizeof pixels; at++) hash = (hash ^ pixels[at]) * 0x100000001b3u;
    printf("%s: error %#x, pixels %016llx\n", what, error, (unsigned long long)hash);
    fflush(stdout);
}

static const GLfloat TRIANGLE[] = {-0.8f, -0.8f, 0.8f, -0.6f, 0.0f, 0.7f};
