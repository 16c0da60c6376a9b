/* A fence of EGL in the middle of each frame, which the program never waits for. */
#include "trap.h"

int main(void) {
    start();
    GLuint linked = program();
    for (int frame = 0; frame < 4; frame++) {
        use(linked, 0.1f * (float)frame);
        glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
        glEnableVertexAttribArray(0);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        EGLSync sync = eglCreateSync(display, EGL_SYNC_FENCE, NULL);
        if (!sync) die("eglCreateSync");
        glDrawArrays(GL_TRIANGLES, 0, 3);
        eglSwapBuffers(display, surface);
        eglDestroySync(display, sync);
    }
    say("end");
    return 0;
}
