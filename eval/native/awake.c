// Keeps the processors of a virtual machine from halting for long while something is measured.
//
// A virtual processor that halts is given away by its host, and comes back late where the host has
// others to serve: programs that sleep and wake then stand still for milliseconds. A host polls for
// a while before it gives a processor away, so one that is woken often enough is kept. One thread
// per processor sleeps for less than that again and again, with SCHED_IDLE, so that it is behind
// everything else. Threads that spin would serve the same end, but the kernel then takes all
// processors for busy, and queues who wakes up behind who runs.
// It ends with the program that started it.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

// KVM polls for 200 µs.
static const struct timespec SHORT = {.tv_nsec = 100000};

_Noreturn static void *nudge(void *nothing) {
    (void)nothing;
    // Timers of such threads may be late otherwise, to be put together with others.
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        nanosleep(&SHORT, NULL);
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
    int error = pthread_create(&thread, &attributes, nudge, NULL);
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
