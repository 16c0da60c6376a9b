/* One scene whose vertices are placed by plain uniforms, or by the same values in uniform blocks of
 * every layout: WAY is plain, std140, shared, packed, rows, named, array, range, copied or mapped. With formats,
 * uniforms are plain and vertices are read through a binding point. */
#include "trap.h"
#include <GLES3/gl32.h>

#define FRAMES 8
#define ROOM 4096

static const char *way;
static int is(const char *name) { return !strcmp(way, name); }

static int plain(void) { return is("plain") || is("formats"); }

static GLuint linked(void) {
    const char *block = "layout(std140) uniform Place { float idle; mat4 turn; mat3x2 shift; vec2 scales[2]; bool on; };";
    const char *names = "\n#define TURN turn\n#define SHIFT shift\n#define SCALES scales\n#define ON on\n";
    if (plain()) block = "uniform mat4 turn; uniform mat3x2 shift; uniform vec2 scales[2]; uniform bool on;";
    if (is("shared")) block = "uniform Place { float idle; mat4 turn; mat3x2 shift; vec2 scales[2]; bool on; };";
    if (is("packed")) block = "layout(packed) uniform Place { mat4 turn; mat3x2 shift; vec2 scales[2]; bool on; };";
    if (is("rows")) block = "layout(std140, row_major) uniform Place { float idle; mat4 turn; mat3x2 shift; vec2 scales[2]; bool on; };";
    if (is("named") || is("array")) {
        block = is("named") ? "struct More { vec2 scales[2]; bool on; };"
                              "uniform Place { mat4 turn; mat3x2 shift; More more[2]; } place;"
                            : "uniform Place { mat4 turn; mat3x2 shift; vec2 scales[2]; bool on; } place[2];";
        names = is("named") ? "\n#define TURN place.turn\n#define SHIFT place.shift\n"
                              "#define SCALES place.more[1].scales\n#define ON place.more[1].on\n"
                            : "\n#define TURN place[1].turn\n#define SHIFT place[0].shift\n"
                              "#define SCALES place[1].scales\n#define ON place[0].on\n";
    }
    const char *vertex[] = {"#version 300 es\n", block, names,
        "in vec2 at; out vec2 here;"
        "void main() { here = at; vec2 small = at * SCALES[1] + SHIFT * vec3(1.0, 0.0, 1.0);"
        "gl_Position = ON ? TURN * vec4(small, 0.0, 1.0) : vec4(at, 0.0, 1.0); }"};
    GLuint made = glCreateProgram(), first = glCreateShader(GL_VERTEX_SHADER);
    GLint status = 0;
    glShaderSource(first, 4, vertex, NULL);
    glCompileShader(first);
    glAttachShader(made, first);
    glAttachShader(made, shader(GL_FRAGMENT_SHADER,
        "#version 300 es\nprecision mediump float; in vec2 here; out vec4 colour;"
        "void main() { colour = vec4(here * 0.5 + 0.5, 0.5, 1.0); }"));
    glBindAttribLocation(made, 0, "at");
    glLinkProgram(made);
    glGetProgramiv(made, GL_LINK_STATUS, &status);
    if (!status) die("linking");
    return made;
}

/* Puts a member where the driver wants it. */
static void put(GLuint name, uint8_t *into, const char *member, const void *data, int columns, int rows, int elements) {
    GLuint index = GL_INVALID_INDEX;
    GLint offset = 0, array = 0, matrix = 0, by_rows = 0;
    glGetUniformIndices(name, 1, &member, &index);
    if (index == GL_INVALID_INDEX) die(member);
    glGetActiveUniformsiv(name, 1, &index, GL_UNIFORM_OFFSET, &offset);
    glGetActiveUniformsiv(name, 1, &index, GL_UNIFORM_ARRAY_STRIDE, &array);
    glGetActiveUniformsiv(name, 1, &index, GL_UNIFORM_MATRIX_STRIDE, &matrix);
    glGetActiveUniformsiv(name, 1, &index, GL_UNIFORM_IS_ROW_MAJOR, &by_rows);
    const uint32_t *word = data;
    for (int element = 0; element < elements; element++)
        for (int column = 0; column < columns; column++)
            for (int row = 0; row < rows; row++, word++) {
                int inside = by_rows ? row * matrix + column * 4 : column * matrix + row * 4;
                memcpy(into + offset + element * array + inside, word, 4);
            }
}

