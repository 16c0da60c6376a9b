/* fork without exec, fork with exec, and drawing on afterwards. */
#include "trap.h"
#include <sys/wait.h>
#include <unistd.h>

static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Forked before there is any GL: both draw. */
static int both(void) {
    fflush(stdout);
    pid_t child = fork();
    int ended = child ? wait_for(child) : 0;
    start();
    glClearColor(0, 1, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    say(child ? "parent" : "child");
    eglSwapBuffers(display, surface);
    return child ? ended : 6;
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "both")) return both();
    start();
    use(program(), 0);
    glEnableVertexAttribArray(0);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    say(count > 1 ? "executed" : "before");
    if (count > 1) return 5;
    pid_t child = fork();
    if (child == 0) _exit(7);
    printf("child %d\n", wait_for(child));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        execl(arguments[0], arguments[0], "again", (char *)NULL);
        _exit(8);
    }
    printf("grandchild %d\n", wait_for(child));
    glDrawArrays(GL_TRIANGLES, 0, 3);
    say("after");
    return 0;
}
