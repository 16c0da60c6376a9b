/* A forked child goes on with the context it inherited, draws, and ends by exit(); so does its parent.
 * To be run with a renderer without threads, because a child inherits none. */
#include "trap.h"
#include <sys/wait.h>
#include <unistd.h>

static void frames(void) {
    for (int at = 0; at < 20; at++) {
        glClear(GL_COLOR_BUFFER_BIT);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        glFlush();
        eglSwapBuffers(display, surface);
    }
}

static void draw(const char *what) {
    frames();
    glDrawArrays(GL_TRIANGLES, 0, 3);
    say(what);
}

int main(void) {
    start();
    use(program(), 0.2f);
    glEnableVertexAttribArray(0);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
    draw("before");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        draw("child");
        exit(7);
    }
    int status = 0;
    frames();
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
    draw("after");
    return 0;
}
