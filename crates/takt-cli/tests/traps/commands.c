/* Each command of GL ES 3.2 that gives the GPU work, by its name, in a group of its own: what it leaves behind is said.
 * Commands that only end groups come after a marker: a draw that is never cut, of as many points as a number tells. */
#include "trap.h"
#include <GLES3/gl32.h>

#define ROUNDS 3
#define SIDE 1024
#define WIDE 512 /* of pixels that have 16 bytes each */
#define LOOPS "for (int i = 0; i < 60; i++) { a = sin(a * 0.9 + p.x) + 0.7 * sin(a - p.y * 1.3); }"
#define VERTICES 600

static GLuint drawing, computing, textured;
static GLfloat places[VERTICES * 2];
static GLushort indices[VERTICES];
static uint8_t texels[SIDE * SIDE * 4];
static GLuint vertices, elements, parameters, storage, target, canvas, query;

static GLuint linked(const char *vertex, const char *fragment) {
    GLuint made = glCreateProgram();
    GLint status = 0;
    if (vertex) {
        glAttachShader(made, shader(GL_VERTEX_SHADER, vertex));
        glAttachShader(made, shader(GL_FRAGMENT_SHADER, fragment));
    } else {
        glAttachShader(made, shader(GL_COMPUTE_SHADER, fragment));
    }
    glLinkProgram(made);
    glGetProgramiv(made, GL_LINK_STATUS, &status);
    if (!status) die("linking");
    return made;
}

static void hashed(const char *what, const void *bytes, size_t size) {
    uint64_t hash = 0xcbf29ce484222325u;
    const uint32_t *words = bytes;
    for (size_t at = 0; bytes && at < size / 4; at++) hash = (hash ^ words[at]) * 0x100000001b3u;
    printf("%s: error %#x, bytes %016llx\n", what, glGetError(), (unsigned long long)hash);
}

/* What is in a level of a texture, or in a layer of it. */
static void show(const char *what, GLuint texture, GLint level, GLint layer, GLsizei side) {
    static uint8_t pixels[SIDE * SIDE * 4];
    GLuint reader = 0;
    glGenFramebuffers(1, &reader);
    glBindFramebuffer(GL_FRAMEBUFFER, reader);
    if (layer < 0) glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, level);
    else glFramebufferTextureLayer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, texture, level, layer);
    glReadPixels(0, 0, side, side, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    hashed(what, pixels, (size_t)side * (size_t)side * 4);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glDeleteFramebuffers(1, &reader);
}

static void inside(const char *what, GLenum point, size_t size) {
    hashed(what, glMapBufferRange(point, 0, (GLsizeiptr)size, GL_MAP_READ_BIT), size);
    glUnmapBuffer(point);
}

