/* Swaps a window as fast as it may, and says how many of its frames were unfinished at most when a
 * swap came back. */
#include "trap.h"
#include <GLES3/gl3.h>

#define FRAMES 24

#define HEAVY                                                          \
    "precision highp float; void main() { float sum = gl_FragCoord.x;" \
    "for (int i = 0; i < 300; i++) sum = fract(sum * 1.7 + 0.3); gl_FragColor = vec4(sum); }"

int main(void) {
    static const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_WINDOW_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT, EGL_NONE};
    static const GLfloat all[] = {-1, -1, 3, -1, -1, 3};
    EGLint count = 0;
    GLsync fences[FRAMES];
    int most = 0;
    display = eglGetDisplay(EGL_DEFAULT_DISPLAY);
    if (!eglInitialize(display, NULL, NULL)) die("eglInitialize");
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || !count) die("eglChooseConfig");
    surface = eglCreateWindowSurface(display, config, (EGLNativeWindowType)0, NULL);
    context = new_context(EGL_NO_CONTEXT);
    if (!surface || !eglMakeCurrent(display, surface, surface, context)) die("eglMakeCurrent");
    glUseProgram(program_of(PLAIN, HEAVY));
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, all);
    glEnableVertexAttribArray(0);
    for (int frame = 0; frame < FRAMES; frame++) {
        glDrawArrays(GL_TRIANGLES, 0, 3);
        fences[frame] = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
        eglSwapBuffers(display, surface);
        int unfinished = 0;
        for (int before = 0; before <= frame; before++) {
            GLint state = 0;
            glGetSynciv(fences[before], GL_SYNC_STATUS, 1, NULL, &state);
            unfinished += state != GL_SIGNALED;
        }
        most = unfinished > most ? unfinished : most;
    }
    printf("unfinished %d, error %#x\n", most, glGetError());
    return 0;
}
