/* What only desktop GL has, on GLX ("glx", in a window of X11) or on EGL ("egl", in a pbuffer): primitives,
 * display lists, stacks of attributes, fixed functions, old names of new functions, and modern ones.
 * Whatever it prints must be the same with and without Takt. */
#define GL_GLEXT_PROTOTYPES
#define GLX_GLXEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <GL/glx.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 96

static Display *x11;
static Window window;
static GLXContext context;
static EGLDisplay display;
static EGLSurface surface;
static int on_glx;

static void die(const char *what) {
    fprintf(stderr, "%s failed\n", what);
    exit(99);
}

static void start_glx(int core) {
    static const int wanted[] = {GLX_RENDER_TYPE, GLX_RGBA_BIT, GLX_DOUBLEBUFFER, True, GLX_RED_SIZE, 8,
                                 GLX_DEPTH_SIZE, 16, GLX_STENCIL_SIZE, 8, GLX_ACCUM_RED_SIZE, 8, None};
    static const int modern[] = {GLX_CONTEXT_MAJOR_VERSION_ARB, 3, GLX_CONTEXT_MINOR_VERSION_ARB, 3,
                                 GLX_CONTEXT_PROFILE_MASK_ARB, GLX_CONTEXT_CORE_PROFILE_BIT_ARB, None};
    int count = 0;
    x11 = XOpenDisplay(NULL);
    if (!x11) die("XOpenDisplay");
    GLXFBConfig *configs = glXChooseFBConfig(x11, DefaultScreen(x11), wanted, &count);
    if (!configs || !count) die("glXChooseFBConfig");
    XVisualInfo *visual = glXGetVisualFromFBConfig(x11, configs[0]);
    XSetWindowAttributes about = {0};
    about.colormap = XCreateColormap(x11, DefaultRootWindow(x11), visual->visual, AllocNone);
    window = XCreateWindow(x11, DefaultRootWindow(x11), 0, 0, SIZE, SIZE, 0, visual->depth, InputOutput, visual->visual,
                           CWColormap, &about);
    XMapWindow(x11, window);
    XSync(x11, False);
    context = core ? glXCreateContextAttribsARB(x11, configs[0], NULL, True, modern)
                   : glXCreateContext(x11, visual, NULL, True);
    if (!context || !glXMakeCurrent(x11, window, context)) die("glXMakeCurrent");
    XFree(visual);
    XFree(configs);
}

static void start_egl(int core) {
    static const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_RED_SIZE,
                                    8, EGL_DEPTH_SIZE, 16, EGL_STENCIL_SIZE, 8, EGL_NONE};
    static const EGLint size[] = {EGL_WIDTH, SIZE, EGL_HEIGHT, SIZE, EGL_NONE};
    static const EGLint modern[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 3,
                                    EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE};
    EGLConfig config;
    EGLint count = 0;
    display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    if (!eglInitialize(display, NULL, NULL) || !eglBindAPI(EGL_OPENGL_API)) die("eglInitialize");
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || !count) die("eglChooseConfig");
    surface = eglCreatePbufferSurface(display, config, size);
    EGLContext made = eglCreateContext(display, config, NULL, core ? modern : NULL);
    if (!made || !eglMakeCurrent(display, surface, surface, made)) die("eglMakeCurrent");
}

static void show(void) {
    if (on_glx) glXSwapBuffers(x11, window);
    else eglSwapBuffers(display, surface);
}

