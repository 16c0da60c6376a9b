/* Sequences of calls made by a seed: programs, states, targets and commands of all kinds, some of them wrong.
 * Arguments: the first seed, how many, and how many commands each has. Images, buffers, counts and errors are said. */
#include "trap.h"
#include <GLES3/gl32.h>

#define SIDE 48
#define WORDS 1024
#define VERTICES 240
#define PROGRAMS 6
#define TARGETS 4

static uint32_t seed;
static uint32_t roll(uint32_t below) {
    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
    return below ? (seed >> 3) % below : seed;
}
static int one_in(uint32_t many) { return roll(many) == 0; }
static float fraction(void) { return (float)roll(4096) / 4096.0f; }
#define PICK(list) list[roll(sizeof list / sizeof *list)]

static GLuint programs[PROGRAMS], recorder, computer, textures[2], targets[TARGETS], images[TARGETS], deeps[TARGETS];
static GLuint storage, recorded, vertices, elements, parameters, queries[2], arrays;
static GLfloat places[VERTICES * 4];
static GLushort shorts[VERTICES];
static GLuint longs[VERTICES];

/* An expression of floats that stays small and means the same however often it is computed. */
static void expression(char *text, size_t room, int depth) {
    static const char *leaves[] = {"p.x", "p.y", "q", "gl_FragCoord.x * 0.02", "gl_FragCoord.y * 0.03", "float(number)",
                                   "(gl_FrontFacing ? 0.3 : 0.6)", "dFdx(p.y)", "texture(picture, p).x",
                                   "texelFetch(picture, ivec2(gl_FragCoord.xy) & 15, 0).y", "0.37"};
    static const char *joints[] = {"(%s) + (%s)", "(%s) * (%s)", "max(%s, %s)", "sin((%s) * 3.0) - (%s)",
                                   "mix(%s, %s, 0.4)", "((%s) > (%s) ? q : p.x)"};
    char left[600], right[600];
    if (depth == 0 || one_in(4)) {
        snprintf(text, room, "%s", PICK(leaves));
        return;
    }
    expression(left, sizeof left, depth - 1);
    expression(right, sizeof right, depth - 1);
    if ((size_t)snprintf(text, room, PICK(joints), left, right) >= room) snprintf(text, room, "q");
}

static GLuint made_of(GLenum first, const char *one, GLenum second, const char *two, const char *varying) {
    GLuint made = glCreateProgram();
    GLint status = 0;
    glAttachShader(made, shader(first, one));
    if (two) glAttachShader(made, shader(second, two));
    if (varying) glTransformFeedbackVaryings(made, 1, &varying, GL_INTERLEAVED_ATTRIBS);
    glLinkProgram(made);
    glGetProgramiv(made, GL_LINK_STATUS, &status);
    if (!status) {
        char log[2000];
        glGetProgramInfoLog(made, sizeof log, NULL, log);
        fprintf(stderr, "%s\n%s\n%s\n", one, two ? two : "", log);
        die("linking");
    }
    return made;
}

#define VERTEX \
    "#version 320 es\nlayout(location = 0) in vec4 at; layout(location = 1) in float shift; out vec2 p; flat out float q;" \
    "uniform float turn; flat out int number;" \
    "void main() { p = at.xy + shift; q = float(gl_VertexID % 9) * 0.1 + float(gl_InstanceID); number = gl_VertexID & 3;" \
    "gl_PointSize = 3.0 + at.w; gl_Position = vec4(at.xy * turn + vec2(shift, 0.05 * float(gl_InstanceID)), at.z, 1.0); }"

static GLuint random_program(void) {
    char body[1400], whole[3000];
    const int kind = (int)roll(8);
    expression(body, sizeof body, 3);
    snprintf(whole, sizeof whole,
             "#version 320 es\nprecision highp float; precision highp int; in vec2 p; flat in float q; flat in int number;"
             "uniform sampler2D picture; layout(location = 0) out vec4 colour;%s\n"
             "void main() { float a = %s; for (int i = 0; i < %u; i++) a = sin(a * 1.3 + float(i) * 0.01) + 0.2 * p.x;%s"
             " colour = vec4(0.5 + 0.5 * sin(a + vec3(0.0, 1.1, 2.3)), fract(a)); }",
             kind == 0 ? "layout(std430, binding = 1) buffer Store { uint words[]; };" : "", body, 10 + roll(60),
             kind == 0   ? "atomicAdd(words[int(gl_FragCoord.x) & 1023], uint(number) + 1u);"
             : kind == 1 ? "if (fract(a * 7.0) < 0.3) discard;"
             : kind == 2 ? "gl_FragDepth = fract(a * 0.5);"
             : kind == 3 ? "a += float(gl_PrimitiveID) * 0.1;"
                         : "");
    return made_of(GL_VERTEX_SHADER, VERTEX, GL_FRAGMENT_SHADER, whole, NULL);
}

