/* An app that says itself how many frames it draws, with libtakt-cuda; the argument is how many. It asks before there is
 * anything of GL, and again when there is a context. */
#include "trap.h"

#include <takt-cuda.h>

int main(int argc, char **argv) {
    int frames = argc > 1 ? atoi(argv[1]) : 30;
    printf("early: %d\n", glSetFrameTarget(30, 2000));
    start();
    printf("impossible: %d\n", glSetFrameTarget(0, 2000));
    printf("wanted: %d\n", glSetFrameTarget(30, 2000));
    for (int frame = 0; frame < frames; frame++) {
        glClearColor((float)frame / (float)frames, 0.5f, 0.5f, 1.0f);
        glClear(GL_COLOR_BUFFER_BIT);
        eglSwapBuffers(display, surface);
    }
    glFinish();
    printf("done\n");
    return 0;
}
