// A load of CUDA for experiments, through the driver's API alone, so that it needs nothing but a driver.
//
//   compute calibrate [--seconds S]
//   compute job --iterations N [--hz 60] [--jitter J] [--worst N --every M] [--kernels K] [--graph 1] [--seconds S]
//               [--log FILE]
//   compute flood --iterations N [--kernels K] [--graph 1] [--seconds S] [--log FILE]
//   compute launches [--count N]
//
// A kernel fills the GPU and counts so many iterations in each thread. `calibrate` says how long one takes at full
// clock. `job` runs a kernel at the beginning of each period of its own clock, which is longer or shorter by up to the
// part J (each M-th one as long as `--worst` says), and `flood` one after the other; K of
// them instead of one, as a graph if that is asked for. Both end after S seconds or with SIGINT, and print what they
// have done as JSON. `launches` says what the call of a launch takes, of kernels that do nothing, in batches. The log has a line for each kernel: its
// release and its end are the third and the fifth number. DRIVER=FILE names another driver than libcuda.so.1.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int CUresult;
typedef struct object *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUgraph, *CUgraphExec;
typedef uint64_t CUdeviceptr;

#define FUNCTIONS(F)                                                                                              \
    F(cuInit, cuInit, (unsigned))                                                                                 \
    F(cuDeviceGet, cuDeviceGet, (int *, int))                                                                     \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, int))                                     \
    F(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext))                                                              \
    F(cuModuleLoadData, cuModuleLoadData, (CUmodule *, const void *))                                             \
    F(cuModuleGetFunction, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                           \
    F(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                         \
    F(cuStreamCreate, cuStreamCreate, (CUstream *, unsigned))                                                     \
    F(cuStreamSynchronize, cuStreamSynchronize, (CUstream))                                                       \
    F(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, unsigned))                                        \
    F(cuStreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph *))                                              \
    F(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))     \
    F(cuGraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                                                      \
    F(cuLaunchKernel, cuLaunchKernel,                                                                             \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))

#define DECLARE(name, symbol, types) static CUresult(*name) types;
FUNCTIONS(DECLARE)

static const char *const PTX =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin(.param .u64 out, .param .u32 n)\n{\n"
    " .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<2>;\n"
    " ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0; mov.f32 %f1, 0f3F000000;\n"
    "LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE; sin.approx.f32 %f1, %f1; add.u32 %r2, %r2, 1; bra LOOP;\n"
    "DONE: st.global.f32 [%rd1], %f1; ret;\n}\n";

// Twice as many blocks as the largest GPUs have processors, of as many threads as fit.
enum { BLOCKS = 264, THREADS = 1024, NON_BLOCKING = 1, RELAXED = 2, LONGEST = 1 << 20, BATCH = 500 };

static CUfunction spin;
static CUstream stream;
static CUdeviceptr out;
static volatile sig_atomic_t stopped;
static long launches, graphs;
static unsigned kernels = 1, worst, every;
static CUgraphExec graph;

static void check(CUresult result, const char *call) {
    if (result != 0) {
        fprintf(stderr, "compute: %s gives %d\n", call, result);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static void stop(int number) {
    (void)number;
    stopped = 1;
}

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void sleep_until(int64_t ns) {
    struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR && !stopped) {
    }
}

static void find_functions(void) {
    const char *path = getenv("DRIVER");
    void *driver = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "compute: %s\n", dlerror());
        exit(1);
    }
#define FIND(name, symbol, types)                                                                                 \
    *(void **)&name = dlsym(driver, #symbol);                                                                     \
    if (!name) {                                                                                                  \
        fprintf(stderr, "compute: the driver has no " #symbol "\n");                                              \
        exit(1);                                                                                                  \
    }
    FUNCTIONS(FIND)
}

static void begin(void) {
    int device;
    CUcontext context;
    CUmodule module;
    find_functions();
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, PTX));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CHECK(cuMemAlloc(&out, 64));
    CHECK(cuStreamCreate(&stream, NON_BLOCKING));
}

