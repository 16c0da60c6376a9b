/* The smallest program that shows a frame: what scripts/bench-startup.sh starts. */
#include "../crates/takt-cli/tests/traps/trap.h"

int main(void) {
    start();
    eglSwapBuffers(display, surface);
    return glGetError() != GL_NO_ERROR;
}
