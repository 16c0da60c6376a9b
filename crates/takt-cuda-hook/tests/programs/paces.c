/* Jobs by a clock, whose ends the program learns in one of the ways that CUDA programs have.
 *
 *   paces WAY COUNT PERIOD_MS
 *
 * Each job is two kernels of a millisecond. No way but those of its name is used to wait.
 */
#include "cu.h"
#include <semaphore.h>

static CUstream stream, other;
static CUevent event, blocking;
static CUgraphExec graph;
static volatile unsigned *flag;
static unsigned char *unknown;
static sem_t told, asked;

enum { KERNEL = 50000, BYTES = 4096 };

static void tell(void *unused) {
    (void)unused;
    sem_post(&told);
}

static void tell_of_stream(CUstream which, CUresult result, void *unused) {
    (void)which;
    (void)result;
    (void)unused;
    sem_post(&told);
}

static void await(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) {
    }
}

static void two_kernels(CUstream where) {
    CHECK(launch_spin(KERNEL, where));
    CHECK(launch_spin(KERNEL, where));
}

static void raise_in(CUstream where) {
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)flag;
    void *parameters[] = {&at};
    CHECK(cuLaunchKernel(raise_flag, 1, 1, 1, 1, 1, 1, 0, where, parameters, NULL));
}

static void await_flag_here(void) {
    while (!*flag)
        usleep(200);
    *flag = 0;
}

/* Launches when it is asked to, and never waits for the GPU. */
static void *launches(void *unused) {
    (void)unused;
    CHECK(cuCtxSetCurrent(context));
    for (;;) {
        await(&asked);
        two_kernels(stream);
        sem_post(&told);
    }
    return NULL;
}

static void capture(void) {
    CUgraph captured;
    CHECK(cuStreamBeginCapture(stream, 2));
    two_kernels(stream);
    CHECK(cuStreamEndCapture(stream, &captured));
    CHECK(cuGraphInstantiateWithFlags(&graph, captured, 0));
}

static void job(const char *way) {
    CUresult answer;
    if (!strcmp(way, "graph")) {
        CHECK(cuGraphLaunch(graph, stream));
        CHECK(cuStreamSynchronize(stream));
        return;
    }
    if (!strcmp(way, "default")) {
        two_kernels(NULL);
        CHECK(cuStreamSynchronize(NULL));
        return;
    }
    if (!strcmp(way, "thread")) {
        sem_post(&asked);
        await(&told);
        CHECK(cuCtxSynchronize());
        return;
    }
    int halted = !strcmp(way, "halted");
    if (halted) {
        *flag = 0;
        CHECK(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)flag, 1, 0));
    }
    two_kernels(stream);
    if (halted) {
        usleep(20000);
        *flag = 1;
        CHECK(cuStreamSynchronize(stream));
    } else if (!strcmp(way, "stream")) {
        CHECK(cuStreamSynchronize(stream));
    } else if (!strcmp(way, "streams")) {
        two_kernels(other);
        CHECK(cuEventRecord(event, other));
        CHECK(cuStreamWaitEvent(stream, event, 0));
        CHECK(cuStreamSynchronize(stream));
    } else if (!strcmp(way, "twice")) {
        CHECK(cuStreamSynchronize(stream));
        two_kernels(other);
        CHECK(cuStreamSynchronize(other));
    } else if (!strcmp(way, "context")) {
        CHECK(cuCtxSynchronize());
    } else if (!strcmp(way, "event") || !strcmp(way, "blocking")) {
        CUevent which = !strcmp(way, "event") ? event : blocking;
        CHECK(cuEventRecord(which, stream));
        CHECK(cuEventSynchronize(which));
    } else if (!strcmp(way, "poll-stream") || !strcmp(way, "spin-stream")) {
        while ((answer = cuStreamQuery(stream)) == NOT_READY)
            if (!strcmp(way, "poll-stream"))
                usleep(200);
        CHECK(answer);
    } else if (!strcmp(way, "poll-event") || !strcmp(way, "look-late")) {
        CHECK(cuEventRecord(event, stream));
        do {
            usleep(!strcmp(way, "poll-event") ? 200 : 8000);
        } while ((answer = cuEventQuery(event)) == NOT_READY);
        CHECK(answer);
    } else if (!strcmp(way, "copy")) {
        CHECK(cuMemcpyDtoH(unknown, out, 64));
    } else if (!strcmp(way, "copy-into-stream")) {
        CHECK(cuMemcpyDtoHAsync(unknown, log_, BYTES, stream));
    } else if (!strcmp(way, "host-function")) {
        CHECK(cuLaunchHostFunc(stream, tell, NULL));
        await(&told);
    } else if (!strcmp(way, "callback")) {
        CHECK(cuStreamAddCallback(stream, tell_of_stream, NULL, 0));
        await(&told);
    } else if (!strcmp(way, "memory")) {
        raise_in(stream);
        await_flag_here();
    } else if (!strcmp(way, "written")) {
        CHECK(cuStreamWriteValue32(stream, (CUdeviceptr)(uintptr_t)flag, 1, 0));
        await_flag_here();
    } else {
        printf("no way '%s'\n", way);
        exit(2);
    }
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "stream";
    int jobs = count > 2 ? atoi(arguments[2]) : 10;
    double period = count > 3 ? atof(arguments[3]) : 30;
    pthread_t thread;
    begin();
    sem_init(&told, 0, 0);
    sem_init(&asked, 0, 0);
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamCreate(&other, 1));
    CHECK(cuEventCreate(&event, 2));
    CHECK(cuEventCreate(&blocking, 3));
    CHECK(cuMemAllocHost((void **)&flag, BYTES));
    unknown = calloc(1, BYTES);
    capture();
    if (!strcmp(way, "thread"))
        pthread_create(&thread, NULL, launches, NULL);
    for (int i = 0; i < jobs; i++) {
        double next = now_ms() + period;
        job(way);
        while (now_ms() < next)
            usleep((next - now_ms()) * 1000 > 0 ? (unsigned)((next - now_ms()) * 1000) : 1);
    }
    printf("%d jobs\n", jobs);
    /* The driver's threads end with the process. */
    fflush(stdout);
    _exit(0);
}
