/* Threads that launch into streams of their own, into a common one and into default streams. */
#include "cu.h"

enum { THREADS = 8, ROUNDS = 60 };
static CUstream common;
static CUdeviceptr logs[THREADS];

static void *works(void *argument) {
    unsigned number = (unsigned)(uintptr_t)argument;
    CUstream own;
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&own, number % 2));
    for (unsigned i = 0; i < ROUNDS; i++) {
        void *parameters[] = {&logs[number], &i};
        CUstream stream = i % 3 == 0 ? own : i % 3 == 1 ? common : (CUstream)(uintptr_t)(number % 2 ? 2 : 1);
        CHECK(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        CHECK(cuStreamSynchronize(stream));
        CHECK(launch_spin(50 * number, own));
    }
    CHECK(cuStreamSynchronize(own));
    CHECK(cuStreamDestroy(own));
    return NULL;
}

int main(void) {
    begin();
    CHECK(cuStreamCreate(&common, 1));
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(cuMemAlloc(&logs[i], 4096));
        CHECK(cuMemsetD8(logs[i], 0, 4096));
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, works, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        unsigned words[1024], good = 0;
        CHECK(cuMemcpyDtoH(words, logs[i], sizeof words));
        for (unsigned k = 0; k < ROUNDS; k++)
            good += words[k + 1] == k;
        printf("thread %u: %u of %u in order\n", i, good, words[0]);
    }
    CHECK(cuCtxDestroy(context));
    printf("done\n");
}
