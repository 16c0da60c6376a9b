/* Draws that are long enough to be cut, in every state that could give away that they were.
 * Each case is drawn several times, because what is known about a draw changes how it is cut. */
#include "trap.h"
#include <GLES3/gl32.h>

#define ROUNDS 3
#define LOOPS "for (int i = 0; i < 60; i++) { a = sin(a * 0.9 + p.x) + 0.7 * sin(a - p.y * 1.3); }"

static const char *VERTEX =
    "#version 300 es\n"
    "in vec4 at; in float shift; out vec2 p; flat out float kind; uniform float turn;"
    "void main() { p = at.xy * 2.0; kind = float(gl_VertexID % 7) / 7.0 + float(gl_InstanceID) * 0.1;"
    "gl_PointSize = 9.0;"
    "gl_Position = vec4(at.xy * (0.6 + 0.4 * turn) + vec2(shift, float(gl_InstanceID) * 0.07), at.z, 1.0); }";
static const char *FRAGMENT =
    "#version 300 es\n"
    "precision highp float; in vec2 p; flat in float kind; uniform float alpha; out vec4 colour;"
    "void main() { float a = kind; " LOOPS
    " colour = vec4(0.5 + 0.5 * sin(a + vec3(0.0, 1.2, 2.4)), alpha) + vec4(dFdx(p.x), gl_FragCoord.y * 0.001, gl_FrontFacing ? 0.1 : 0.0, 0.0); }";

static GLuint linked(const char *vertex, const char *fragment, const char *recorded) {
    GLuint made = glCreateProgram();
    GLint status = 0;
    glAttachShader(made, shader(GL_VERTEX_SHADER, vertex));
    glAttachShader(made, shader(GL_FRAGMENT_SHADER, fragment));
    glBindAttribLocation(made, 0, "at");
    glBindAttribLocation(made, 1, "shift");
    if (recorded) glTransformFeedbackVaryings(made, 1, &recorded, GL_INTERLEAVED_ATTRIBS);
    glLinkProgram(made);
    glGetProgramiv(made, GL_LINK_STATUS, &status);
    if (!status) die("linking");
    glUseProgram(made);
    glUniform1f(glGetUniformLocation(made, "turn"), 0.9f);
    glUniform1f(glGetUniformLocation(made, "alpha"), 0.4f);
    return made;
}

#define VERTICES 600
static GLfloat vertices[VERTICES * 4];
static GLfloat shifts[8] = {-0.3f, -0.2f, -0.1f, 0.0f, 0.1f, 0.2f, 0.3f, 0.4f};
static GLushort shorts[VERTICES];
static GLubyte bytes[240];
static GLuint longs[VERTICES];

/* Triangles, lines and points all over the place, each in another depth. */
static void scatter(void) {
    uint32_t seed = 7;
    for (int at = 0; at < VERTICES * 4; at++) {
        seed = seed * 1664525u + 1013904223u;
        vertices[at] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    for (int at = 0; at < VERTICES; at++) longs[at] = shorts[at] = (GLushort)((at * 7) % VERTICES);
    for (int at = 0; at < 240; at++) bytes[at] = (GLubyte)((at * 11) % 240);
    /* The first six cover everything. */
    static const GLfloat quad[6][2] = {{-2, -2}, {2, -2}, {-2, 2}, {-2, 2}, {2, -2}, {2, 2}};
    for (int at = 0; at < 6; at++) {
        vertices[at * 4] = quad[at][0];
        vertices[at * 4 + 1] = quad[at][1];
        vertices[at * 4 + 2] = 0.5f;
    }
}

static void clear(void) { glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT); }

static void draw(GLenum mode, GLint first, GLsizei count, const char *what) {
    char text[64];
    for (int round = 0; round < ROUNDS; round++) {
        clear();
        glDrawArrays(mode, first, count);
        snprintf(text, sizeof text, "%s %d", what, round);
        say(text);
    }
}

static void scissors(void) {
    GLint area[4];
    glScissor(11, 5, 47, 70);
    draw(GL_TRIANGLES, 0, 6, "scissor that is off");
    glGetIntegerv(GL_SCISSOR_BOX, area);
    printf("box %d %d %d %d, on %d\n", area[0], area[1], area[2], area[3], glIsEnabled(GL_SCISSOR_TEST));
    glEnable(GL_SCISSOR_TEST);
    draw(GL_TRIANGLES, 0, 6, "scissor");
    glScissor(-20, -20, 61, 200);
    draw(GL_TRIANGLES, 0, 6, "scissor beyond");
    glGetIntegerv(GL_SCISSOR_BOX, area);
    printf("box %d %d %d %d, on %d\n", area[0], area[1], area[2], area[3], glIsEnabled(GL_SCISSOR_TEST));
    glScissor(10, 10, 0, 30);
    draw(GL_TRIANGLES, 0, 6, "scissor around nothing");
    glDisable(GL_SCISSOR_TEST);
    glViewport(-17, 9, 90, 130);
    draw(GL_TRIANGLES, 0, 6, "viewport");
    draw(GL_POINTS, 0, VERTICES, "points over the edge of the viewport");
    glViewport(0, 0, SIZE, SIZE);
}

