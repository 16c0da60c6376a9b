/* Compute programs that are long enough to be cut, with everything that could give away that they were.
 * With a number as argument: as many random programs, from that seed on. */
#include "trap.h"
#include <GLES3/gl32.h>

#define ROUNDS 3
#define WORDS 65536
static GLuint storage, counters, parameters, block, texture, image;
static GLuint words[WORDS];

static GLuint compiled(const char *source) {
    GLuint made = glCreateProgram(), part = shader(GL_COMPUTE_SHADER, source);
    GLint status = 0;
    glAttachShader(made, part);
    glDeleteShader(part);
    glLinkProgram(made);
    glGetProgramiv(made, GL_LINK_STATUS, &status);
    if (!status) {
        char log[4096];
        glGetShaderInfoLog(part, sizeof log, NULL, log);
        fprintf(stderr, "%s\n%s\n", source, log);
        die("linking");
    }
    return made;
}

/* Says what is in memory, which error is pending, and which program is in use. */
static void tell(const char *what) {
    uint64_t hash = 0xcbf29ce484222325u;
    GLint used = 0;
    GLenum error = glGetError();
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
    glBindBuffer(GL_COPY_READ_BUFFER, storage);
    const GLuint *values = glMapBufferRange(GL_COPY_READ_BUFFER, 0, sizeof words, GL_MAP_READ_BIT);
    for (int at = 0; at < WORDS; at++) hash = (hash ^ values[at]) * 0x100000001b3u;
    glUnmapBuffer(GL_COPY_READ_BUFFER);
    glBindBuffer(GL_COPY_READ_BUFFER, counters);
    values = glMapBufferRange(GL_COPY_READ_BUFFER, 0, 64, GL_MAP_READ_BIT);
    for (int at = 0; at < 16; at++) hash = (hash ^ values[at]) * 0x100000001b3u;
    glUnmapBuffer(GL_COPY_READ_BUFFER);
    static GLuint pixels[64 * 64];
    GLuint target = 0;
    glGenFramebuffers(1, &target);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, target);
    glFramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, image, 0);
    glReadPixels(0, 0, 64, 64, GL_RED_INTEGER, GL_UNSIGNED_INT, pixels);
    glDeleteFramebuffers(1, &target);
    for (int at = 0; at < 64 * 64; at++) hash = (hash ^ pixels[at]) * 0x100000001b3u;
    glGetIntegerv(GL_CURRENT_PROGRAM, &used);
    printf("%s: error %#x %#x, program %s, memory %016llx\n", what, error, glGetError(), used ? "used" : "none",
           (unsigned long long)hash);
    fflush(stdout);
}

static void reset(void) {
    for (int at = 0; at < WORDS; at++) words[at] = (GLuint)at * 2654435761u;
    glBindBuffer(GL_COPY_WRITE_BUFFER, storage);
    glBufferData(GL_COPY_WRITE_BUFFER, sizeof words, words, GL_DYNAMIC_COPY);
    glBindBuffer(GL_COPY_WRITE_BUFFER, counters);
    glBufferData(GL_COPY_WRITE_BUFFER, 64, words, GL_DYNAMIC_COPY);
    static GLuint pixels[64 * 64];
    glBindTexture(GL_TEXTURE_2D, image);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 64, 64, GL_RED_INTEGER, GL_UNSIGNED_INT, pixels);
    glBindTexture(GL_TEXTURE_2D, texture);
}

static void make_objects(void) {
    GLfloat numbers[64];
    GLuint names[4];
    glGenBuffers(4, names);
    storage = names[0], counters = names[1], parameters = names[2], block = names[3];
    glGenTextures(1, &image);
    glBindTexture(GL_TEXTURE_2D, image);
    glTexStorage2D(GL_TEXTURE_2D, 1, GL_R32UI, 64, 64);
    glBindImageTexture(1, image, 0, GL_FALSE, 0, GL_READ_WRITE, GL_R32UI);
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, 16, 16);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    for (int at = 0; at < WORDS; at++) words[at] = (GLuint)at * 2654435761u;
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 16, 16, GL_RGBA, GL_UNSIGNED_BYTE, words);
    reset();
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 2, storage);
    glBindBufferBase(GL_ATOMIC_COUNTER_BUFFER, 0, counters);
    for (int at = 0; at < 64; at++) numbers[at] = (GLfloat)at * 0.25f;
    glBindBuffer(GL_UNIFORM_BUFFER, block);
    glBufferData(GL_UNIFORM_BUFFER, sizeof numbers, numbers, GL_STATIC_DRAW);
    for (GLuint point = 0; point < 3; point++) glBindBufferBase(GL_UNIFORM_BUFFER, point, block);
    GLint align = 0;
    glGetIntegerv(GL_UNIFORM_BUFFER_OFFSET_ALIGNMENT, &align);
    if (align <= 128) glBindBufferRange(GL_UNIFORM_BUFFER, 2, block, 128, 128);
}