/* A texture that lasts for one round. */
static GLuint fresh(GLenum kind) {
    GLuint made = 0;
    glGenTextures(1, &made);
    glBindTexture(kind, made);
    glTexParameteri(kind, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    return made;
}

static GLuint plain(GLsizei levels) {
    GLuint made = fresh(GL_TEXTURE_2D);
    glTexStorage2D(GL_TEXTURE_2D, levels, GL_RGBA8, SIDE, SIDE);
    return made;
}

static GLuint solid(void) {
    GLuint made = fresh(GL_TEXTURE_3D);
    glTexStorage3D(GL_TEXTURE_3D, 1, GL_RGBA8, 128, 128, 64);
    return made;
}

static void clear(void) { glClear(GL_COLOR_BUFFER_BIT); }
static void begin(void) { glFinish(); }

static void draw(void) {
    clear();
    glUseProgram(drawing);
    begin();
}

static void glDrawArrays_(const char *name) { draw(); glDrawArrays(GL_TRIANGLES, 0, 300); say(name); }
static void glDrawElements_(const char *name) { draw(); glDrawElements(GL_TRIANGLES, 300, GL_UNSIGNED_SHORT, (void *)6); say(name); }
static void glDrawRangeElements_(const char *name) { draw(); glDrawRangeElements(GL_TRIANGLES, 0, VERTICES, 303, GL_UNSIGNED_SHORT, (void *)0); say(name); }
static void glDrawArraysInstanced_(const char *name) { draw(); glDrawArraysInstanced(GL_TRIANGLES, 0, 96, 3); say(name); }
static void glDrawElementsInstanced_(const char *name) { draw(); glDrawElementsInstanced(GL_TRIANGLES, 96, GL_UNSIGNED_SHORT, (void *)0, 3); say(name); }
static void glDrawElementsBaseVertex_(const char *name) { draw(); glDrawElementsBaseVertex(GL_TRIANGLES, 300, GL_UNSIGNED_SHORT, (void *)0, 17); say(name); }
static void glDrawRangeElementsBaseVertex_(const char *name) { draw(); glDrawRangeElementsBaseVertex(GL_TRIANGLES, 0, 500, 300, GL_UNSIGNED_SHORT, (void *)0, 5); say(name); }
static void glDrawElementsInstancedBaseVertex_(const char *name) { draw(); glDrawElementsInstancedBaseVertex(GL_TRIANGLES, 96, GL_UNSIGNED_SHORT, (void *)0, 2, 9); say(name); }

static void given(const GLuint *words, size_t count, GLenum point) {
    glBindBuffer(point, parameters);
    glBufferData(point, (GLsizeiptr)(count * 4), words, GL_STATIC_DRAW);
}

static void glDrawArraysIndirect_(const char *name) {
    static const GLuint words[] = {7, 96, 2, 3, 0};
    given(words, 5, GL_DRAW_INDIRECT_BUFFER);
    draw();
    glDrawArraysIndirect(GL_TRIANGLES, (void *)4);
    say(name);
}

static void glDrawElementsIndirect_(const char *name) {
    static const GLuint words[] = {96, 2, 6, 4, 0};
    given(words, 5, GL_DRAW_INDIRECT_BUFFER);
    draw();
    glDrawElementsIndirect(GL_TRIANGLES, GL_UNSIGNED_SHORT, (void *)0);
    say(name);
}

static const GLint firsts[] = {0, 30, 60, 150}, many[] = {30, 0, 90, 60};
static void *const starts[] = {(void *)0, (void *)60, (void *)30, (void *)12};
static const GLuint commands[4][5] = {{30, 1, 0, 0, 0}, {60, 2, 30, 0, 0}, {0, 1, 0, 0, 0}, {90, 1, 12, 3, 0}};

#define FOUND(kind, name) kind found = (kind)eglGetProcAddress(#name)
static void glMultiDrawArraysEXT_(const char *name) {
    FOUND(PFNGLMULTIDRAWARRAYSEXTPROC, glMultiDrawArraysEXT);
    draw();
    found(GL_TRIANGLES, firsts, many, 4);
    say(name);
}

static void glMultiDrawElementsEXT_(const char *name) {
    FOUND(PFNGLMULTIDRAWELEMENTSEXTPROC, glMultiDrawElementsEXT);
    draw();
    found(GL_TRIANGLES, many, GL_UNSIGNED_SHORT, (const void *const *)starts, 4);
    say(name);
}

static void glMultiDrawElementsBaseVertexEXT_(const char *name) {
    FOUND(PFNGLMULTIDRAWELEMENTSBASEVERTEXEXTPROC, glMultiDrawElementsBaseVertexEXT);
    draw();
    found(GL_TRIANGLES, many, GL_UNSIGNED_SHORT, (const void *const *)starts, 4, firsts);
    say(name);
}

static void glMultiDrawArraysIndirectEXT_(const char *name) {
    FOUND(PFNGLMULTIDRAWARRAYSINDIRECTEXTPROC, glMultiDrawArraysIndirectEXT);
    given(commands[0], 20, GL_DRAW_INDIRECT_BUFFER);
    draw();
    found(GL_TRIANGLES, (void *)0, 4, 20);
    say(name);
}

static void glMultiDrawElementsIndirectEXT_(const char *name) {
    FOUND(PFNGLMULTIDRAWELEMENTSINDIRECTEXTPROC, glMultiDrawElementsIndirectEXT);
    given(commands[0], 20, GL_DRAW_INDIRECT_BUFFER);
    draw();
    found(GL_TRIANGLES, GL_UNSIGNED_SHORT, (void *)0, 4, 0);
    say(name);
}

static void glDrawArraysInstancedBaseInstanceEXT_(const char *name) {
    FOUND(PFNGLDRAWARRAYSINSTANCEDBASEINSTANCEEXTPROC, glDrawArraysInstancedBaseInstanceEXT);
    draw();
    found(GL_TRIANGLES, 0, 96, 2, 1);
    say(name);
}

static void dispatch(const char *name, int indirect) {
    static const GLuint groups[] = {64, 8, 1};
    glUseProgram(computing);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, storage);
    given(groups, 3, GL_DISPATCH_INDIRECT_BUFFER);
    begin();
    if (indirect) glDispatchComputeIndirect(0);
    else glDispatchCompute(64, 8, 1);
    glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    inside(name, GL_SHADER_STORAGE_BUFFER, 64 * 8 * 64 * 4);
}
static void glDispatchCompute_(const char *name) { dispatch(name, 0); }
static void glDispatchComputeIndirect_(const char *name) { dispatch(name, 1); }