static void fill(GLuint name, uint8_t *into, float turn) {
    const GLfloat matrix[16] = {1, turn, 0, 0, -turn, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const GLfloat shift[6] = {0.1f, 0.0f, 9.0f, 9.0f, 0.1f, 0.05f}, scales[4] = {7.0f, 7.0f, 0.5f, 0.25f};
    const GLint on = 1;
    const int named = is("named"), inside = named || is("array");
    if (plain()) {
        glUniformMatrix4fv(glGetUniformLocation(name, "turn"), 1, GL_FALSE, matrix);
        glUniformMatrix3x2fv(glGetUniformLocation(name, "shift"), 1, GL_FALSE, shift);
        glUniform2fv(glGetUniformLocation(name, "scales"), 2, scales);
        glUniform1i(glGetUniformLocation(name, "on"), on);
        return;
    }
    put(name, into, inside ? "Place.turn" : "turn", matrix, 4, 4, 1);
    put(name, into, inside ? "Place.shift" : "shift", shift, 3, 2, 1);
    put(name, into, named ? "Place.more[1].scales[0]" : inside ? "Place.scales[0]" : "scales[0]", scales, 1, 2, 2);
    put(name, into, named ? "Place.more[1].on" : inside ? "Place.on" : "on", &on, 1, 1, 1);
}

int main(int count, char **arguments) {
    way = count > 1 ? arguments[1] : "plain";
    start();
    static uint8_t bytes[ROOM];
    const GLfloat quad[] = {-1, -1, 1, -1, -1, 1, 1, 1};
    GLuint name = linked(), buffers[3];
    GLint aligned = 0;
    glGetIntegerv(GL_UNIFORM_BUFFER_OFFSET_ALIGNMENT, &aligned);
    glGenBuffers(3, buffers);
    glBindBuffer(GL_ARRAY_BUFFER, buffers[0]);
    glBufferData(GL_ARRAY_BUFFER, sizeof quad, quad, GL_STATIC_DRAW);
    if (is("formats")) {
        GLuint array;
        glGenVertexArrays(1, &array);
        glBindVertexArray(array);
        glBufferData(GL_ARRAY_BUFFER, sizeof quad + 16, NULL, GL_STATIC_DRAW);
        glBufferSubData(GL_ARRAY_BUFFER, 16, sizeof quad, quad);
        glVertexAttribFormat(0, 2, GL_FLOAT, GL_FALSE, 4);
        glVertexAttribBinding(0, 3);
        glBindVertexBuffer(3, buffers[0], 12, 8);
    } else
        glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glEnableVertexAttribArray(0);
    GLint offset = is("range") ? 3 * aligned : 0;
    if (!plain()) {
        glBindBuffer(GL_UNIFORM_BUFFER, buffers[1]);
        glBufferData(GL_UNIFORM_BUFFER, 2 * ROOM, NULL, GL_DYNAMIC_DRAW);
        if (is("array")) {
            glUniformBlockBinding(name, glGetUniformBlockIndex(name, "Place[0]"), 5);
            glUniformBlockBinding(name, glGetUniformBlockIndex(name, "Place[1]"), 2);
            glBindBufferBase(GL_UNIFORM_BUFFER, 5, buffers[1]);
        } else
            glUniformBlockBinding(name, glGetUniformBlockIndex(name, "Place"), 2);
        if (is("range")) glBindBufferRange(GL_UNIFORM_BUFFER, 2, buffers[1], offset, ROOM);
        else glBindBufferBase(GL_UNIFORM_BUFFER, 2, buffers[1]);
    }
    /* An error that is not fetched yet stays what it is, whatever Takt asks the driver. */
    glEnable(0xBAD);
    glUseProgram(name);
    for (int frame = 0; frame < FRAMES; frame++) {
        fill(name, bytes, 0.1f * frame);
        if (is("mapped")) {
            void *place = glMapBufferRange(GL_UNIFORM_BUFFER, 0, ROOM, GL_MAP_WRITE_BIT | GL_MAP_INVALIDATE_BUFFER_BIT);
            memcpy(place, bytes, ROOM);
            glUnmapBuffer(GL_UNIFORM_BUFFER);
        } else if (is("copied")) {
            glBindBuffer(GL_COPY_READ_BUFFER, buffers[2]);
            glBufferData(GL_COPY_READ_BUFFER, ROOM + 64, NULL, GL_STREAM_COPY);
            glBufferSubData(GL_COPY_READ_BUFFER, 64, ROOM, bytes);
            glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_UNIFORM_BUFFER, 64, offset, ROOM);
        } else if (!plain())
            glBufferSubData(GL_UNIFORM_BUFFER, offset, ROOM, bytes);
        if (frame == FRAMES / 2 && !plain()) {
            /* Another point while the program is in use, and calls that GL refuses. */
            GLuint block = glGetUniformBlockIndex(name, is("array") ? "Place[1]" : "Place");
            glUniformBlockBinding(name, block, 7);
            glBindBufferRange(GL_UNIFORM_BUFFER, 7, buffers[1], offset, ROOM);
            glBindBufferBase(GL_UNIFORM_BUFFER, 2, 0);
            glBindBuffer(GL_UNIFORM_BUFFER, buffers[1]);
            printf("before: %#x\n", glGetError());
            glUniformBlockBinding(name, block, 1 << 20);
            glBindBufferRange(GL_UNIFORM_BUFFER, 7, buffers[1], 1, ROOM);
            glBindBufferRange(GL_UNIFORM_BUFFER, 1 << 20, buffers[0], 0, ROOM);
        }
        glClear(GL_COLOR_BUFFER_BIT);
        glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
        say("frame");
        eglSwapBuffers(display, surface);
    }
    return 0;
}
