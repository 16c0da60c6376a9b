/* Preloaded: keeps threads of Mesa's llvmpipe between passing a fence and unlocking it for a while, as
 * a busy machine does now and then, and ends the program if the fence is destroyed meanwhile. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef int call(pthread_cond_t *);

/* Threads are few; what each of them is about to unlock. */
static _Atomic(pthread_cond_t *) held[16];
static atomic_int fences;

static call *real(const char *name) {
    /* Names have had an older version, which dlsym would find. */
    call *found = (call *)dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found ? found : (call *)dlsym(RTLD_NEXT, name);
}

int pthread_cond_broadcast(pthread_cond_t *fence) {
    char thread[16] = "";
    prctl(PR_GET_NAME, thread);
    int done = real(__func__)(fence);
    if (strncmp(thread, "llvmpipe-", 9)) return done;
    fences++;
    for (int at = 0; at < 16; at++) {
        pthread_cond_t *nothing = NULL;
        if (!atomic_compare_exchange_strong(&held[at], &nothing, fence)) continue;
        usleep(2000);
        held[at] = NULL;
        break;
    }
    return done;
}

int pthread_cond_destroy(pthread_cond_t *fence) {
    for (int at = 0; at < 16; at++) {
        if (held[at] != fence) continue;
        fprintf(stderr, "a fence is freed while a thread holds it\n");
        _exit(86);
    }
    return real(__func__)(fence);
}

__attribute__((destructor)) static void end(void) {
    if (fences) fprintf(stderr, "late_unlock: %d fences\n", fences);
}