/* A large texture that is cleared, within the scissor in every second round. */
static GLuint large(GLuint *whole) {
    static int round;
    GLuint made = plain(1);
    glGenFramebuffers(1, whole);
    glBindFramebuffer(GL_FRAMEBUFFER, *whole);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, made, 0);
    clear();
    glScissor(1, 9, SIDE - 3, SIDE - 10);
    if (round++ % 2) glEnable(GL_SCISSOR_TEST);
    begin();
    return made;
}

static void shown(const char *name, GLuint made, GLuint whole) {
    glDisable(GL_SCISSOR_TEST);
    show(name, made, 0, -1, SIDE);
    glDeleteFramebuffers(1, &whole);
    glDeleteTextures(1, &made);
}

static void glClear_(const char *name) {
    GLuint whole = 0, made = large(&whole);
    glClearColor(0.7f, 0.1f, 0.9f, 0.45f);
    clear();
    glClearColor(0, 0, 0, 0);
    shown(name, made, whole);
}

/* The surface has a depth, and formats of whole numbers want targets of their own. */
static void cleared(const char *name, GLenum format) {
    GLuint made = fresh(GL_TEXTURE_2D), whole = 0;
    static GLint pixels[WIDE * WIDE * 4];
    glTexStorage2D(GL_TEXTURE_2D, 1, format, WIDE, WIDE);
    glGenFramebuffers(1, &whole);
    glBindFramebuffer(GL_FRAMEBUFFER, whole);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, made, 0);
    begin();
    if (format == GL_RGBA32I) glClearBufferiv(GL_COLOR, 0, (const GLint[]){-1, 2, 3, 4});
    else glClearBufferuiv(GL_COLOR, 0, (const GLuint[]){5, 6, 7, 8});
    glReadPixels(0, 0, WIDE, WIDE, GL_RGBA_INTEGER, format == GL_RGBA32I ? GL_INT : GL_UNSIGNED_INT, pixels);
    hashed(name, pixels, sizeof pixels);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glDeleteFramebuffers(1, &whole);
    glDeleteTextures(1, &made);
}
static void glClearBufferiv_(const char *name) { cleared(name, GL_RGBA32I); }
static void glClearBufferuiv_(const char *name) { cleared(name, GL_RGBA32UI); }
static void glClearBufferfv_(const char *name) {
    GLuint whole = 0, made = large(&whole);
    glClearBufferfv(GL_COLOR, 0, (const GLfloat[]){0.7f, 0.1f, 0.9f, 0.45f});
    shown(name, made, whole);
}
static void glClearBufferfi_(const char *name) {
    GLuint deep = 0;
    glGenRenderbuffers(1, &deep);
    glBindRenderbuffer(GL_RENDERBUFFER, deep);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_DEPTH24_STENCIL8, SIDE, SIDE);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_STENCIL_ATTACHMENT, GL_RENDERBUFFER, deep);
    clear();
    begin();
    glClearBufferfi(GL_DEPTH_STENCIL, 0, 0.25f, 7);
    glEnable(GL_DEPTH_TEST);
    glUseProgram(drawing);
    glDrawArrays(GL_TRIANGLES, 0, 300);
    glDisable(GL_DEPTH_TEST);
    say(name);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_STENCIL_ATTACHMENT, GL_RENDERBUFFER, 0);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glDeleteRenderbuffers(1, &deep);
}

/* The large target is what is copied from; its upper half is of one colour. */
static void from_target(void) {
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glEnable(GL_SCISSOR_TEST);
    glScissor(0, SIDE / 2, SIDE, SIDE / 2);
    glClearColor(0.7f, 0.1f, 0.9f, 1.0f);
    clear();
    glClearColor(0, 0, 0, 0);
    glDisable(GL_SCISSOR_TEST);
    begin();
}

