/* Standard error has no reader any more, and writing there kills the process. */
#include "trap.h"
#include <signal.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    sigset_t none, pending;
    if (pipe(ends)) return 98;
    close(ends[0]);
    dup2(ends[1], 2);
    signal(SIGPIPE, SIG_DFL);
    start();
    for (int at = 0; at < 3; at++) {
        glClear(GL_COLOR_BUFFER_BIT);
        eglSwapBuffers(display, surface);
    }
    say("unheard");
    sigpending(&pending);
    sigprocmask(SIG_SETMASK, NULL, &none);
    printf("pending %d, blocked %d\n", sigismember(&pending, SIGPIPE), sigismember(&none, SIGPIPE));
    return 0;
}