static GLuint random_computer(void) {
    char whole[2000];
    snprintf(whole, sizeof whole,
             "#version 320 es\nlayout(local_size_x = %u, local_size_y = %u) in; shared uint sums[64];\n"
             "layout(std430, binding = 1) buffer Store { uint words[]; };\n"
             "void main() { uint at = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * %uu;"
             "uint a = gl_GlobalInvocationID.x * 31u + gl_GlobalInvocationID.y;"
             "for (int i = 0; i < %u; i++) a = a * 1664525u + 1013904223u;"
             "sums[gl_LocalInvocationIndex] = a >> 20; barrier();"
             "if (gl_LocalInvocationIndex == 0u) { uint all = 0u; for (uint i = 0u; i < gl_WorkGroupSize.x; i++) all += sums[i];"
             "atomicAdd(words[at & 1023u], all); atomicMax(words[1023], a); } }",
             1u << roll(4), 1u << roll(3), 1 + roll(5), 20 + roll(400));
    return made_of(GL_COMPUTE_SHADER, whole, 0, NULL, NULL);
}

static uint64_t mixed(uint64_t hash, const void *bytes, size_t size) {
    const uint32_t *words = bytes;
    for (size_t at = 0; at < size / 4; at++) hash = (hash ^ words[at]) * 0x100000001b3u, hash ^= hash >> 29;
    return hash;
}

static uint64_t inside(uint64_t hash, GLuint buffer) {
    glBindBuffer(GL_COPY_READ_BUFFER, buffer);
    const void *bytes = glMapBufferRange(GL_COPY_READ_BUFFER, 0, WORDS * 4, GL_MAP_READ_BIT);
    if (bytes) hash = mixed(hash, bytes, WORDS * 4);
    glUnmapBuffer(GL_COPY_READ_BUFFER);
    return hash;
}

/* Everything that can be seen. Samples are told through a blit. */
static void tell(const char *what, uint32_t number) {
    static uint8_t pixels[SIDE * SIDE * 4];
    uint64_t hash = 0xcbf29ce484222325u;
    GLenum error = glGetError();
    glDisable(GL_SCISSOR_TEST);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, targets[0]);
    for (int at = 0; at < TARGETS; at++) {
        glBindFramebuffer(GL_READ_FRAMEBUFFER, targets[at]);
        if (at == 3) {
            glBlitFramebuffer(0, 0, SIDE, SIDE, 0, 0, SIDE, SIDE, GL_COLOR_BUFFER_BIT, GL_NEAREST);
            glBindFramebuffer(GL_READ_FRAMEBUFFER, targets[0]);
        }
        glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
        hash = mixed(hash, pixels, sizeof pixels);
    }
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
    hash = inside(inside(hash, storage), recorded);
    printf("%s %u: error %#x %#x, %016llx\n", what, number, error, glGetError(), (unsigned long long)hash);
    fflush(stdout);
}

static void aim(void) { glBindFramebuffer(GL_FRAMEBUFFER, targets[roll(TARGETS)]); }

static void random_state(void) {
    static const GLenum tests[] = {GL_ALWAYS, GL_LESS, GL_LEQUAL, GL_GREATER, GL_NOTEQUAL};
    static const GLenum operations[] = {GL_KEEP, GL_INCR, GL_INVERT, GL_REPLACE, GL_DECR_WRAP};
    static const GLenum factors[] = {GL_ONE, GL_ZERO, GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA, GL_DST_COLOR, GL_CONSTANT_COLOR};
    static const GLenum equations[] = {GL_FUNC_ADD, GL_FUNC_SUBTRACT, GL_MIN, GL_MAX};
    static const GLenum switches[] = {GL_DEPTH_TEST, GL_STENCIL_TEST, GL_BLEND, GL_CULL_FACE, GL_SCISSOR_TEST, GL_DITHER,
                                      GL_POLYGON_OFFSET_FILL, GL_PRIMITIVE_RESTART_FIXED_INDEX, GL_SAMPLE_ALPHA_TO_COVERAGE};
    switch (roll(12)) {
    case 0: case 1: case 2: glEnable(PICK(switches)); break;
    case 3: case 4: glDisable(PICK(switches)); break;
    case 5: glDepthFunc(PICK(tests)), glDepthMask((GLboolean)roll(2)); break;
    case 6: glStencilFunc(PICK(tests), (GLint)roll(4), 0xff), glStencilOp(PICK(operations), PICK(operations), PICK(operations)); break;
    case 7: glBlendFunc(PICK(factors), PICK(factors)), glBlendEquation(PICK(equations)); break;
    case 8: glScissor((GLint)roll(SIDE) - 8, (GLint)roll(SIDE) - 8, (GLsizei)roll(SIDE + 20), (GLsizei)roll(SIDE + 20)); break;
    case 9: glViewport((GLint)roll(20) - 10, (GLint)roll(20) - 10, SIDE + (GLsizei)roll(20), SIDE - (GLsizei)roll(20)); break;
    case 10: glColorMask((GLboolean)roll(3), 1, (GLboolean)roll(3), 1); break;
    case 11: glLineWidth(1.0f + 3.0f * (float)roll(2)), glFrontFace(roll(2) ? GL_CW : GL_CCW), glPolygonOffset(fraction(), 1.0f); break;
    }
}

