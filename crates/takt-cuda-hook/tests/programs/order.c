/* Streams, events, copies, default streams and host functions: everything in its order. */
#include "cu.h"

static void host(void *data) { __atomic_add_fetch((int *)data, 1, __ATOMIC_SEQ_CST); }

int main(void) {
    begin();
    CUstream a, b;
    CUevent event;
    int calls = 0;
    CHECK(cuStreamCreate(&a, 1));
    CHECK(cuStreamCreate(&b, 1));
    CHECK(cuEventCreate(&event, 2));
    for (unsigned i = 0; i < 20; i++) {
        /* Each waits for the other. */
        CHECK(launch_append(2 * i, a));
        CHECK(cuEventRecord(event, a));
        CHECK(cuStreamWaitEvent(b, event, 0));
        CHECK(launch_spin(500, b));
        CHECK(launch_append(2 * i + 1, b));
        CHECK(cuLaunchHostFunc(b, host, &calls));
        CHECK(cuEventRecord(event, b));
        CHECK(cuStreamWaitEvent(a, event, 0));
    }
    CHECK(cuStreamSynchronize(a));
    CHECK(cuStreamSynchronize(b));
    print_log();
    printf("host functions: %d\n", calls);

    /* The default stream orders itself with streams that do not opt out. */
    CUstream c;
    CHECK(cuStreamCreate(&c, 0));
    CHECK(cuMemsetD32Async(log_, 0, 1, 0));
    for (unsigned i = 0; i < 10; i++) {
        CHECK(launch_spin(200, c));
        CHECK(launch_append(100 + i, c));
        CHECK(launch_append(200 + i, 0));
    }
    CHECK(cuCtxSynchronize());
    /* That of a thread does not. */
    if (!getenv("FIND") || strcmp(getenv("FIND"), "thread"))
        print_log();

    /* Copies of all kinds. */
    enum { WORDS = 4096 };
    static unsigned from[WORDS], to[WORDS];
    CUdeviceptr x, y;
    CHECK(cuMemAlloc(&x, sizeof from));
    CHECK(cuMemAlloc(&y, sizeof from));
    for (unsigned i = 0; i < WORDS; i++)
        from[i] = i * 7;
    CHECK(cuMemcpyHtoDAsync(x, from, sizeof from, a));
    CHECK(cuMemcpyDtoDAsync(y, x, sizeof from, a));
    CHECK(cuMemsetD32Async(y, 5, 16, a));
    CHECK(cuMemcpyDtoHAsync(to, y, sizeof to, a));
    CHECK(cuStreamSynchronize(a));
    unsigned long long sum = 0;
    for (unsigned i = 0; i < WORDS; i++)
        sum += to[i];
    printf("sum: %llu\n", sum);
    CHECK(cuMemcpyHtoD(x, from, sizeof from));
    CHECK(cuMemcpyDtoH(to, x, sizeof to));
    printf("equal: %d\n", !memcmp(from, to, sizeof from));

    /* An extended and a cooperative launch. */
    CHECK(cuMemsetD32Async(log_, 0, 1, a));
    unsigned value = 41;
    void *parameters[] = {&log_, &value};
    CUlaunchConfig config = {{1, 1, 1}, {1, 1, 1}, 0, a, NULL, 0};
    CHECK(cuLaunchKernelEx(&config, append, parameters, NULL));
    value = 42;
    CHECK(cuLaunchCooperativeKernel(append, 1, 1, 1, 1, 1, 1, 0, a, parameters));
    CHECK(cuStreamSynchronize(a));
    print_log();

    /* Errors stay errors. */
    printf("no blocks: %d\n", cuLaunchKernel(append, 0, 1, 1, 1, 1, 1, 0, a, parameters, NULL));
    printf("no stream: %d\n", cuStreamSynchronize((CUstream)(uintptr_t)0x12340));
    printf("event: %d\n", cuEventQuery(event));
    CHECK(cuStreamDestroy(a));
    CHECK(cuStreamDestroy(b));
    CHECK(cuStreamDestroy(c));
    CHECK(cuEventDestroy(event));
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
    CHECK(cuCtxDestroy(context));
    printf("done\n");
}
