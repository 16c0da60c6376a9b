/* One frame of 166 draws, none like another, and all of them short. */
#include "trap.h"

#define DRAWS 166

int main(void) {
    static GLfloat places[(3 * DRAWS + 3) * 2];
    start();
    for (int at = 0; at < 3 * DRAWS + 3; at++) {
        places[at * 2] = (float)(at * 37 % 101) / 2000.0f;
        places[at * 2 + 1] = (float)(at * 53 % 103) / 2000.0f;
    }
    use(program(), 0.2f);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, places);
    glEnableVertexAttribArray(0);
    for (int at = 1; at <= DRAWS; at++) glDrawArrays(GL_TRIANGLES, 0, 3 * at);
    say("frame");
    return 0;
}