static void random_draw(GLenum only) {
    static const GLenum modes[] = {GL_TRIANGLES, GL_TRIANGLES, GL_POINTS, GL_LINES, GL_LINE_STRIP, GL_LINE_LOOP, GL_TRIANGLE_STRIP,
                                   GL_TRIANGLE_FAN};
    const GLenum mode = only ? only : PICK(modes), kind = roll(2) ? GL_UNSIGNED_SHORT : GL_UNSIGNED_INT;
    const GLint first = (GLint)roll(40), count = (GLint)roll(VERTICES - 40) + 1, many = (GLint)roll(3) + 1;
    const void *from = (void *)(uintptr_t)(kind == GL_UNSIGNED_SHORT ? first * 2 : VERTICES * 2 + first * 4);
    GLuint words[10] = {(GLuint)count, (GLuint)many, (GLuint)first, 0, 0};
    GLint starts[3] = {first, 0, 30}, counts[3] = {30, count % 60, 9};
    switch (roll(only ? 3 : 10)) {
    case 0: glDrawArrays(mode, first, count); break;
    case 1: glDrawElements(mode, count, kind, from); break;
    case 2: glDrawRangeElements(mode, 0, VERTICES, count, kind, from); break;
    case 3: glDrawArraysInstanced(mode, first, count, many); break;
    case 4: glDrawElementsInstanced(mode, count, kind, from, many); break;
    case 5: glDrawElementsBaseVertex(mode, count, kind, from, (GLint)roll(30)); break;
    case 6: glDrawElementsInstancedBaseVertex(mode, count, kind, from, many, (GLint)roll(30)); break;
    case 7: glBufferSubData(GL_DRAW_INDIRECT_BUFFER, 0, sizeof words, words), glDrawArraysIndirect(mode, NULL); break;
    case 8:
        if (kind == GL_UNSIGNED_INT) words[2] += VERTICES / 2;
        words[3] = roll(20);
        glBufferSubData(GL_DRAW_INDIRECT_BUFFER, 0, sizeof words, words), glDrawElementsIndirect(mode, kind, NULL);
        break;
    case 9: ((PFNGLMULTIDRAWARRAYSEXTPROC)eglGetProcAddress("glMultiDrawArraysEXT"))(mode, starts, counts, 3); break;
    }
}

static void use_any(void) {
    GLuint name = programs[roll(PROGRAMS)];
    glUseProgram(name);
    glUniform1f(glGetUniformLocation(name, "turn"), 0.5f + fraction());
    glBindTexture(GL_TEXTURE_2D, textures[roll(2)]);
}

static void random_query(uint32_t number) {
    static const GLenum kinds[] = {GL_ANY_SAMPLES_PASSED, GL_PRIMITIVES_GENERATED};
    const uint32_t which = roll(2);
    GLuint result = 0;
    glBeginQuery(kinds[which], queries[which]);
    use_any();
    random_draw(0);
    random_draw(0);
    glEndQuery(kinds[which]);
    glGetQueryObjectuiv(queries[which], GL_QUERY_RESULT, &result);
    printf("query %u: %u\n", number, result);
}

static void random_recording(void) {
    static const GLenum modes[] = {GL_POINTS, GL_LINES, GL_TRIANGLES};
    const GLenum mode = PICK(modes);
    const int unseen = (int)roll(2);
    glUseProgram(recorder);
    glUniform1f(glGetUniformLocation(recorder, "turn"), fraction());
    if (unseen) glEnable(GL_RASTERIZER_DISCARD);
    glBeginTransformFeedback(mode);
    random_draw(mode);
    if (one_in(3)) glPauseTransformFeedback(), random_draw(0), glResumeTransformFeedback();
    random_draw(mode);
    glEndTransformFeedback();
    glDisable(GL_RASTERIZER_DISCARD);
}