static void glBlitFramebuffer_(const char *name) {
    GLuint made = plain(1), to = 0;
    from_target();
    glGenFramebuffers(1, &to);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, to);
    glFramebufferTexture2D(GL_DRAW_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, made, 0);
    glBlitFramebuffer(0, 0, SIDE, SIDE, SIDE, 3, 1, SIDE - 5, GL_COLOR_BUFFER_BIT, GL_LINEAR);
    show(name, made, 0, -1, SIDE);
    glDeleteFramebuffers(1, &to);
    glDeleteTextures(1, &made);
}

static void glGenerateMipmap_(const char *name) {
    GLuint made = plain(11);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    begin();
    glGenerateMipmap(GL_TEXTURE_2D);
    show(name, made, 1, -1, SIDE / 2);
    show(name, made, 5, -1, SIDE / 32);
    glDeleteTextures(1, &made);
}

static void glTexImage2D_(const char *name) {
    GLuint made = fresh(GL_TEXTURE_2D);
    begin();
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, SIDE, SIDE, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    show(name, made, 0, -1, SIDE);
    glDeleteTextures(1, &made);
}

static void glTexSubImage2D_(const char *name) {
    GLuint made = plain(1);
    begin();
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    show(name, made, 0, -1, SIDE);
    glDeleteTextures(1, &made);
}

static void glTexImage3D_(const char *name) {
    GLuint made = fresh(GL_TEXTURE_3D);
    begin();
    glTexImage3D(GL_TEXTURE_3D, 0, GL_RGBA8, 128, 128, 64, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    show(name, made, 0, 63, 128);
    glDeleteTextures(1, &made);
}

static void glTexSubImage3D_(const char *name) {
    GLuint made = solid();
    begin();
    glTexSubImage3D(GL_TEXTURE_3D, 0, 0, 0, 0, 128, 128, 64, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    show(name, made, 0, 17, 128);
    glDeleteTextures(1, &made);
}

static void glCopyTexImage2D_(const char *name) {
    GLuint made = fresh(GL_TEXTURE_2D);
    from_target();
    glCopyTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 0, 0, SIDE, SIDE, 0);
    show(name, made, 0, -1, SIDE);
    glDeleteTextures(1, &made);
}

static void glCopyTexSubImage2D_(const char *name) {
    GLuint made = plain(1);
    from_target();
    glCopyTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 0, 0, SIDE, SIDE);
    show(name, made, 0, -1, SIDE);
    glDeleteTextures(1, &made);
}

static void glCopyTexSubImage3D_(const char *name) {
    GLuint made = fresh(GL_TEXTURE_3D);
    glTexStorage3D(GL_TEXTURE_3D, 1, GL_RGBA8, SIDE, SIDE, 2);
    from_target();
    glCopyTexSubImage3D(GL_TEXTURE_3D, 0, 0, 0, 1, 0, 0, SIDE, SIDE);
    show(name, made, 0, 1, SIDE);
    glDeleteTextures(1, &made);
}

static void glCopyImageSubData_(const char *name) {
    GLuint made = plain(1);
    begin();
    glCopyImageSubData(canvas, GL_TEXTURE_2D, 0, 0, 0, 0, made, GL_TEXTURE_2D, 0, 0, 0, 0, SIDE, SIDE, 1);
    show(name, made, 0, -1, SIDE);
    glDeleteTextures(1, &made);
}

/* No format that is compressed can be read back, so it is drawn. */
static void seen(const char *name, GLenum kind) {
    glUseProgram(textured);
    glUniform1i(glGetUniformLocation(textured, "solid"), kind == GL_TEXTURE_3D);
    glDrawArrays(GL_TRIANGLES, 0, 6);
    say(name);
}

