/* Counts and sizes beyond all measure, with memory that ends where it must. */
#include "trap.h"
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

static void error(const char *what) { printf("%s: %#x\n", what, glGetError()); }

/* `bytes` bytes behind which nothing is. */
static void *at_end(const void *data, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + page, page);
    return memcpy(memory + page - bytes, data, bytes);
}

int main(void) {
    static const GLfloat ones[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    start();
    GLuint name = program(), buffer, texture;
    use(name, 0);
    GLint colour = glGetUniformLocation(name, "colour"), turn = glGetUniformLocation(name, "turn");
    GLfloat *four = at_end(ones, 16), *sixteen = at_end(ones, 64);
    /* Neither is an array, so the driver looks at none of it. */
    glUniform4fv(colour, INT_MAX, four); error("uniforms without end");
    glUniform4fv(colour, INT_MIN, four); error("less than none");
    glUniformMatrix4fv(turn, INT_MAX, GL_FALSE, sixteen); error("matrices without end");
    glUniformMatrix4fv(turn, INT_MAX, GL_TRUE, sixteen); error("turned matrices without end");
    glUniformMatrix4fv(-1, INT_MAX, GL_TRUE, sixteen); error("turned matrices for no uniform");
    glUniformMatrix4fv(turn, 2, GL_TRUE, sixteen); error("one more than there is");
    glUniform4fv(-1, INT_MAX, NULL); error("nowhere, without end");
    glUniform4fv(colour, 1, four); error("one");
    glUniformMatrix4fv(turn, 1, GL_FALSE, sixteen); error("one matrix");

    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, sizeof TRIANGLE, at_end(TRIANGLE, sizeof TRIANGLE), GL_STATIC_DRAW);
    error("a buffer");
    glBufferSubData(GL_ARRAY_BUFFER, 0, (GLsizeiptr)1 << 60, four); error("too much for a buffer");
    glBufferSubData(GL_ARRAY_BUFFER, (GLintptr)1 << 62, 4, four); error("far behind its end");
    glBufferSubData(GL_ARRAY_BUFFER, LONG_MIN, 4, four); error("far before its start");
    /* What GL refuses it does not read, so it need not be there. */
    glBufferData(GL_ARRAY_BUFFER, 1 << 20, four, 77); error("unknown usage");
    glEnableVertexAttribArray(0);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    say("drawn");
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, INT_MIN, NULL); error("stride");
    glVertexAttribPointer(UINT_MAX, 2, GL_FLOAT, GL_FALSE, 0, NULL); error("attribute");
    glDrawArrays(77, INT_MIN, INT_MAX); error("nothing known, from before the start");
    glDrawElements(77, INT_MAX, GL_UNSIGNED_INT, four); error("elements without end");
    glDrawElements(GL_TRIANGLES, INT_MAX, 77, four); error("wrong kind");
    void (*many)(GLenum, GLint, GLsizei, GLsizei) = (void *)eglGetProcAddress("glDrawArraysInstancedEXT");
    if (many) {
        many(GL_TRIANGLES, 0, 0, INT_MAX); error("many of nothing");
        many(GL_TRIANGLES, 0, 3, 0); error("none of something");
        many(GL_TRIANGLES, 0, 3, INT_MIN); error("less than none of something");
    }
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 1 << 20, 1 << 20, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    error("a texture without end");
    glTexImage2D(GL_TEXTURE_2D, INT_MAX, GL_RGBA, 1, 1, 0, GL_RGBA, GL_UNSIGNED_BYTE, four); error("level");
    glTexSubImage2D(GL_TEXTURE_2D, 0, INT_MAX, INT_MAX, INT_MAX, INT_MAX, GL_RGBA, GL_UNSIGNED_BYTE, four);
    error("a part without end");
    glViewport(INT_MIN, INT_MIN, INT_MAX, INT_MAX); error("viewport");
    glScissor(INT_MIN, INT_MIN, INT_MAX, INT_MAX); error("scissor");
    glDrawArrays(GL_TRIANGLES, 0, 3);
    say("out of sight");
    glGenBuffers(INT_MIN, &buffer); error("fewer names than none");
    glDeleteTextures(INT_MIN, &texture); error("fewer textures than none");
    glShaderSource(glCreateShader(GL_VERTEX_SHADER), INT_MIN, NULL, NULL); error("fewer lines than none");
    say("end");
    return 0;
}