static void launch(unsigned iterations) {
    void *parameters[] = {&out, &iterations};
    for (unsigned i = 0; i < kernels; i++)
        CHECK(cuLaunchKernel(spin, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
    launches += kernels;
}

/* All kernels of a job as one graph. */
static void make_graph(unsigned iterations) {
    CUgraph captured;
    CHECK(cuStreamBeginCapture(stream, RELAXED));
    launch(iterations);
    CHECK(cuStreamEndCapture(stream, &captured));
    CHECK(cuGraphInstantiateWithFlags(&graph, captured, 0));
}

/* Runs a kernel, all of them or their graph to the end; when it ended. */
static int64_t run(unsigned iterations) {
    if (graph) {
        CHECK(cuGraphLaunch(graph, stream));
        graphs++;
    } else {
        launch(iterations);
    }
    CHECK(cuStreamSynchronize(stream));
    return now_ns();
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The shortest of several, in nanoseconds. */
static int64_t shortest(unsigned iterations, int tries) {
    int64_t best = INT64_MAX;
    for (int i = 0; i < tries; i++) {
        int64_t began = now_ns(), took = run(iterations) - began;
        best = took < best ? took : best;
    }
    return best;
}

static void calibrate(double seconds) {
    unsigned some = 1000;
    /* The clock of a GPU that was idle is low. */
    for (int64_t until = now_ns() + (int64_t)(seconds * 1e9); now_ns() < until;)
        run(some);
    while (shortest(some, 3) < 2000000 && some < 1u << 30)
        some *= 2;
    int64_t low = shortest(some, 20), high = shortest(4 * some, 20);
    double per_iteration_ns = (double)(high - low) / (3.0 * some);
    printf("{\"per_iteration_ns\": %.6f, \"fixed_us\": %.3f, \"shortest_ms\": %.4f, \"iterations\": %u}\n", per_iteration_ns,
           (low - some * per_iteration_ns) / 1e3, low / 1e6, some);
}

static double at_share(const int64_t *ordered, long count, double share) {
    long at = (long)(share * (double)count);
    return count ? (double)ordered[at < count ? at : count - 1] / 1e6 : 0;
}

/* What a launch takes in the thread that makes it: the least and the median of batches. */
static void measure_launches(long count) {
    static int64_t took[LONGEST];
    long batches = count / BATCH < 1 ? 1 : count / BATCH < LONGEST ? count / BATCH : LONGEST;
    unsigned nothing = 0;
    void *parameters[] = {&out, &nothing};
    for (long batch = -1; batch < batches; batch++) {
        int64_t began = now_ns();
        for (int i = 0; i < BATCH; i++)
            CHECK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        if (batch >= 0)
            took[batch] = now_ns() - began;
        CHECK(cuStreamSynchronize(stream));
        launches += BATCH;
    }
    qsort(took, (size_t)batches, sizeof took[0], by_value);
    printf("{\"mode\": \"launches\", \"least_ns\": %.1f, \"p50_ns\": %.1f, \"launches\": %ld}\n",
           (double)took[0] / BATCH, (double)took[batches / 2] / BATCH, launches);
}

/* Between -1 and 1, the same in each run. */
static double chance(void) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int32_t)(state >> 32) / 2147483648.0;
}

static void load(int is_job, unsigned iterations, double hz, double jitter, double seconds, FILE *log) {
    static int64_t responses[LONGEST];
    long count = 0, missed = 0;
    /* The first ones load code, and bring the clock up; a long one does both. */
    int64_t enough = now_ns() + 300000000;
    for (int i = 0; i < 3 && !stopped && (i == 0 || now_ns() < enough); i++)
        run(iterations);
    int64_t began = now_ns(), period = (int64_t)(1e9 / hz), next = began;
    int64_t until = began + (int64_t)(seconds * 1e9);
    while (!stopped && now_ns() < until) {
        int64_t release = is_job ? next : now_ns();
        if (is_job)
            sleep_until(release);
        int is_worst = every && count % every == every - 1;
        int64_t start = now_ns(), end = run(is_worst ? worst : iterations);
        if (count < LONGEST)
            responses[count++] = end - release;
        missed += is_job && end - release > period;
        if (log)
            fprintf(log, "%ld,0,%ld,%ld,%ld,0\n", count, (long)release, (long)start, (long)end);
        /* Periods that are over are left out. */
        for (next += (int64_t)((double)period * (1 + jitter * chance())); is_job && next + period < end;)
            next += period;
    }
    int64_t ended = now_ns();
    qsort(responses, (size_t)count, sizeof responses[0], by_value);
    printf("{\"mode\": \"%s\", \"iterations\": %u, \"jobs\": %ld, \"seconds\": %.3f, \"per_s\": %.3f, \"missed\": %ld, "
           "\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f, \"graphs\": %ld, \"launches\": %ld}\n",
           is_job ? "job" : "flood", iterations, count, (double)(ended - began) / 1e9,
           (double)count * 1e9 / (double)(ended - began), missed, at_share(responses, count, 0.5),
           at_share(responses, count, 0.99), at_share(responses, count, 1), graphs, launches);
}

static void usage(void) {
    fprintf(stderr, "usage: compute calibrate|job|flood|launches [--iterations N] [--hz F] [--jitter J] [--worst N --every M]\n"
                    "               [--kernels K] [--graph 1] [--count N] [--seconds S] [--log FILE]\n");
    exit(2);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "", *file = NULL;
    double hz = 60, seconds = !strcmp(mode, "calibrate") ? 1 : 86400;
    unsigned iterations = 0;
    int as_graph = 0;
    long launch_count = 100000;
    double jitter = 0;
    for (int i = 2; i + 1 < count; i += 2) {
        if (!strcmp(arguments[i], "--iterations"))
            iterations = (unsigned)strtoul(arguments[i + 1], NULL, 10);
        else if (!strcmp(arguments[i], "--hz"))
            hz = strtod(arguments[i + 1], NULL);
        else if (!strcmp(arguments[i], "--worst"))
            worst = (unsigned)strtoul(arguments[i + 1], NULL, 10);
        else if (!strcmp(arguments[i], "--every"))
            every = (unsigned)strtoul(arguments[i + 1], NULL, 10);
        else if (!strcmp(arguments[i], "--seconds"))
            seconds = strtod(arguments[i + 1], NULL);
        else if (!strcmp(arguments[i], "--jitter"))
            jitter = strtod(arguments[i + 1], NULL);
        else if (!strcmp(arguments[i], "--kernels"))
            kernels = (unsigned)strtoul(arguments[i + 1], NULL, 10);
        else if (!strcmp(arguments[i], "--graph"))
            as_graph = atoi(arguments[i + 1]);
        else if (!strcmp(arguments[i], "--count"))
            launch_count = atol(arguments[i + 1]);
        else if (!strcmp(arguments[i], "--log"))
            file = arguments[i + 1];
        else
            usage();
    }
    int is_job = !strcmp(mode, "job"), is_flood = !strcmp(mode, "flood"), counts = !strcmp(mode, "launches");
    int is_known = counts || !strcmp(mode, "calibrate") || ((is_job || is_flood) && iterations);
    if (count % 2 || !(hz > 0) || !(jitter >= 0 && jitter < 1) || kernels == 0 || (every && !worst) || launch_count < 1 || !is_known)
        usage();
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    begin();
    if (counts) {
        measure_launches(launch_count);
        return 0;
    }
    if (!is_job && !is_flood) {
        calibrate(seconds);
        return 0;
    }
    if (as_graph)
        make_graph(iterations);
    FILE *log = file ? fopen(file, "w") : NULL;
    if (file && !log) {
        perror(file);
        return 1;
    }
    if (log) {
        setvbuf(log, NULL, _IOLBF, 0);
        fprintf(log, "number,none,release_ns,start_ns,end_ns,none\n");
    }
    load(is_job, iterations, hz, jitter, seconds, log);
    return log && fclose(log) ? 1 : 0;
}