#define FORMAT GL_COMPRESSED_RGB8_ETC2
static void compressed(const char *name, int flat, int whole) {
    const GLenum kind = flat ? GL_TEXTURE_2D : GL_TEXTURE_2D_ARRAY;
    const GLsizei bytes = flat ? 2048 * 2048 / 2 : 512 * 512 * 8 / 2;
    /* Samplers of two kinds do not share a unit. */
    glActiveTexture(flat ? GL_TEXTURE0 : GL_TEXTURE1);
    GLuint made = fresh(kind);
    clear();
    if (!whole && flat) glTexStorage2D(kind, 1, FORMAT, 2048, 2048);
    if (!whole && !flat) glTexStorage3D(kind, 1, FORMAT, 512, 512, 8);
    begin();
    if (flat && whole) glCompressedTexImage2D(kind, 0, FORMAT, 2048, 2048, 0, bytes, texels);
    else if (flat) glCompressedTexSubImage2D(kind, 0, 0, 0, 2048, 2048, FORMAT, bytes, texels);
    else if (whole) glCompressedTexImage3D(kind, 0, FORMAT, 512, 512, 8, 0, bytes, texels);
    else glCompressedTexSubImage3D(kind, 0, 0, 0, 0, 512, 512, 8, FORMAT, bytes, texels);
    seen(name, flat ? GL_TEXTURE_2D : GL_TEXTURE_3D);
    glDeleteTextures(1, &made);
    glActiveTexture(GL_TEXTURE0);
}
static void glCompressedTexImage2D_(const char *name) { compressed(name, 1, 1); }
static void glCompressedTexSubImage2D_(const char *name) { compressed(name, 1, 0); }
static void glCompressedTexImage3D_(const char *name) { compressed(name, 0, 1); }
static void glCompressedTexSubImage3D_(const char *name) { compressed(name, 0, 0); }

static GLuint buffer_of(GLsizeiptr size, const void *data) {
    GLuint made = 0;
    glGenBuffers(1, &made);
    glBindBuffer(GL_COPY_WRITE_BUFFER, made);
    if (size) glBufferData(GL_COPY_WRITE_BUFFER, size, data, GL_STATIC_DRAW);
    return made;
}

static void glBufferData_(const char *name) {
    GLuint made = buffer_of(0, NULL);
    begin();
    glBufferData(GL_COPY_WRITE_BUFFER, sizeof texels, texels, GL_STATIC_DRAW);
    inside(name, GL_COPY_WRITE_BUFFER, sizeof texels);
    glDeleteBuffers(1, &made);
}

static void glBufferSubData_(const char *name) {
    GLuint made = buffer_of(sizeof texels, NULL);
    begin();
    glBufferSubData(GL_COPY_WRITE_BUFFER, 0, sizeof texels, texels);
    inside(name, GL_COPY_WRITE_BUFFER, sizeof texels);
    glDeleteBuffers(1, &made);
}

static void glCopyBufferSubData_(const char *name) {
    GLuint from = buffer_of(sizeof texels, texels), made = buffer_of(sizeof texels, NULL);
    glBindBuffer(GL_COPY_READ_BUFFER, from);
    begin();
    glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, 0, sizeof texels);
    inside(name, GL_COPY_WRITE_BUFFER, sizeof texels);
    glDeleteBuffers(1, &from);
    glDeleteBuffers(1, &made);
}

/* A buffer that is filled through a mapping: what is written there goes to the GPU when it ends, or before. */
static void mapped(const char *name, GLbitfield how) {
    GLuint made = buffer_of(sizeof texels, NULL);
    void *place = glMapBufferRange(GL_COPY_WRITE_BUFFER, 0, sizeof texels, GL_MAP_WRITE_BIT | how);
    if (!place) die("mapping");
    memcpy(place, texels, sizeof texels);
    begin();
    if (how & GL_MAP_FLUSH_EXPLICIT_BIT) glFlushMappedBufferRange(GL_COPY_WRITE_BUFFER, 0, sizeof texels);
    glUnmapBuffer(GL_COPY_WRITE_BUFFER);
    inside(name, GL_COPY_WRITE_BUFFER, sizeof texels);
    glDeleteBuffers(1, &made);
}
static void glUnmapBuffer_(const char *name) { mapped(name, 0); }
static void glFlushMappedBufferRange_(const char *name) { mapped(name, GL_MAP_FLUSH_EXPLICIT_BIT); }

/* Of a marker nothing is seen; it has twice as many vertices as are said. */
static int markers = 1000;
static void mark(const char *name) {
    begin();
    glUseProgram(drawing);
    glEnable(GL_RASTERIZER_DISCARD);
    glDrawArraysInstanced(GL_POINTS, 0, ++markers, 2);
    glDisable(GL_RASTERIZER_DISCARD);
    printf("marker %d before %s\n", 2 * markers, name);
}

