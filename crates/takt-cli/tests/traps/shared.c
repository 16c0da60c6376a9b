/* Two threads with contexts of one share group use the same programs at the same time, each for a target and a
 * buffer of its own; one of them deletes what both have used. Errors are fetched now and then. */
#include "trap.h"
#include <GLES3/gl32.h>
#include <pthread.h>

#define ROUNDS 12
#define WORDS 8192
#define VERTICES 300

static GLuint drawing, computing, vertices;
static pthread_barrier_t together;

struct worker {
    EGLContext context;
    EGLSurface surface;
    float turn;
    char said[ROUNDS * 4][120];
    int lines;
};

static void note(struct worker *worker, const char *what, const void *bytes, size_t size) {
    uint64_t hash = 0xcbf29ce484222325u;
    const uint32_t *words = bytes;
    for (size_t at = 0; bytes && at < size / 4; at++) hash = (hash ^ words[at]) * 0x100000001b3u;
    snprintf(worker->said[worker->lines++], 120, "%s: error %#x, %016llx", what, glGetError(), (unsigned long long)hash);
}

static void draw(struct worker *worker, int round) {
    static __thread uint8_t pixels[SIZE * SIZE * 4];
    glUseProgram(drawing);
    glClear(GL_COLOR_BUFFER_BIT);
    glDrawArrays(GL_TRIANGLES, 0, VERTICES - 3 * round);
    if (round % 4 == 1) glDrawArrays(GL_TRIANGLES, -1, 3);
    glDrawArraysInstanced(GL_TRIANGLES, 0, 60, 2);
    glReadPixels(0, 0, SIZE, SIZE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    note(worker, "pixels", pixels, sizeof pixels);
}

static void dispatch(struct worker *worker, GLuint storage, int round) {
    glUseProgram(computing);
    glDispatchCompute(16, 8, 1);
    if (round % 4 == 2) glDispatchCompute(0xffffffffu, 1, 1);
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    glBindBuffer(GL_COPY_READ_BUFFER, storage);
    note(worker, "storage", glMapBufferRange(GL_COPY_READ_BUFFER, 0, WORDS * 4, GL_MAP_READ_BIT), WORDS * 4);
    glUnmapBuffer(GL_COPY_READ_BUFFER);
}

static void *work(void *given) {
    static GLuint zeros[WORDS];
    struct worker *worker = given;
    GLuint storage = 0, arrays = 0;
    eglBindAPI(EGL_OPENGL_ES_API);
    if (!eglMakeCurrent(display, worker->surface, worker->surface, worker->context)) die("eglMakeCurrent in a thread");
    glGenVertexArrays(1, &arrays);
    glBindVertexArray(arrays);
    glBindBuffer(GL_ARRAY_BUFFER, vertices);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glEnableVertexAttribArray(0);
    glGenBuffers(1, &storage);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, storage);
    glBufferData(GL_SHADER_STORAGE_BUFFER, sizeof zeros, zeros, GL_DYNAMIC_COPY);
    for (int round = 0; round < ROUNDS; round++) {
        draw(worker, round);
        dispatch(worker, storage, round);
        pthread_barrier_wait(&together);
        /* Both have used it in this round, and both go on with it. */
        if (round == ROUNDS / 2 && worker->turn > 0.5f) glDeleteProgram(computing);
        pthread_barrier_wait(&together);
        if (round == ROUNDS / 2) break;
    }
    for (int round = 0; round < 3; round++) draw(worker, round);
    glFinish();
    eglReleaseThread();
    return NULL;
}

static GLuint linked(const char *vertex, const char *fragment) {
    GLuint made = glCreateProgram();
    GLint status = 0;
    if (vertex) glAttachShader(made, shader(GL_VERTEX_SHADER, vertex));
    glAttachShader(made, shader(vertex ? GL_FRAGMENT_SHADER : GL_COMPUTE_SHADER, fragment));
    glLinkProgram(made);
    glGetProgramiv(made, GL_LINK_STATUS, &status);
    if (!status) die("linking");
    return made;
}

static void make_shared(void) {
    static GLfloat places[VERTICES * 2];
    uint32_t seed = 5;
    for (int at = 0; at < VERTICES * 2; at++) {
        seed = seed * 1664525u + 1013904223u;
        places[at] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    drawing = linked("#version 310 es\nlayout(location = 0) in vec2 at; out vec2 p;"
                     "void main() { p = at; gl_Position = vec4(at + 0.1 * float(gl_InstanceID), 0.0, 1.0); }",
                     "#version 310 es\nprecision highp float; in vec2 p; out vec4 colour;"
                     "void main() { float a = p.x; for (int i = 0; i < 80; i++) a = sin(a * 0.9 + p.y) + 0.3 * a;"
                     "colour = vec4(0.5 + 0.5 * sin(a + vec3(0.0, 1.2, 2.4)), 1.0); }");
    computing = linked(NULL, "#version 310 es\nlayout(local_size_x = 64) in;"
                             "layout(std430, binding = 0) buffer Data { uint data[]; };"
                             "void main() { uint at = gl_GlobalInvocationID.y * 1024u + gl_GlobalInvocationID.x; uint a = data[at] + at;"
                             "for (int i = 0; i < 300; i++) { a = a * 1664525u + 1013904223u; a ^= a >> 13; } data[at] = a; }");
    glGenBuffers(1, &vertices);
    glBindBuffer(GL_ARRAY_BUFFER, vertices);
    glBufferData(GL_ARRAY_BUFFER, sizeof places, places, GL_STATIC_DRAW);
    glFinish();
}

int main(void) {
    static struct worker workers[2];
    pthread_t threads[2];
    client_version = 3;
    start();
    make_shared();
    pthread_barrier_init(&together, NULL, 2);
    for (int at = 0; at < 2; at++) {
        workers[at].context = new_context(context);
        workers[at].surface = new_surface();
        workers[at].turn = (float)at;
    }
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], NULL, work, &workers[at]);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    for (int at = 0; at < 2; at++)
        for (int line = 0; line < workers[at].lines; line++) printf("thread %d, %s\n", at, workers[at].said[line]);
    say("end");
    return 0;
}
