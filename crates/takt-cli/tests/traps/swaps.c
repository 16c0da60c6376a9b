/* An app that never swaps, one that only swaps, a slow one, and one that dies: by argument. */
#include "trap.h"
#include <unistd.h>

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
        for (int at = 0; at < 1500; at++) {
            glClear(GL_COLOR_BUFFER_BIT);
            eglSwapBuffers(display, surface);
            usleep(1000);
        }
        say("long");
    } else if (!strcmp(what, "crash")) {
        glClear(GL_COLOR_BUFFER_BIT);
        glFlush();
        *(volatile int *)8 = 1;
    } else if (!strcmp(what, "exit")) {
        glClear(GL_COLOR_BUFFER_BIT);
        eglSwapBuffers(display, surface);
        exit(42);
    }
    return 0;
}
