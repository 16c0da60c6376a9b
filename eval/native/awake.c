// Keeps the processors of a virtual machine from halting while something is measured.
//
// A halted virtual processor is given away by its host, and comes back late where the host has
// others to serve: programs that sleep and wake then stand still for milliseconds, while those
// that never sleep are left alone. Systems with deadlines boot with idle=poll for this; here one
// thread per processor spins with SCHED_IDLE, and so makes way for anything else at once.
// It ends with the program that started it.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// About a microsecond.
enum { PAUSES = 20 };

_Noreturn static void *spin(void *nothing) {
    (void)nothing;
    for (;;) {
        for (int i = 0; i < PAUSES; i++) {
            // Leaves the core to the processor that shares it.
            __builtin_ia32_pause();
        }
        // A kernel that preempts lazily makes way for others where it is entered, and else at its
        // next tick, milliseconds later.
        syscall(SYS_getppid);
    }
}

static int start_on(int processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, spin, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Inherited by the threads, so that none of them runs with any other.
    struct sched_param none = {0};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) {
        perror("awake: SCHED_IDLE");
        return 1;
    }
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        perror("awake: processors");
        return 1;
    }
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        int error = CPU_ISSET(processor, &allowed) ? start_on(processor) : 0;
        if (error != 0) {
            fprintf(stderr, "awake: processor %d: %s\n", processor, strerror(error));
            return 1;
        }
    }
    printf("%d\n", CPU_COUNT(&allowed));
    fflush(stdout);
    for (;;) {
        pause();
    }
}