/* Says what was drawn, and whether GL has complained. */
static void tell(const char *what) {
    static uint8_t pixels[SIZE * SIZE * 4];
    uint32_t hash = 2166136261u;
    memset(pixels, 0, sizeof pixels);
    glReadPixels(0, 0, SIZE, SIZE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    for (size_t at = 0; at < sizeof pixels; at++) hash = (hash ^ pixels[at]) * 16777619u;
    printf("%s: %08x, error %#x\n", what, hash, glGetError());
    show();
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
}

static void triangle(float shift) {
    glBegin(GL_TRIANGLES);
    glColor3f(1, 0, 0);
    glVertex2f(-0.9f + shift, -0.9f);
    glColor3f(0, 1, 0);
    glVertex2f(0.9f, -0.9f);
    glColor3f(0, 0, 1);
    glVertex2f(0, 0.9f);
    glEnd();
}

static GLuint compiled(GLenum kind, const char *source) {
    GLuint made = glCreateShader(kind);
    GLint good = 0;
    glShaderSource(made, 1, &source, NULL);
    glCompileShader(made);
    glGetShaderiv(made, GL_COMPILE_STATUS, &good);
    if (!good) die("glCompileShader");
    return made;
}

static GLuint program_of(const char *vertex, const char *fragment) {
    GLuint made = glCreateProgram();
    glAttachShader(made, compiled(GL_VERTEX_SHADER, vertex));
    glAttachShader(made, compiled(GL_FRAGMENT_SHADER, fragment));
    glBindAttribLocation(made, 0, "at");
    glLinkProgram(made);
    return made;
}

static void lists(void) {
    GLuint first = glGenLists(3);
    glNewList(first, GL_COMPILE);
    triangle(0.2f);
    glEndList();
    tell("compiled, not drawn");
    glCallList(first);
    tell("called");
    glNewList(first + 1, GL_COMPILE_AND_EXECUTE);
    glScissor(10, 10, 40, 40);
    glEnable(GL_SCISSOR_TEST);
    triangle(0.4f);
    glEndList();
    tell("compiled and drawn");
    glDisable(GL_SCISSOR_TEST);
    const GLubyte both[] = {0, 1};
    glListBase(first);
    glCallLists(2, GL_UNSIGNED_BYTE, both);
    triangle(0.5f);
    tell("lists changed the scissor");
    glDisable(GL_SCISSOR_TEST);
    /* A list of vertices only, called inside of a primitive. */
    glNewList(first + 2, GL_COMPILE);
    glVertex2f(-0.5f, -0.5f);
    glVertex2f(0.5f, -0.5f);
    glVertex2f(0, 0.5f);
    glEndList();
    glBegin(GL_TRIANGLES);
    glColor3f(1, 1, 0);
    glCallList(first + 2);
    glEnd();
    tell("a list inside of a primitive");
    glDeleteLists(first, 3);
}

static void pixels(void) {
    static GLubyte image[16 * 16 * 4];
    static const GLubyte bits[] = {0xF0, 0x0F, 0xF0, 0x0F, 0xAA, 0x55, 0xAA, 0x55};
    for (int at = 0; at < 16 * 16 * 4; at++) image[at] = (GLubyte)(at * 7);
    glRasterPos2f(-0.5f, -0.5f);
    glDrawPixels(16, 16, GL_RGBA, GL_UNSIGNED_BYTE, image);
    glRasterPos2f(0.1f, 0.1f);
    glCopyPixels(20, 20, 30, 30, GL_COLOR);
    glBitmap(8, 8, 0, 0, 4, 4, bits);
    glRectf(-0.9f, 0.5f, -0.6f, 0.9f);
    tell("pixels");
    if (on_glx) {
        triangle(0);
        glAccum(GL_LOAD, 0.5f);
        glClear(GL_COLOR_BUFFER_BIT);
        triangle(0.6f);
        glAccum(GL_ACCUM, 0.5f);
        glAccum(GL_RETURN, 1.0f);
        tell("accumulated");
    }
}

static void attributes(void) {
    glPushAttrib(GL_ALL_ATTRIB_BITS);
    glViewport(0, 0, SIZE / 2, SIZE / 2);
    glPolygonMode(GL_FRONT_AND_BACK, GL_LINE);
    glEnable(GL_LINE_STIPPLE);
    glLineStipple(2, 0x0F0F);
    triangle(0);
    glPopAttrib();
    triangle(0.7f);
    tell("attributes came back");
    GLuint names[16];
    glSelectBuffer(16, names);
    glRenderMode(GL_SELECT);
    glInitNames();
    glPushName(7);
    triangle(0);
    printf("hits %d\n", glRenderMode(GL_RENDER));
    GLfloat back[256];
    glFeedbackBuffer(256, GL_2D, back);
    glRenderMode(GL_FEEDBACK);
    triangle(0);
    printf("fed back %d\n", glRenderMode(GL_RENDER));
    tell("nothing was drawn");
}

static void arrays(void) {
    static const GLfloat places[] = {-0.9f, -0.9f, 0.9f, -0.9f, 0.9f, 0.9f, -0.9f, 0.9f};
    static const GLint firsts[] = {0, 1};
    static const GLsizei counts[] = {3, 3};
    glEnableClientState(GL_VERTEX_ARRAY);
    glVertexPointer(2, GL_FLOAT, 0, places);
    glColor3f(0.2f, 0.9f, 0.4f);
    glDrawArrays(GL_QUADS, 0, 4);
    tell("a quad");
    glMultiDrawArrays(GL_TRIANGLES, firsts, counts, 2);
    glBegin(GL_POLYGON);
    for (int at = 0; at < 4; at++) glArrayElement(at);
    glEnd();
    tell("several draws");
    GLuint buffer;
    glGenBuffersARB(1, &buffer);
    glBindBufferARB(GL_ARRAY_BUFFER, buffer);
    glBufferDataARB(GL_ARRAY_BUFFER, sizeof places, places, GL_STATIC_DRAW);
    GLfloat *mapped = glMapBuffer(GL_ARRAY_BUFFER, GL_READ_WRITE);
    mapped[0] = 0;
    glUnmapBuffer(GL_ARRAY_BUFFER);
    glVertexPointer(2, GL_FLOAT, 0, NULL);
    glDrawArrays(GL_TRIANGLE_FAN, 0, 4);
    tell("a mapped buffer");
    glBindBuffer(GL_ARRAY_BUFFER, 0);
    glDisableClientState(GL_VERTEX_ARRAY);
    GLhandleARB old = glCreateProgramObjectARB(), part = glCreateShaderObjectARB(GL_FRAGMENT_SHADER_ARB);
    const GLcharARB *source = "void main() { gl_FragColor = vec4(1.0, 0.5, 0.25, 1.0); }";
    glShaderSourceARB(part, 1, &source, NULL);
    glCompileShaderARB(part);
    glAttachObjectARB(old, part);
    glLinkProgramARB(old);
    glUseProgramObjectARB(old);
    triangle(0);
    tell("a program by its old name");
    glUseProgramObjectARB(0);
}

/* Texels and a buffer that come back. */
static void read_back(GLuint buffer, size_t size) {
    static uint8_t texels[256 * 256 * 4], back[256 * 256 * 4];
    GLfloat places[8] = {0};
    GLuint texture = 0;
    for (size_t at = 0; at < sizeof texels; at++) texels[at] = (uint8_t)(at * 7 + at / 4099);
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 256, 256, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    for (int round = 0; round < 3; round++) glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, back);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glGetBufferSubData(GL_ARRAY_BUFFER, 0, (GLsizeiptr)size, places);
    printf("texels %d, place %.1f; ", !memcmp(texels, back, sizeof back), (double)places[7]);
    tell("read back");
    glDeleteTextures(1, &texture);
}

