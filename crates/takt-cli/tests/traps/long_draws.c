/* Frames of one long draw, and nothing that makes a driver draw in between. */
#include "trap.h"

int main(void) {
    start();
    GLuint made = program_of(PLAIN,
        "precision mediump float; uniform float much; void main() { float sum = much;"
        "for (int i = 0; i < 200; i++) sum = fract(sum * 1.7 + gl_FragCoord.x * 0.01); gl_FragColor = vec4(sum, 0.5, 0.0, 1.0); }");
    glUseProgram(made);
    glEnableVertexAttribArray(0);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
    for (int frame = 0; frame < 20; frame++) {
        glUniform1f(glGetUniformLocation(made, "much"), 0.05f * frame);
        glClear(GL_COLOR_BUFFER_BIT);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        eglSwapBuffers(display, surface);
    }
    say("long draws");
    eglTerminate(display);
    return 0;
}
