/* CPU time per GL call, best of several rounds: one line per call, name and nanoseconds.
 * Run it alone and under `takt run` to see what hooks cost (scripts/bench-hooks.sh does). */
#include "../crates/takt-cli/tests/traps/trap.h"
#include <time.h>

#define ROUNDS 9
#define CALLS 200000

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#define BENCH(name, count, call)                                                     \
    do {                                                                             \
        double best = 1e30;                                                          \
        for (int round = 0; round < ROUNDS; round++) {                               \
            double began = now();                                                    \
            for (int at = 0; at < (count); at++) call;                               \
            double took = (now() - began) / (count);                                 \
            if (took < best) best = took;                                            \
        }                                                                            \
        printf("%s %.2f\n", name, best);                                             \
    } while (0)

int main(void) {
    start();
    GLuint name = program(), buffers[2], textures[2];
    use(name, 0.1f);
    GLint colour = glGetUniformLocation(name, "colour"), turn = glGetUniformLocation(name, "turn");
    const GLfloat matrix[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    glGenBuffers(2, buffers);
    glGenTextures(2, textures);
    glBindBuffer(GL_ARRAY_BUFFER, buffers[0]);
    glBufferData(GL_ARRAY_BUFFER, sizeof TRIANGLE, TRIANGLE, GL_STATIC_DRAW);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
    glEnableVertexAttribArray(0);
    BENCH("glGetError", CALLS, glGetError());
    BENCH("glIsEnabled", CALLS, glIsEnabled(GL_BLEND));
    BENCH("glDepthMask", CALLS, glDepthMask(GL_TRUE));
    BENCH("glEnable", CALLS, glEnable(GL_BLEND));
    BENCH("glViewport", CALLS, glViewport(0, 0, SIZE, SIZE));
    BENCH("glBindBuffer", CALLS, glBindBuffer(GL_ARRAY_BUFFER, buffers[0]));
    BENCH("glBindTexture", CALLS, glBindTexture(GL_TEXTURE_2D, textures[at & 1]));
    BENCH("glVertexAttribPointer", CALLS, glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL));
    BENCH("glUseProgram", CALLS, glUseProgram(name));
    BENCH("glUniform4f", CALLS, glUniform4f(colour, 1, 1, 1, (float)(at & 1)));
    BENCH("glUniformMatrix4fv", CALLS, glUniformMatrix4fv(turn, 1, GL_FALSE, matrix));
    BENCH("glBufferSubData24", CALLS, glBufferSubData(GL_ARRAY_BUFFER, 0, sizeof TRIANGLE, TRIANGLE));
    glEnable(GL_SCISSOR_TEST);
    glScissor(0, 0, 1, 1);
    BENCH("glDrawArrays3", 20000, glDrawArrays(GL_TRIANGLES, 0, 3));
    return 0;
}