/* From the large target: what is small is not asked for. */
static void read_back(const char *name, int bounded) {
    static uint8_t pixels[SIDE * SIDE * 4];
    from_target();
    if (bounded) glReadnPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, sizeof pixels, pixels);
    else glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    hashed(name, pixels, sizeof pixels);
    /* The same into a buffer. */
    GLuint made = 0;
    glGenBuffers(1, &made);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, made);
    glBufferData(GL_PIXEL_PACK_BUFFER, sizeof pixels, NULL, GL_STREAM_READ);
    begin();
    if (bounded) glReadnPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, sizeof pixels, NULL);
    else glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    inside(name, GL_PIXEL_PACK_BUFFER, sizeof pixels);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    glDeleteBuffers(1, &made);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
}
static void glReadPixels_(const char *name) { read_back(name, 0); }
static void glReadnPixels_(const char *name) { read_back(name, 1); }
static void glMapBufferRange_(const char *name) { GLuint made = buffer_of(64, texels); mark(name); inside(name, GL_COPY_WRITE_BUFFER, 64); glDeleteBuffers(1, &made); }
static void glFlush_(const char *name) { mark(name); glFlush(); say(name); }
static void glFinish_(const char *name) { mark(name); glFinish(); say(name); }
static void glClientWaitSync_(const char *name) {
    GLsync fence = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    mark(name);
    glClientWaitSync(fence, GL_SYNC_FLUSH_COMMANDS_BIT, 1000000000);
    glDeleteSync(fence);
    say(name);
}
static void glGetQueryObjectuiv_(const char *name) {
    GLuint result = 0;
    mark(name);
    glGetQueryObjectuiv(query, GL_QUERY_RESULT, &result);
    printf("%s: %u\n", name, result);
}
static void glBindFramebuffer_(const char *name) { mark(name); glBindFramebuffer(GL_FRAMEBUFFER, target); glBindFramebuffer(GL_FRAMEBUFFER, 0); say(name); }

#define CASE(name) {#name, name##_, NULL}
#define RARE(name, extension) {#name, name##_, extension}
static const struct { const char *name; void (*run)(const char *name); const char *extension; } CASES[] = {
    CASE(glDrawArrays), CASE(glDrawElements), CASE(glDrawRangeElements), CASE(glDrawArraysInstanced),
    CASE(glDrawElementsInstanced), CASE(glDrawElementsBaseVertex), CASE(glDrawRangeElementsBaseVertex),
    CASE(glDrawElementsInstancedBaseVertex), CASE(glDrawArraysIndirect), CASE(glDrawElementsIndirect),
    CASE(glDispatchCompute), CASE(glDispatchComputeIndirect),
    RARE(glMultiDrawArraysEXT, "GL_EXT_multi_draw_arrays"), RARE(glMultiDrawElementsEXT, "GL_EXT_multi_draw_arrays"),
    RARE(glMultiDrawElementsBaseVertexEXT, "GL_EXT_multi_draw_arrays"),
    RARE(glMultiDrawArraysIndirectEXT, "GL_EXT_multi_draw_indirect"),
    RARE(glMultiDrawElementsIndirectEXT, "GL_EXT_multi_draw_indirect"),
    RARE(glDrawArraysInstancedBaseInstanceEXT, "GL_EXT_base_instance"),
    CASE(glClear), CASE(glClearBufferfv), CASE(glClearBufferiv), CASE(glClearBufferuiv), CASE(glClearBufferfi),
    CASE(glBlitFramebuffer), CASE(glGenerateMipmap),
    CASE(glTexImage2D), CASE(glTexSubImage2D), CASE(glTexImage3D), CASE(glTexSubImage3D),
    CASE(glCompressedTexImage2D), CASE(glCompressedTexSubImage2D),
    CASE(glCompressedTexImage3D), CASE(glCompressedTexSubImage3D),
    CASE(glCopyTexImage2D), CASE(glCopyTexSubImage2D), CASE(glCopyTexSubImage3D), CASE(glCopyImageSubData),
    CASE(glBufferData), CASE(glBufferSubData), CASE(glCopyBufferSubData),
    CASE(glUnmapBuffer), CASE(glFlushMappedBufferRange),
    CASE(glReadPixels), CASE(glReadnPixels), CASE(glMapBufferRange), CASE(glFlush), CASE(glFinish),
    CASE(glClientWaitSync), CASE(glGetQueryObjectuiv), CASE(glBindFramebuffer),
};

