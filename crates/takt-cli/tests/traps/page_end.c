/* Client arrays that end where memory ends, and wrong calls with pointers to nowhere. */
#include "trap.h"
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    start();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + page, page);
    use(program(), 0);
    glEnableVertexAttribArray(0);
    /* Three vertices, 20 bytes apart; the last one has no stride behind it. */
    char *vertices = memory + page - (2 * 20 + 8);
    for (int at = 0; at < 3; at++) memcpy(vertices + 20 * at, TRIANGLE + 2 * at, 8);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 20, vertices);
    glClear(GL_COLOR_BUFFER_BIT);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    say("arrays");
    GLubyte *indices = (GLubyte *)memory + 100;
    indices[0] = 2, indices[1] = 0, indices[2] = 1;
    glDrawElements(GL_TRIANGLES, 3, GL_UNSIGNED_BYTE, indices);
    say("elements");
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, (void *)8);
    glDrawArrays(77, 0, 1 << 30);
    say("wrong mode, wild pointer, huge count");
    glDrawElements(GL_TRIANGLES, -5, GL_UNSIGNED_INT, (void *)16);
    say("negative count, wild indices");
    return 0;
}