static void modes(void) {
    static const struct { GLenum mode; const char *name; } all[] = {
        {GL_POINTS, "points"}, {GL_LINES, "lines"}, {GL_LINE_STRIP, "line strip"}, {GL_LINE_LOOP, "line loop"},
        {GL_TRIANGLES, "triangles"}, {GL_TRIANGLE_STRIP, "triangle strip"}, {GL_TRIANGLE_FAN, "triangle fan"}};
    glEnable(GL_BLEND);
    glBlendFunc(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA);
    glLineWidth(3.0f);
    for (size_t at = 0; at < sizeof all / sizeof *all; at++) {
        draw(all[at].mode, 6, 121, all[at].name);
        draw(all[at].mode, 0, VERTICES - 1, all[at].name);
    }
    glEnable(GL_CULL_FACE);
    draw(GL_TRIANGLE_STRIP, 3, 400, "culled strip");
    glDisable(GL_CULL_FACE);
    glDisable(GL_BLEND);
}

static void tests(void) {
    glEnable(GL_DEPTH_TEST);
    draw(GL_TRIANGLES, 0, 300, "depth");
    glDisable(GL_DEPTH_TEST);
    /* The surface may have no stencil. */
    GLuint target = 0, planes[2];
    glGenFramebuffers(1, &target);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glGenRenderbuffers(2, planes);
    glBindRenderbuffer(GL_RENDERBUFFER, planes[0]);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, SIZE, SIZE);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, planes[0]);
    glBindRenderbuffer(GL_RENDERBUFFER, planes[1]);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_DEPTH24_STENCIL8, SIZE, SIZE);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_STENCIL_ATTACHMENT, GL_RENDERBUFFER, planes[1]);
    glEnable(GL_STENCIL_TEST);
    glStencilFunc(GL_GREATER, 3, 0xff);
    glStencilOp(GL_KEEP, GL_INCR, GL_INCR);
    draw(GL_TRIANGLES, 0, 300, "stencil");
    glDisable(GL_STENCIL_TEST);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glColorMask(1, 0, 1, 1);
    draw(GL_TRIANGLES, 0, 6, "mask");
    glColorMask(1, 1, 1, 1);
}

static void indexed(void) {
    GLuint buffer = 0;
    for (int round = 0; round < ROUNDS; round++) {
        clear();
        glDrawElements(GL_TRIANGLES, 599, GL_UNSIGNED_SHORT, shorts);
        say("client shorts");
        glDrawElements(GL_TRIANGLE_STRIP, 240, GL_UNSIGNED_BYTE, bytes);
        say("client bytes");
        glDrawRangeElements(GL_LINES, 0, VERTICES, 600, GL_UNSIGNED_INT, longs);
        say("client longs");
    }
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, buffer);
    glBufferData(GL_ELEMENT_ARRAY_BUFFER, sizeof shorts, shorts, GL_STATIC_DRAW);
    for (int round = 0; round < ROUNDS; round++) {
        clear();
        glDrawElements(GL_TRIANGLES, 300, GL_UNSIGNED_SHORT, (void *)60);
        say("buffer of shorts");
        glEnable(GL_PRIMITIVE_RESTART_FIXED_INDEX);
        glDrawElements(GL_TRIANGLE_STRIP, 300, GL_UNSIGNED_SHORT, (void *)0);
        glDisable(GL_PRIMITIVE_RESTART_FIXED_INDEX);
        say("restarts");
        glDrawElementsInstanced(GL_TRIANGLES, 300, GL_UNSIGNED_SHORT, (void *)0, 3);
        say("instances of a buffer");
    }
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, 0);
}

static void instances(void) {
    glEnableVertexAttribArray(1);
    glVertexAttribPointer(1, 1, GL_FLOAT, GL_FALSE, 0, shifts);
    glVertexAttribDivisor(1, 1);
    for (int round = 0; round < ROUNDS; round++) {
        clear();
        glDrawArraysInstanced(GL_TRIANGLES, 6, 99, 8);
        say("instances");
    }
    glVertexAttribDivisor(1, 0);
    glDisableVertexAttribArray(1);
}