static void prepare(void) {
    uint32_t seed = 7;
    for (int at = 0; at < VERTICES * 2; at++) {
        seed = seed * 1664525u + 1013904223u;
        places[at] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    for (int at = 0; at < 12; at++) places[at] = ((const float[]){-1, -1, 1, -1, -1, 1, -1, 1, 1, -1, 1, 1})[at];
    for (int at = 0; at < VERTICES; at++) indices[at] = (GLushort)(at * 7 % 500);
    for (size_t at = 0; at < sizeof texels; at++) texels[at] = (uint8_t)(at * 7 + at / 4099);
    drawing = linked("#version 300 es\nlayout(location = 0) in vec2 at; out vec2 p; flat out float kind;"
                     "void main() { kind = float(gl_VertexID % 11) * 0.3 + float(gl_InstanceID); p = at + vec2(0.1 * float(gl_InstanceID), 0.001 * float(gl_VertexID));"
                     "gl_PointSize = 1.0; gl_Position = vec4(p, 0.1 * at.x, 1.0); }",
                     "#version 300 es\nprecision highp float; in vec2 p; flat in float kind; out vec4 colour;"
                     "void main() { float a = kind; " LOOPS " colour = vec4(0.5 + 0.5 * sin(a + vec3(0.0, 1.2, 2.4)), 1.0); }");
    textured = linked("#version 300 es\nlayout(location = 0) in vec2 at; out vec2 p;"
                      "void main() { p = at * 0.5 + 0.5; gl_Position = vec4(at, 0.0, 1.0); }",
                      "#version 300 es\nprecision highp float; precision mediump sampler2DArray; in vec2 p; out vec4 colour;"
                      "uniform mediump sampler2D picture; uniform sampler2DArray pictures; uniform bool solid;"
                      "void main() { colour = solid ? texture(pictures, vec3(p, 3.0)) : texture(picture, p); }");
    glUseProgram(textured);
    glUniform1i(glGetUniformLocation(textured, "pictures"), 1);
    glUniform1i(glGetUniformLocation(textured, "picture"), 0);
    computing = linked(NULL,
                       "#version 310 es\nlayout(local_size_x = 64) in; layout(std430, binding = 0) buffer Data { uint data[]; };"
                       "void main() { uint at = gl_GlobalInvocationID.y * 4096u + gl_GlobalInvocationID.x; uint a = at;"
                       "for (int i = 0; i < 300; i++) { a = a * 1664525u + 1013904223u; a ^= a >> 13; } data[at] = a; }");
    glGenBuffers(1, &parameters);
    glGenBuffers(1, &storage);
    glBindBuffer(GL_SHADER_STORAGE_BUFFER, storage);
    glBufferData(GL_SHADER_STORAGE_BUFFER, 64 * 8 * 64 * 4, NULL, GL_DYNAMIC_READ);
    canvas = plain(1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    glGenFramebuffers(1, &target);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, canvas, 0);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    /* Indirect draws want an object for their arrays. */
    GLuint arrays = 0;
    glGenVertexArrays(1, &arrays);
    glBindVertexArray(arrays);
    glGenBuffers(1, &vertices);
    glBindBuffer(GL_ARRAY_BUFFER, vertices);
    glBufferData(GL_ARRAY_BUFFER, sizeof places, places, GL_STATIC_DRAW);
    glEnableVertexAttribArray(0);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glGenBuffers(1, &elements);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, elements);
    glBufferData(GL_ELEMENT_ARRAY_BUFFER, sizeof indices, indices, GL_STATIC_DRAW);
    glGenQueries(1, &query);
    glBeginQuery(GL_ANY_SAMPLES_PASSED, query);
    glEndQuery(GL_ANY_SAMPLES_PASSED);
}

int main(void) {
    start();
    prepare();
    for (size_t at = 0; at < sizeof CASES / sizeof *CASES; at++) {
        if (CASES[at].extension && !strstr((const char *)glGetString(GL_EXTENSIONS), CASES[at].extension)) {
            printf("%s: not here\n", CASES[at].name);
            continue;
        }
        for (int round = 0; round < ROUNDS; round++) CASES[at].run(CASES[at].name);
    }
    return 0;
}
