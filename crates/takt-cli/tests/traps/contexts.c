/* Many contexts, made and destroyed; COUNT of them, of which some were current. */
#include "trap.h"

int main(int count, char **arguments) {
    int contexts = count > 1 ? atoi(arguments[1]) : 1000;
    start();
    for (int at = 0; at < contexts; at++) {
        EGLContext made = new_context(at % 2 ? context : EGL_NO_CONTEXT);
        if (at % 100 == 0) {
            eglMakeCurrent(display, surface, surface, made);
            glClear(GL_COLOR_BUFFER_BIT);
            eglMakeCurrent(display, surface, surface, context);
        }
        if (!eglDestroyContext(display, made)) die("eglDestroyContext");
    }
    glClear(GL_COLOR_BUFFER_BIT);
    say("end");
    return 0;
}
