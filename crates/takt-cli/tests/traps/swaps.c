/* An app that never swaps, one that only swaps, some that run until their input ends, and some that
 * die: by argument. */
#include "trap.h"
#include <poll.h>
#include <signal.h>
#include <unistd.h>

static void caught(int number) {
    static const char text[] = "caught\n";
    if (write(1, text, sizeof text - 1) < 0) _exit(98);
    _exit(number);
}

/* Whether the parent has closed standard input. */
static int is_over(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 1) != 0;
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    start();
    if (!strcmp(what, "only")) {
        for (int at = 0; at < 100; at++) eglSwapBuffers(display, surface);
        say("only");
    } else if (!strcmp(what, "never")) {
        for (int at = 0; at < 3000; at++) glClear(GL_COLOR_BUFFER_BIT);
        say("never");
    } else if (!strcmp(what, "long")) {
        while (!is_over()) {
            glClear(GL_COLOR_BUFFER_BIT);
            eglSwapBuffers(display, surface);
        }
        say("long");
    } else if (!strcmp(what, "unseen")) {
        while (!is_over()) {
            glClear(GL_COLOR_BUFFER_BIT);
            glFlush();
        }
        say("unseen");
    } else if (!strcmp(what, "crash")) {
        glClear(GL_COLOR_BUFFER_BIT);
        glFlush();
        *(volatile int *)8 = 1;
    } else if (!strcmp(what, "handler")) {
        /* A program that handles its own crashes sees them. */
        signal(SIGSEGV, caught);
        glClear(GL_COLOR_BUFFER_BIT);
        glFlush();
        *(volatile int *)8 = 1;
    } else if (!strcmp(what, "abort")) {
        glClear(GL_COLOR_BUFFER_BIT);
        eglSwapBuffers(display, surface);
        abort();
    } else if (!strcmp(what, "exit")) {
        glClear(GL_COLOR_BUFFER_BIT);
        eglSwapBuffers(display, surface);
        exit(42);
    }
    return 0;
}