/* Long enough to be cut, where a daemon wants that, and allowed in every profile. */
static void modern(const char *vertex, const char *fragment) {
    static const GLfloat places[] = {-1, -1, 1, -1, -1, 1, 1, 1};
    GLuint program = program_of(vertex, fragment), array, buffer, queries[3], counted = 0, any = 0;
    GLuint64 elapsed = 0;
    glUseProgram(program);
    glGenVertexArrays(1, &array);
    glBindVertexArray(array);
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, sizeof places, places, GL_STATIC_DRAW);
    glEnableVertexAttribArray(0);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glGenQueries(3, queries);
    for (int frame = 0; frame < 4; frame++) {
        glBeginQuery(GL_SAMPLES_PASSED, queries[0]);
        glBeginQuery(GL_TIME_ELAPSED, queries[1]);
        glUniform1f(glGetUniformLocation(program, "shift"), (float)frame * 0.1f);
        glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
        glEndQuery(GL_SAMPLES_PASSED);
        glEndQuery(GL_TIME_ELAPSED);
        glGetQueryObjectuiv(queries[0], GL_QUERY_RESULT, &counted);
        glGetQueryObjectui64v(queries[1], GL_QUERY_RESULT, &elapsed);
        printf("samples %u, took time %d; ", counted, elapsed > 0);
        tell("a long draw");
    }
    glBeginQuery(GL_ANY_SAMPLES_PASSED, queries[2]);
    glDrawArraysInstanced(GL_TRIANGLE_STRIP, 0, 4, 3);
    glEndQuery(GL_ANY_SAMPLES_PASSED);
    glGetQueryObjectuiv(queries[2], GL_QUERY_RESULT, &any);
    GLsync fence = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    glClientWaitSync(fence, GL_SYNC_FLUSH_COMMANDS_BIT, 1000000000);
    printf("any %u; ", any);
    tell("instances");
    read_back(buffer, sizeof places);
    glBindBuffer(GL_ARRAY_BUFFER, 0);
    glUseProgram(0);
}

#define BODY(colour)                                                                                                   \
    "  vec2 p = at_pixel; float s = 0.0;"                                                                              \
    "  for (int i = 0; i < 400; i++) { s += sin(p.x * 3.0 + s) * 0.01; p = p.yx + s * 0.001; }" colour

int main(int count, char **arguments) {
    on_glx = count > 1 && !strcmp(arguments[1], "glx");
    int core = count > 2 && !strcmp(arguments[2], "core");
    if (on_glx) start_glx(core);
    else start_egl(core);
    printf("core %d, error %#x\n", core, glGetError());
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
    if (core) {
        modern("#version 330\nin vec2 at; uniform float shift; out vec2 at_pixel;"
               "void main() { at_pixel = at + shift; gl_Position = vec4(at, 0.0, 1.0); }",
               "#version 330\nin vec2 at_pixel; out vec4 colour; void main() {" BODY("colour = vec4(s, p, 1.0); }"));
        return 0;
    }
    triangle(0);
    tell("a primitive");
    modern("#version 120\nattribute vec2 at; uniform float shift; varying vec2 at_pixel;"
           "void main() { at_pixel = at + shift; gl_Position = vec4(at, 0.0, 1.0); }",
           "#version 120\nvarying vec2 at_pixel; void main() {" BODY("gl_FragColor = vec4(s, p, 1.0); }"));
    glBindVertexArray(0);
    lists();
    pixels();
    attributes();
    arrays();
    if (on_glx) {
        /* Some programs leave everything to the end of the process. */
        XCloseDisplay(x11);
    }
    return 0;
}