#define HEAD "#version 310 es\nprecision highp float; precision highp int; precision highp uimage2D;\n"
#define STORE "layout(std430, binding = 2) buffer Store { uint data[]; };\n"
#define SPIN "for (int i = 0; i < 200; i++) { a = a * 1664525u + 1013904223u; a ^= a >> 13; }\n"

static const char *PLACES = HEAD STORE
    "layout(local_size_x = 4, local_size_y = 2, local_size_z = 2) in;\n"
    "void main() { uvec3 g = gl_GlobalInvocationID, w = gl_WorkGroupID, n = gl_NumWorkGroups;\n"
    "  uint width = n.x * gl_WorkGroupSize.x, height = n.y * gl_WorkGroupSize.y;\n"
    "  uint at = (g.z * height + g.y) * width + g.x; uint a = data[at];\n" SPIN
    "  data[at] = a + w.x * 3u + w.y * 5u + w.z * 7u + n.x * 11u + n.y * 13u + n.z + gl_LocalInvocationIndex\n"
    "    + gl_GlobalInvocationID[2] * gl_WorkGroupID.zyx.y + gl_LocalInvocationID.x; }\n";

/* Uniforms of every kind, a structure, arrays, blocks, and a sampler at a unit of its own. */
static const char *UNIFORMS = HEAD STORE
    "layout(local_size_x = 64) in;\n"
    "struct Part { vec3 place; int number; };\n"
    "uniform float one; uniform vec4 four[3]; uniform ivec2 whole; uniform uint bits; uniform bool flag;\n"
    "uniform mat3 turn; uniform mat2x4 wide; uniform Part parts[2]; uniform mediump sampler2D picture;\n"
    "layout(location = 5) uniform int placed;\n"
    "layout(std140) uniform Numbers { vec4 first; float rest[4]; } numbers;\n"
    "void main() { uint at = gl_GlobalInvocationID.x; uint a = data[at];\n" SPIN
    "  vec3 v = turn * vec3(one, four[1].y, float(whole.x)) + parts[1].place + vec3(float(parts[1].number));\n"
    "  v += (wide * vec2(1.0, 2.0)).xyz + numbers.first.xyz + vec3(numbers.rest[2]);\n"
    "  v += texelFetch(picture, ivec2(int(at) & 15, 3), 0).xyz + vec3(float(placed));\n"
    "  data[at] = a ^ uint(int(v.x * 64.0)) ^ (uint(int(v.y * 64.0)) << 8) ^ (uint(int(v.z * 64.0)) << 16) ^ (flag ? bits : 0u);\n"
    "}\n";

/* Shared memory, barriers, counters, atomics and images; a macro and an extension in front. */
static const char *SHARED =
    "#version 310 es\n"
    "#ifdef GL_OES_shader_image_atomic\n"
    "#extension GL_OES_shader_image_atomic : enable\n"
    "#endif\n"
    "precision highp float; precision highp int; precision highp uimage2D; /* a comment\n over lines */\n" STORE
    "layout(local_size_x = 8, local_size_y = 8) in;\n"
    "#define HERE \\\n (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) // gl_WorkGroupID\n"
    "layout(binding = 0, offset = 4) uniform atomic_uint counter;\n"
    "layout(binding = 1, r32ui) writeonly uniform uimage2D pixels;\n"
    "shared uint sums[64];\n"
    "uint spun(uint a) { " SPIN " return a; }\n"
    "void main() { uint here = gl_LocalInvocationIndex; sums[here] = spun(data[HERE * 64u + here]);\n"
    "  for (uint step = 32u; step > 0u; step >>= 1u) { memoryBarrierShared(); barrier();\n"
    "    if (here < step) sums[here] += sums[here + step]; }\n"
    "  barrier();\n"
    "  atomicMax(data[65535], sums[0]); atomicAdd(data[65534], sums[here & 3u] & 7u); atomicCounterIncrement(counter);\n"
    "  if (all(lessThan(gl_GlobalInvocationID.xy, uvec2(64u)))) imageStore(pixels, ivec2(gl_GlobalInvocationID.xy), uvec4(sums[0] + gl_WorkGroupID.x, 0u, 0u, 0u)); }\n";

