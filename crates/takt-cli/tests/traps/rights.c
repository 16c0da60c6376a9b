/* A program that may run with the rights of another user: says so, and draws. */
#include "trap.h"
#include <unistd.h>

int main(void) {
    start();
    printf("other user %d\n", getuid() != geteuid());
    use(program(), 0.2f);
    glEnableVertexAttribArray(0);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    say("drawn");
    printf("swap %d\n", eglSwapBuffers(display, surface));
    return 4;
}
