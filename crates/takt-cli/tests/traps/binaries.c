/* A program that keeps the binary of its program in a file, and compiles it only if it must. */
#include "trap.h"
#include <GLES3/gl31.h>

static const char *FRAGMENT =
    "precision highp float; void main() { float a = gl_FragCoord.x; for (int i = 0; i < 60; i++) a = sin(a * 0.9 + "
    "gl_FragCoord.y) + 0.7 * sin(a); gl_FragColor = vec4(a); }";

static GLint is_linked(GLuint program) {
    GLint status = 0;
    glGetProgramiv(program, GL_LINK_STATUS, &status);
    return status;
}

int main(int argc, char **argv) {
    static uint8_t binary[1 << 20];
    GLint formats = 0, list[64];
    GLsizei bytes = 0;
    GLenum format = 0;
    GLuint made = 0;
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    start();
    memset(list, 0, sizeof list);
    glGetIntegerv(GL_NUM_PROGRAM_BINARY_FORMATS, &formats);
    glGetIntegerv(GL_PROGRAM_BINARY_FORMATS, list);
    printf("formats %s\n", formats > 0 && list[0] ? "offered" : formats == 0 && !list[0] ? "none" : "contradict");
    if (file) {
        made = glCreateProgram();
        if (fread(&format, sizeof format, 1, file) != 1) die("reading");
        bytes = (GLsizei)fread(binary, 1, sizeof binary, file);
        glProgramBinary(made, format, binary, bytes);
        printf("binary %s, error %#x\n", is_linked(made) ? "taken" : "refused", glGetError());
        fclose(file);
    }
    if (!made || !is_linked(made)) made = program_of(PLAIN, FRAGMENT);
    if (!file && argc > 1 && formats > 0) {
        glGetProgramBinary(made, sizeof binary, &bytes, &format, binary);
        file = fopen(argv[1], "wb");
        if (!file || fwrite(&format, sizeof format, 1, file) != 1) die("writing");
        if (fwrite(binary, 1, (size_t)bytes, file) != (size_t)bytes) die("writing");
        fclose(file);
    }
    static const GLfloat corners[] = {-3, -1, 1, -1, 1, 3};
    glUseProgram(made);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, corners);
    glEnableVertexAttribArray(0);
    for (int round = 0; round < 4; round++) {
        glDrawArrays(GL_TRIANGLES, 0, 3);
        say("drawn");
    }
    return 0;
}