static void places(void) {
    GLuint program = compiled(PLACES);
    static const GLuint sizes[][3] = {{16, 16, 4}, {1000, 1, 1}, {1, 300, 2}, {1, 1, 500}, {7, 11, 13}, {1, 1, 1}};
    glUseProgram(program);
    for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        char text[64];
        for (int round = 0; round < ROUNDS; round++) {
            reset();
            glDispatchCompute(sizes[at][0], sizes[at][1], sizes[at][2]);
            snprintf(text, sizeof text, "places %u %u %u", sizes[at][0], sizes[at][1], sizes[at][2]);
            tell(text);
        }
    }
    glDeleteProgram(program);
}

static void uniforms(void) {
    GLuint program = compiled(UNIFORMS), one = 3;
    GLfloat many[12], matrix[9], wide[8];
    reset();
    glUseProgram(program);
    glActiveTexture(GL_TEXTURE3);
    glBindTexture(GL_TEXTURE_2D, texture);
    glActiveTexture(GL_TEXTURE0);
    for (int round = 0; round < 4; round++) {
        for (int at = 0; at < 12; at++) many[at] = (GLfloat)(at * (round + 1)) * 0.5f;
        for (int at = 0; at < 9; at++) matrix[at] = (GLfloat)(at + round);
        for (int at = 0; at < 8; at++) wide[at] = (GLfloat)(at - round);
        glUniform1f(glGetUniformLocation(program, "one"), (GLfloat)round + 0.5f);
        glProgramUniform4fv(program, glGetUniformLocation(program, "four"), 3, many);
        glUniform2i(glGetUniformLocation(program, "whole"), round, -3);
        glUniform1uiv(glGetUniformLocation(program, "bits"), 1, &one);
        glUniform1i(glGetUniformLocation(program, "flag"), round & 1);
        glUniformMatrix3fv(glGetUniformLocation(program, "turn"), 1, GL_TRUE, matrix);
        glProgramUniformMatrix2x4fv(program, glGetUniformLocation(program, "wide"), 1, GL_FALSE, wide);
        glUniform3f(glGetUniformLocation(program, "parts[1].place"), 1.0f, 2.0f, (GLfloat)round);
        glUniform1i(glGetUniformLocation(program, "parts[1].number"), 4 + round);
        glUniform1i(glGetUniformLocation(program, "picture"), round < 2 ? 3 : 0);
        glUniform1i(5, round * 9);
        glUniformBlockBinding(program, glGetUniformBlockIndex(program, "Numbers"), (GLuint)(round % 3));
        for (int again = 0; again < 2; again++) {
            glDispatchCompute(500, 1, 1);
            tell("uniforms");
        }
    }
    /* What GL says about the program is what it says without Takt. */
    GLint count = 0, longest = 0, size = 0, names = 0;
    glGetProgramiv(program, GL_ACTIVE_UNIFORMS, &count);
    glGetProgramiv(program, GL_ACTIVE_UNIFORM_MAX_LENGTH, &longest);
    glGetProgramInterfaceiv(program, GL_UNIFORM, GL_ACTIVE_RESOURCES, &size);
    glGetProgramInterfaceiv(program, GL_UNIFORM, GL_MAX_NAME_LENGTH, &names);
    printf("uniforms %d %d %d %d\n", count, longest, size, names);
    for (GLuint at = 0; at < (GLuint)count; at++) {
        char name[64];
        GLint length = 0;
        GLenum kind = 0;
        glGetActiveUniform(program, at, sizeof name, NULL, &length, &kind, name);
        printf("%s %d %#x at %d\n", name, length, kind, glGetUniformLocation(program, name));
    }
    /* Linked anew, from something else. */
    GLuint other = shader(GL_COMPUTE_SHADER, PLACES), attached = 0;
    glGetAttachedShaders(program, 1, NULL, &attached);
    glDetachShader(program, attached);
    glAttachShader(program, other);
    glLinkProgram(program);
    glDispatchCompute(16, 16, 2);
    tell("linked anew");
    /* Deleted while it is in use, it goes on. */
    glDeleteProgram(program);
    for (int round = 0; round < ROUNDS; round++) {
        glDispatchCompute(16, 16, 2);
        tell("deleted");
    }
    glUseProgram(0);
    printf("program %d\n", glIsProgram(program));
}

static void shared(void) {
    GLuint program = compiled(SHARED);
    glUseProgram(program);
    for (int round = 0; round < ROUNDS + 2; round++) {
        reset();
        glDispatchCompute(40, 25, 1);
        tell("shared");
    }
    glDeleteProgram(program);
}

