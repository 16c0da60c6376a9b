/* Many contexts, made and destroyed; COUNT of them, of which some were current. */
#include "trap.h"
#include <unistd.h>

/* What a context may leave behind, in bytes: less than a thousandth of what it is. */
#define LEFT_BEHIND 512
/* Memory comes in pieces. */
#define PIECES (6 << 20)

static long resident(void) {
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2) die("/proc/self/statm");
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void one(int number) {
    EGLContext made = new_context(number % 2 ? context : EGL_NO_CONTEXT);
    if (number % 10 == 0) {
        eglMakeCurrent(display, surface, surface, made);
        glClear(GL_COLOR_BUFFER_BIT);
        eglMakeCurrent(display, surface, surface, context);
    }
    if (!eglDestroyContext(display, made)) die("eglDestroyContext");
}

int main(int count, char **arguments) {
    int contexts = count > 1 ? atoi(arguments[1]) : 1000;
    start();
    /* Whatever is made once and kept is there by then. */
    for (int at = 0; at < contexts / 5; at++) one(at);
    long before = resident();
    for (int at = 0; at < contexts; at++) one(at);
    long grown = resident() - before;
    if (grown > PIECES + (long)contexts * LEFT_BEHIND) printf("memory grew by %ld bytes\n", grown);
    if (getenv("TRAP_TELL")) fprintf(stderr, "%d contexts, memory grew by %ld bytes\n", contexts, grown);
    glClear(GL_COLOR_BUFFER_BIT);
    say("end");
    return 0;
}
