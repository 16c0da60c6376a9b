/* Captures in all modes, and graphs. */
#include "cu.h"

static volatile int capturing, stop;
static CUstream other;

/* Another thread goes on while a stream is captured. */
static void *works(void *unused) {
    (void)unused;
    CHECK(cuCtxSetCurrent(context));
    unsigned relaxed = 2;
    CHECK(cuThreadExchangeStreamCaptureMode(&relaxed));
    while (!stop) {
        CHECK(launch_spin(100, other));
        CHECK(cuStreamSynchronize(other));
    }
    return NULL;
}

int main(void) {
    begin();
    CUstream a, b;
    CUevent fork, join;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuStreamCreate(&other, 1));
    CHECK(cuEventCreate(&fork, 2));
    CHECK(cuEventCreate(&join, 2));
    pthread_t thread;
    pthread_create(&thread, NULL, works, NULL);
    for (unsigned mode = 0; mode < 3; mode++) {
        for (unsigned round = 0; round < 5; round++) {
            /* Work that is under way when the capture begins. */
            CHECK(launch_spin(2000, a));
            CHECK(launch_spin(2000, b));
            CHECK(cuStreamBeginCapture(a, mode));
            CHECK(launch_append(1, a));
            CHECK(cuEventRecord(fork, a));
            CHECK(cuStreamWaitEvent(b, fork, 0));
            CHECK(launch_append(2, b));
            CHECK(cuMemsetD32Async(out, round, 4, b));
            usleep(2000);
            CHECK(cuEventRecord(join, b));
            CHECK(cuStreamWaitEvent(a, join, 0));
            CHECK(launch_append(3, a));
            int status = -1;
            CHECK(cuStreamIsCapturing(a, &status));
            CUgraph graph;
            CUgraphExec exec;
            size_t nodes = 0;
            CHECK(cuStreamEndCapture(a, &graph));
            CHECK(cuGraphGetNodes(graph, NULL, &nodes));
            CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
            CHECK(cuGraphUpload(exec, a));
            for (unsigned i = 0; i < 4; i++)
                CHECK(cuGraphLaunch(exec, a));
            CHECK(cuStreamSynchronize(a));
            if (round == 0)
                printf("mode %u: status %d, %zu nodes\n", mode, status, nodes);
            CHECK(cuGraphExecDestroy(exec));
            CHECK(cuGraphDestroy(graph));
        }
    }
    stop = 1;
    pthread_join(thread, NULL);
    print_log();

    /* A capture that the program itself spoils stays spoilt. */
    CUgraph graph = (CUgraph)1;
    CHECK(cuStreamBeginCapture(a, 0));
    CHECK(launch_append(9, a));
    printf("synchronised: %d\n", cuStreamSynchronize(a));
    CUresult ended = cuStreamEndCapture(a, &graph);
    printf("ended: %d, graph: %d\n", ended, graph != NULL);
    CHECK(launch_append(10, a));
    CHECK(cuStreamSynchronize(a));
    CHECK(cuCtxDestroy(context));
    printf("done\n");
}