static void queries(void) {
    GLuint query = 0, result = 0;
    glGenQueries(1, &query);
    for (int round = 0; round < ROUNDS; round++) {
        glBeginQuery(GL_PRIMITIVES_GENERATED, query);
        draw(GL_TRIANGLES, 0, 6, "counted");
        glEndQuery(GL_PRIMITIVES_GENERATED);
        glGetQueryObjectuiv(query, GL_QUERY_RESULT, &result);
        printf("primitives %u\n", result);
    }
    glDeleteQueries(1, &query);
    glGenQueries(1, &query);
    glBeginQuery(GL_ANY_SAMPLES_PASSED, query);
    draw(GL_TRIANGLES, 0, 6, "seen");
    glEndQuery(GL_ANY_SAMPLES_PASSED);
    glGetQueryObjectuiv(query, GL_QUERY_RESULT, &result);
    printf("seen %u\n", result);
    /* How long it took is not said. */
    glDeleteQueries(1, &query);
    glGenQueries(1, &query);
    glBeginQuery(GL_TIME_ELAPSED_EXT, query);
    draw(GL_TRIANGLES, 0, 6, "timed");
    glEndQuery(GL_TIME_ELAPSED_EXT);
    glGetQueryObjectuiv(query, GL_QUERY_RESULT, &result);
    printf("timed: error %#x\n", glGetError());
}

/* What was recorded, how many primitives that were, and what is seen. */
static void tell(const char *what, GLuint written, GLuint generated, size_t bytes) {
    uint64_t hash = 0;
    GLuint counts[2] = {0, 0};
    glGetQueryObjectuiv(written, GL_QUERY_RESULT, &counts[0]);
    glGetQueryObjectuiv(generated, GL_QUERY_RESULT, &counts[1]);
    const uint8_t *values = glMapBufferRange(GL_TRANSFORM_FEEDBACK_BUFFER, 0, (GLsizeiptr)bytes, GL_MAP_READ_BIT);
    for (size_t at = 0; at < bytes; at++) hash = hash * 31 + values[at];
    glUnmapBuffer(GL_TRANSFORM_FEEDBACK_BUFFER);
    printf("recorded %s: %u of %u, %016llx\n", what, counts[0], counts[1], (unsigned long long)hash);
    say(what);
}

/* Draws between the begin and the end of a recording, all of which go into one buffer. */
static void record(const char *what, GLenum mode, size_t bytes, void (*draws)(GLenum mode)) {
    GLuint queries[2], buffer = 0;
    static uint8_t zeros[VERTICES * 64];
    glGenQueries(2, queries);
    glGenBuffers(1, &buffer);
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, buffer);
    for (int round = 0; round < ROUNDS; round++) {
        clear();
        glBufferData(GL_TRANSFORM_FEEDBACK_BUFFER, (GLsizeiptr)bytes, zeros, GL_STATIC_READ);
        glBeginQuery(GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN, queries[0]);
        glBeginQuery(GL_PRIMITIVES_GENERATED, queries[1]);
        glBeginTransformFeedback(mode);
        draws(mode);
        glEndTransformFeedback();
        glEndQuery(GL_PRIMITIVES_GENERATED);
        glEndQuery(GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN);
        tell(what, queries[0], queries[1], bytes);
    }
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, 0);
    glDeleteBuffers(1, &buffer);
    glDeleteQueries(2, queries);
}

static void once(GLenum mode) { glDrawArrays(mode, 0, VERTICES - 1); }
static void twice(GLenum mode) { glDrawArrays(mode, 6, 301); once(mode); }
static void with_indices(GLenum mode) { glDrawElements(mode, 599, GL_UNSIGNED_SHORT, shorts); }
static void of_instances(GLenum mode) { glDrawArraysInstanced(mode, 0, 99, 3); once(mode); }
static void as_strip(GLenum mode) { glDrawArrays(mode == GL_LINES ? GL_LINE_STRIP : GL_TRIANGLE_STRIP, 0, 100); }
static void with_a_pause(GLenum mode) {
    glDrawArrays(mode, 0, 300);
    glPauseTransformFeedback();
    glDrawArrays(GL_TRIANGLES, 0, 6);
    glResumeTransformFeedback();
    glDrawArrays(mode, 6, 300);
}

