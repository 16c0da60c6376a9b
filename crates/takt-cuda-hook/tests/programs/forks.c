/* Forks before it begins with CUDA: the copy uses it as well, as workers of Python do. */
#include "cu.h"
#include <sys/wait.h>

static void work(unsigned jobs) {
    CUstream stream;
    begin();
    CHECK(cuStreamCreate(&stream, 1));
    for (unsigned i = 0; i < jobs; i++) {
        CHECK(launch_append(i, stream));
        CHECK(launch_spin(20000, stream));
        CHECK(cuStreamSynchronize(stream));
    }
    print_log();
}

int main(void) {
    int status = -1;
    /* Opened, and nothing called. */
    if (!library())
        return 1;
    pid_t child = fork();
    if (child == 0) {
        work(5);
        exit(0);
    }
    waitpid(child, &status, 0);
    printf("the copy ends with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    work(3);
    printf("done\n");
    return 0;
}