static void random_copy(void) {
    const GLint x = (GLint)roll(20), y = (GLint)roll(20);
    const uint32_t from = roll(3), to = (from + 1 + roll(2)) % 3;
    switch (roll(5)) {
    case 0:
        glBindFramebuffer(GL_READ_FRAMEBUFFER, targets[from]);
        glBindFramebuffer(GL_DRAW_FRAMEBUFFER, targets[to]);
        glBlitFramebuffer(x, y, SIDE, SIDE - y, SIDE - x, 0, y, SIDE, GL_COLOR_BUFFER_BIT, roll(2) ? GL_LINEAR : GL_NEAREST);
        aim();
        break;
    case 1:
        glBindFramebuffer(GL_READ_FRAMEBUFFER, targets[from]);
        glBindTexture(GL_TEXTURE_2D, textures[roll(2)]);
        glCopyTexSubImage2D(GL_TEXTURE_2D, 0, x, y, 0, 0, 16, 16);
        aim();
        break;
    case 2: glBindTexture(GL_TEXTURE_2D, textures[roll(2)]), glGenerateMipmap(GL_TEXTURE_2D); break;
    case 3: glCopyBufferSubData(GL_SHADER_STORAGE_BUFFER, GL_TRANSFORM_FEEDBACK_BUFFER, x * 4, y * 4, 400); break;
    case 4:
        glBindTexture(GL_TEXTURE_2D, textures[roll(2)]);
        glTexSubImage2D(GL_TEXTURE_2D, 0, x, y, 16, 16, GL_RGBA, GL_UNSIGNED_BYTE, places);
        break;
    }
}

/* Calls that GL refuses: the error must be there when it is fetched, and not before. */
static void wrong(uint32_t number) {
    switch (roll(6)) {
    case 0: glDrawArrays(GL_TRIANGLES, -1, 30); break;
    case 1: glDrawElements(77, 30, GL_UNSIGNED_SHORT, NULL); break;
    case 2: glDrawElementsBaseVertex(GL_TRIANGLES, 30, GL_FLOAT, NULL, 1); break;
    case 3: glDrawArraysIndirect(GL_TRIANGLES, (void *)(uintptr_t)(2 + 4 * roll(3))); break;
    case 4: glUseProgram(computer), glDrawArrays(GL_TRIANGLES, 0, 30), use_any(); break;
    case 5: glBeginTransformFeedback(GL_POINTS), use_any(), random_draw(GL_POINTS), glEndTransformFeedback(); break;
    }
    if (roll(2)) {
        random_draw(0);
        printf("wrong %u: %#x\n", number, glGetError());
    }
}

static void command(uint32_t number) {
    switch (roll(16)) {
    case 0: case 1: random_state(); break;
    case 2: aim(); break;
    case 3: glClear(roll(2) ? GL_COLOR_BUFFER_BIT : GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT); break;
    case 4: glUseProgram(computer), glDispatchCompute(1 + roll(30), 1 + roll(12), 1), glMemoryBarrier(GL_ALL_BARRIER_BITS); break;
    case 5: random_copy(); break;
    case 6: random_recording(); break;
    case 7: random_query(number); break;
    case 8: if (one_in(2)) wrong(number); else tell("state", number); break;
    default:
        use_any();
        for (uint32_t again = roll(3); again < 3; again++) random_draw(0);
        /* Shaders of two draws may write to the same memory. */
        glMemoryBarrier(GL_ALL_BARRIER_BITS);
    }
}

static void make_targets(void) {
    glGenFramebuffers(TARGETS - 1, targets + 1);
    glGenFramebuffers(1, targets);
    glGenTextures(TARGETS, images);
    glGenRenderbuffers(TARGETS, deeps);
    for (int at = 0; at < TARGETS; at++) {
        const GLsizei samples = at == 3 ? 4 : 0;
        glBindFramebuffer(GL_FRAMEBUFFER, targets[at]);
        glBindRenderbuffer(GL_RENDERBUFFER, deeps[at]);
        glRenderbufferStorageMultisample(GL_RENDERBUFFER, samples, GL_DEPTH24_STENCIL8, SIDE, SIDE);
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_STENCIL_ATTACHMENT, GL_RENDERBUFFER, deeps[at]);
        if (samples) {
            glBindTexture(GL_TEXTURE_2D_MULTISAMPLE, images[at]);
            glTexStorage2DMultisample(GL_TEXTURE_2D_MULTISAMPLE, samples, GL_RGBA8, SIDE, SIDE, 1);
            glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D_MULTISAMPLE, images[at], 0);
        } else {
            glBindTexture(GL_TEXTURE_2D, images[at]);
            glTexStorage2D(GL_TEXTURE_2D, 1, at == 2 ? GL_RGB565 : GL_RGBA8, SIDE, SIDE);
            glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, images[at], 0);
        }
        glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT);
    }
}

