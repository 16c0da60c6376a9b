/* Opens the driver, launches, and closes it again, as programs do that look for a GPU in between. */
#include "cu.h"

int main(void) {
    CUstream stream;
    unsigned rounds = 0;
    for (; rounds < 20; rounds++) {
        void *again = library();
        begin();
        CHECK(cuStreamCreate(&stream, 1));
        CHECK(launch_spin(20000, stream));
        /* What was begun goes on while the driver is closed. */
        if (rounds % 2)
            CHECK(cuStreamSynchronize(stream));
        /* Once for each time that it was opened. */
        dlclose(again);
        dlclose(again);
        usleep(1000);
    }
    void *opened = library();
    begin();
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(launch_spin(20000, stream));
    CHECK(cuStreamSynchronize(stream));
    printf("%u rounds, %s\n", rounds, opened ? "done" : "");
    return 0;
}