static void recorded(void) {
    static const GLenum modes[] = {GL_POINTS, GL_LINES, GL_TRIANGLES};
    GLuint program = linked(VERTEX, FRAGMENT, "p");
    for (size_t at = 0; at < sizeof modes / sizeof *modes; at++) {
        record("list", modes[at], VERTICES * 32, once);
        record("lists", modes[at], VERTICES * 32, twice);
        record("indices", modes[at], VERTICES * 32, with_indices);
        record("instances", modes[at], VERTICES * 32, of_instances);
        record("pause", modes[at], VERTICES * 32, with_a_pause);
        record("too small", modes[at], 1000, twice);
        if (modes[at] != GL_POINTS) record("strip", modes[at], VERTICES * 32, as_strip);
    }
    glEnable(GL_RASTERIZER_DISCARD);
    record("nothing seen", GL_TRIANGLES, VERTICES * 32, once);
    glDisable(GL_RASTERIZER_DISCARD);
    glDeleteProgram(program);
}

static void counting(void) {
    GLuint buffer = 0, zero = 0;
    GLuint program = linked(
        "#version 310 es\nin vec4 at; out vec2 p; void main() { p = at.xy; gl_Position = vec4(at.xy, 0.0, 1.0); }",
        "#version 310 es\nprecision highp float; in vec2 p; out vec4 colour;"
        "layout(std430, binding = 0) buffer Counter { uint count; };"
        "void main() { float a = 0.0; " LOOPS " atomicAdd(count, 1u); colour = vec4(a); }", NULL);
    glGenBuffers(1, &buffer);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffer);
    glBufferData(GL_SHADER_STORAGE_BUFFER, 4, &zero, GL_DYNAMIC_READ);
    for (int round = 0; round < ROUNDS; round++) draw(GL_TRIANGLES, 0, 6, "counting shader");
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    const GLuint *count = glMapBufferRange(GL_SHADER_STORAGE_BUFFER, 0, 4, GL_MAP_READ_BIT);
    printf("fragments %u\n", count ? *count : 0);
    glUnmapBuffer(GL_SHADER_STORAGE_BUFFER);
    glDeleteProgram(program);
}

static void targets(GLuint program) {
    GLuint texture = 0, target = 0, samples = 0, many = 0;
    glUseProgram(program);
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, 70, 50);
    glGenFramebuffers(1, &target);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    draw(GL_TRIANGLES, 0, 300, "texture");
    glGenRenderbuffers(1, &samples);
    glBindRenderbuffer(GL_RENDERBUFFER, samples);
    glRenderbufferStorageMultisample(GL_RENDERBUFFER, 4, GL_RGBA8, 70, 50);
    glGenFramebuffers(1, &many);
    glBindFramebuffer(GL_FRAMEBUFFER, many);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, samples);
    for (int round = 0; round < ROUNDS; round++) {
        glBindFramebuffer(GL_FRAMEBUFFER, many);
        clear();
        glDrawArrays(GL_TRIANGLES, 0, 200);
        glBindFramebuffer(GL_DRAW_FRAMEBUFFER, target);
        glBlitFramebuffer(0, 0, 70, 50, 0, 0, 70, 50, GL_COLOR_BUFFER_BIT, GL_NEAREST);
        glBindFramebuffer(GL_FRAMEBUFFER, target);
        say("samples");
    }
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
}

/* Each error is there once. */
static void fetch(const char *what) {
    GLenum first = glGetError(), second = glGetError();
    printf("%s: %#x %#x\n", what, first, second);
}

static void errors(void) {
    GLuint empty = 0;
    glDrawArrays(99, 0, 6);
    say("wrong mode");
    glDrawArrays(GL_TRIANGLES, 0, -6);
    say("wrong count");
    glDrawElements(GL_TRIANGLES, 6, GL_FLOAT, shorts);
    say("wrong type");
    glGenFramebuffers(1, &empty);
    glBindFramebuffer(GL_FRAMEBUFFER, empty);
    glDrawArrays(GL_TRIANGLES, 0, 6);
    fetch("incomplete");
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    /* An error that the program has not fetched yet must be there afterwards. */
    glEnable(0x1234);
    glDrawArrays(GL_TRIANGLES, 0, 6);
    fetch("pending");
    say("after errors");
}

int main(void) {
    GLuint main_program;
    start();
    scatter();
    glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, 0, vertices);
    glEnableVertexAttribArray(0);
    main_program = linked(VERTEX, FRAGMENT, NULL);
    draw(GL_TRIANGLES, 0, 6, "quad");
    scissors();
    modes();
    tests();
    indexed();
    instances();
    queries();
    recorded();
    counting();
    targets(main_program);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    errors();
    return 0;
}
