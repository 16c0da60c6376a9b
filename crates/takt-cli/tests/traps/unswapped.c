/* An app with a hundred frames and not a single swap. The first argument says how it ends frames (finish, flush,
 * fence), or that it swaps after all (swap); the second how many microseconds apart it begins them, 0: at once. */
#include "trap.h"
#include <GLES3/gl3.h>
#include <time.h>

static void sleep_until(struct timespec *next, long us) {
    next->tv_nsec += us * 1000;
    while (next->tv_nsec >= 1000000000) {
        next->tv_nsec -= 1000000000;
        next->tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    const char *how = arguments[1];
    long us = atol(arguments[2]);
    struct timespec next;
    start();
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int frame = 0; frame < 100; frame++) {
        if (us > 0) sleep_until(&next, us);
        glClear(GL_COLOR_BUFFER_BIT);
        if (!strcmp(how, "finish")) {
            glFinish();
        } else if (!strcmp(how, "flush")) {
            glFlush();
        } else if (!strcmp(how, "swap")) {
            eglSwapBuffers(display, surface);
        } else {
            GLsync fence = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
            glClientWaitSync(fence, GL_SYNC_FLUSH_COMMANDS_BIT, 1000000000);
            glDeleteSync(fence);
        }
    }
    say("done");
    return 0;
}