static void make_buffers(void) {
    GLuint names[5];
    static GLuint zeros[WORDS];
    for (int at = 0; at < VERTICES * 4; at++) places[at] = fraction() * 2.2f - 1.1f;
    for (int at = 0; at < VERTICES; at++) longs[at] = shorts[at] = one_in(50) ? 0xffff : (GLushort)roll(VERTICES - 40);
    for (int at = 0; at < VERTICES; at++) if (shorts[at] == 0xffff) longs[at] = 0xffffffff;
    glGenBuffers(5, names);
    storage = names[0], recorded = names[1], vertices = names[2], elements = names[3], parameters = names[4];
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, storage);
    glBufferData(GL_SHADER_STORAGE_BUFFER, sizeof zeros, zeros, GL_DYNAMIC_COPY);
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, recorded);
    glBufferData(GL_TRANSFORM_FEEDBACK_BUFFER, sizeof zeros, zeros, GL_DYNAMIC_COPY);
    glBindBuffer(GL_DRAW_INDIRECT_BUFFER, parameters);
    glBufferData(GL_DRAW_INDIRECT_BUFFER, 40, zeros, GL_DYNAMIC_DRAW);
    glGenVertexArrays(1, &arrays);
    glBindVertexArray(arrays);
    glBindBuffer(GL_ARRAY_BUFFER, vertices);
    glBufferData(GL_ARRAY_BUFFER, sizeof places, places, GL_STATIC_DRAW);
    glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, 16, NULL);
    glVertexAttribPointer(1, 1, GL_FLOAT, GL_FALSE, 32, (void *)8);
    glVertexAttribDivisor(1, 1);
    glEnableVertexAttribArray(0);
    glEnableVertexAttribArray(1);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, elements);
    glBufferData(GL_ELEMENT_ARRAY_BUFFER, sizeof shorts + sizeof longs, NULL, GL_STATIC_DRAW);
    glBufferSubData(GL_ELEMENT_ARRAY_BUFFER, 0, sizeof shorts, shorts);
    glBufferSubData(GL_ELEMENT_ARRAY_BUFFER, sizeof shorts, sizeof longs, longs);
}

static void make_all(void) {
    static uint8_t texels[64 * 64 * 4];
    make_targets();
    make_buffers();
    for (size_t at = 0; at < sizeof texels; at++) texels[at] = (uint8_t)roll(256);
    glGenTextures(2, textures);
    for (int at = 0; at < 2; at++) {
        glBindTexture(GL_TEXTURE_2D, textures[at]);
        glTexStorage2D(GL_TEXTURE_2D, 4, GL_RGBA8, 64, 64);
        glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 64, 64, GL_RGBA, GL_UNSIGNED_BYTE, texels);
        glGenerateMipmap(GL_TEXTURE_2D);
    }
    glGenQueries(2, queries);
    for (int at = 0; at < PROGRAMS; at++) programs[at] = random_program();
    computer = random_computer();
    recorder = made_of(GL_VERTEX_SHADER, VERTEX, GL_FRAGMENT_SHADER,
                       "#version 320 es\nprecision highp float; in vec2 p; flat in float q; out vec4 colour;"
                       "void main() { colour = vec4(p, q, 1.0); }", "p");
}

int main(int count, char **arguments) {
    const uint32_t from = count > 1 ? (uint32_t)atoi(arguments[1]) : 1, many = count > 2 ? (uint32_t)atoi(arguments[2]) : 1;
    const uint32_t length = count > 3 ? (uint32_t)atoi(arguments[3]) : 60;
    client_version = 3;
    start();
    for (uint32_t number = from; number < from + many; number++) {
        EGLContext own = new_context(EGL_NO_CONTEXT);
        seed = number * 2654435761u | 1u;
        if (!eglMakeCurrent(display, surface, surface, own)) die("eglMakeCurrent");
        make_all();
        aim();
        for (uint32_t at = 0; at < length; at++) command(at);
        tell("sequence", number);
        if (!eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
        eglDestroyContext(display, own);
    }
    return 0;
}
