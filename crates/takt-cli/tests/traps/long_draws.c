/* Frames of one long draw, and nothing that makes a driver draw in between. */
#include "trap.h"

int main(void) {
    start();
    GLuint made = glCreateProgram();
    glAttachShader(made, shader(GL_VERTEX_SHADER, "attribute vec2 at; void main() { gl_Position = vec4(at, 0.0, 1.0); }"));
    glAttachShader(made, shader(GL_FRAGMENT_SHADER,
        "precision mediump float; uniform float much; void main() { float sum = much;"
        "for (int i = 0; i < 200; i++) sum = fract(sum * 1.7 + gl_FragCoord.x * 0.01); gl_FragColor = vec4(sum, 0.5, 0.0, 1.0); }"));
    glBindAttribLocation(made, 0, "at");
    glLinkProgram(made);
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
