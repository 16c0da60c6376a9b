/* Does what its lines of input say, and says on standard error when that is over.
 *
 * job      a kernel, and waits for it
 * capture  captures a kernel, and launches the graph
 * begin    begins a capture that "end" ends; in between a daemon may come or go
 * fork     a copy of the process launches a kernel and exits
 * exec     becomes the same program anew
 * endless  a kernel that ends when "release" is said
 */
#include "cu.h"
#include <sys/wait.h>

static CUstream stream;
static CUstream aside;
static CUdeviceptr flag;
static CUgraph graph;

static void launch_graph(void) {
    CUgraphExec executable;
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cuGraphLaunch(executable, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(executable));
    CHECK(cuGraphDestroy(graph));
}

static void job(void) {
    CHECK(launch_spin(1000, stream));
    CHECK(cuStreamSynchronize(stream));
}

static void flag_kernel(CUfunction function, CUstream where) {
    void *parameters[] = {&flag};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, where, parameters, NULL));
}

static void forks(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        /* The driver refuses copies of a process; that answer is theirs with Takt as well. */
        _exit(launch_spin(1, stream) == 0 ? 5 : 6);
    }
    waitpid(child, &status, 0);
    fprintf(stderr, "the copy ends with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

int main(int argc, char **argv) {
    char line[32];
    (void)argc;
    /* What was read ahead would be lost with exec. */
    setvbuf(stdin, NULL, _IONBF, 0);
    begin();
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamCreate(&aside, 1));
    CHECK(cuMemAlloc(&flag, 64));
    fprintf(stderr, "begun\n");
    for (unsigned count = 1; fgets(line, sizeof line, stdin); count++) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "job")) {
            job();
        } else if (!strcmp(line, "capture") || !strcmp(line, "begin")) {
            CHECK(cuStreamBeginCapture(stream, 2));
            CHECK(launch_spin(1000, stream));
        } else if (!strcmp(line, "fork")) {
            forks();
        } else if (!strcmp(line, "endless")) {
            flag_kernel(await_flag, aside);
        } else if (!strcmp(line, "release")) {
            flag_kernel(raise_flag, stream);
            CHECK(cuStreamSynchronize(aside));
        } else if (!strcmp(line, "exec")) {
            execv("/proc/self/exe", argv);
        }
        if (!strcmp(line, "capture") || !strcmp(line, "end")) {
            CHECK(cuStreamEndCapture(stream, &graph));
            launch_graph();
        }
        fprintf(stderr, "%s %u is over\n", line, count);
    }
    CHECK(cuCtxDestroy(context));
    printf("done\n");
}