static void indirect(void) {
    static const GLuint counts[] = {9, 9, 9, 16, 16, 3, 1, 1, 1};
    GLuint program = compiled(PLACES);
    GLuint writer = compiled(
        "#version 310 es\nlayout(local_size_x = 1) in; layout(std430, binding = 3) buffer Counts { uint counts[]; };\n"
        "void main() { counts[3] = 8u; counts[4] = 8u; counts[5] = 4u; }");
    glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, parameters);
    glBufferData(GL_DISPATCH_INDIRECT_BUFFER, sizeof counts, counts, GL_DYNAMIC_DRAW);
    glUseProgram(program);
    for (int round = 0; round < ROUNDS; round++) {
        reset();
        glDispatchComputeIndirect(12);
        tell("indirect");
    }
    glDispatchComputeIndirect(-4);
    tell("indirect before the start");
    glDispatchComputeIndirect(28);
    tell("indirect beyond the end");
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 3, parameters);
    glUseProgram(writer);
    glDispatchCompute(1, 1, 1);
    glMemoryBarrier(GL_COMMAND_BARRIER_BIT);
    glUseProgram(program);
    for (int round = 0; round < ROUNDS; round++) {
        reset();
        glDispatchComputeIndirect(12);
        tell("indirect by the GPU");
    }
    glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, 0);
    glDispatchComputeIndirect(0);
    tell("indirect from nothing");
    glDeleteProgram(program);
    glDeleteProgram(writer);
}

/* Counts that a read of pixels writes into the buffer. */
static void indirect_by_pixels(void) {
    static const GLuint before[] = {16, 16, 3, 0}, after[] = {8, 8, 4, 0};
    GLuint program = compiled(PLACES), buffer = 0, pixel = 0, target = 0;
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, buffer);
    glBufferData(GL_DISPATCH_INDIRECT_BUFFER, sizeof before, before, GL_DYNAMIC_DRAW);
    glGenTextures(1, &pixel);
    glBindTexture(GL_TEXTURE_2D, pixel);
    glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA32UI, 1, 1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 1, 1, GL_RGBA_INTEGER, GL_UNSIGNED_INT, after);
    glGenFramebuffers(1, &target);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, pixel, 0);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
    glReadPixels(0, 0, 1, 1, GL_RGBA_INTEGER, GL_UNSIGNED_INT, NULL);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    glUseProgram(program);
    for (int round = 0; round < ROUNDS; round++) {
        reset();
        glDispatchComputeIndirect(0);
        tell("indirect by pixels");
    }
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glDeleteFramebuffers(1, &target);
    glDeleteTextures(1, &pixel);
    glBindTexture(GL_TEXTURE_2D, texture);
    glDeleteBuffers(1, &buffer);
    glDeleteProgram(program);
}

static void pipelines(void) {
    const char *source = PLACES;
    GLuint program = glCreateShaderProgramv(GL_COMPUTE_SHADER, 1, &source), pipeline = 0;
    glUseProgram(0);
    glGenProgramPipelines(1, &pipeline);
    glUseProgramStages(pipeline, GL_COMPUTE_SHADER_BIT, program);
    glBindProgramPipeline(pipeline);
    for (int round = 0; round < ROUNDS; round++) {
        reset();
        glDispatchCompute(16, 16, 3);
        tell("pipeline");
    }
    glBindProgramPipeline(0);
    glDeleteProgram(program);
}

static void errors(void) {
    GLuint program = compiled(PLACES), drawing = program_of(PLAIN, "void main() { gl_FragColor = vec4(1.0); }");
    glUseProgram(0);
    glDispatchCompute(16, 16, 2);
    tell("without a program");
    glUseProgram(drawing);
    glDispatchCompute(16, 16, 2);
    tell("with a program that draws");
    glUseProgram(program);
    glDispatchCompute(70000, 1, 1);
    tell("too many");
    glDispatchCompute(16, 0, 2);
    tell("none");
    glEnable(0x1234);
    reset();
    glDispatchCompute(16, 16, 2);
    tell("pending");
    glDeleteProgram(program);
}

/* Workgroups that wait for one another: none of them may wait for ever. */
static void waiting(void) {
    GLuint program = compiled(HEAD "layout(std430, binding = 2) coherent buffer Store { uint data[]; };\n"
        "layout(local_size_x = 1) in;\n"
        "void main() { uint a = 1u; " SPIN " atomicAdd(data[0], 1u); uint tries = 0u;\n"
        "  while (data[0] < gl_NumWorkGroups.x && tries < 100000u) tries++; data[1u + gl_WorkGroupID.x] = a; }\n");
    glUseProgram(program);
    reset();
    glDispatchCompute(2, 1, 1);
    tell("waiting");
    glDeleteProgram(program);
}

static uint32_t seed;
static uint32_t roll(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* A program of random statements. All that it does to memory which others see is independent of their order. */
static void random_program(void) {
    static char source[16384];
    static const char *values[] = {"gl_WorkGroupID.x", "gl_WorkGroupID.y", "gl_GlobalInvocationID.x", "gl_NumWorkGroups.y",
        "gl_GlobalInvocationID.z", "gl_LocalInvocationIndex", "gl_LocalInvocationID.y", "gl_NumWorkGroups.x", "bits", "a", "b",
        "sums[gl_LocalInvocationIndex]", "uint(gl_WorkGroupSize.x)", "AT", "(gl_NumWorkGroups * gl_WorkGroupID).z", "7u"};
    static const char *operators[] = {"+", "-", "*", "^", "|", "&"};
    static const char *atomics[] = {"atomicAdd", "atomicMin", "atomicMax", "atomicAnd", "atomicOr", "atomicXor"};
    uint32_t x = 1u << roll(4), y = 1u << roll(3), z = 1u << roll(2), used = 0;
    size_t at = 0;
#define PUT(...) at += (size_t)snprintf(source + at, sizeof source - at, __VA_ARGS__)
    PUT(HEAD STORE "layout(local_size_x = %u, local_size_y = %u, local_size_z = %u) in;\n", x, y, z);
    if (roll(2)) PUT("#define AT gl_GlobalInvocationID.y\n"); else PUT("#define AT (gl_WorkGroupID.z + bits)\n");
    PUT("uniform uint bits; layout(binding = 0) uniform atomic_uint counter; shared uint sums[64];\n");
    PUT("layout(binding = 1, r32ui) writeonly uniform uimage2D pixels;\nvoid main() {\n");
    PUT("  uvec3 n = gl_NumWorkGroups * gl_WorkGroupSize;\n");
    PUT("  uint place = (gl_GlobalInvocationID.z * n.y + gl_GlobalInvocationID.y) * n.x + gl_GlobalInvocationID.x;\n");
    PUT("  uint a = place < 32768u ? data[place] : 1u, b = place; sums[gl_LocalInvocationIndex] = a;\n");
    for (uint32_t count = 4 + roll(8); count > 0; count--) {
        const char *left = values[roll(16)], *right = values[roll(16)], *op = operators[roll(6)];
        switch (roll(7)) {
        case 0: PUT("  a = %s %s %s;\n", left, op, right); break;
        case 1: PUT("  b %s= %s;\n", op, right); break;
        case 2: PUT("  for (uint i = 0u; i < %uu; i++) { a = a * 1664525u + %s; b ^= a >> 7; }\n", 20 + roll(100), right); break;
        case 3: PUT("  sums[gl_LocalInvocationIndex] = %s; barrier();\n"
                    "  a += sums[(gl_LocalInvocationIndex + %uu) %% %uu]; barrier();\n", left, roll(8), x * y * z); break;
        case 4: used = roll(6); PUT("  %s(data[%uu + (%s & 63u)], %s);\n", atomics[used], 40000 + used * 64, left, right); break;
        case 5: PUT("  if ((%s & 1u) == 0u) { a += 3u; } else { b -= %s; }\n", left, right); break;
        default: PUT("  atomicCounterIncrement(counter);\n"); break;
        }
    }
    PUT("  for (int i = 0; i < 100; i++) a = a * 1664525u + b;\n");
    PUT("  if (place < 32768u) data[place] = a ^ b;\n");
    PUT("  if (gl_GlobalInvocationID.x < 64u && gl_GlobalInvocationID.y < 64u && gl_GlobalInvocationID.z == 0u)\n");
    PUT("    imageStore(pixels, ivec2(gl_GlobalInvocationID.xy), uvec4(a)); }\n");
    GLuint program = compiled(source);
    glUseProgram(program);
    for (int round = 0; round < ROUNDS; round++) {
        reset();
        glUniform1ui(glGetUniformLocation(program, "bits"), roll(100));
        glDispatchCompute(1 + roll(40), 1 + roll(12), 1 + roll(3));
        glMemoryBarrier(GL_ALL_BARRIER_BITS);
        if (roll(2)) glDispatchCompute(1 + roll(300), 1, 1);
        tell("random");
    }
    glDeleteProgram(program);
}

int main(int argc, char **argv) {
    start();
    make_objects();
    for (int at = 0; argc > 2 && at < atoi(argv[2]); at++) {
        seed = (uint32_t)(atoi(argv[1]) + at) * 747796405u;
        random_program();
    }
    if (argc > 2) return 0;
    places();
    uniforms();
    shared();
    indirect();
    indirect_by_pixels();
    pipelines();
    errors();
    waiting();
    return 0;
}
