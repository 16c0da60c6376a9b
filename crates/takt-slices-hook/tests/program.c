/* Does what the vendor's libraries do: makes channel groups, sets slices, frees them. Then it asks the preloaded library
 * as Takt's layers do, and prints what came of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct report {
    uint32_t groups, kept, status, padding;
    uint64_t shortest, longest;
};
struct table {
    uint32_t (*epoch)(void);
    struct report (*set)(uint64_t);
    struct report (*read)(void);
    struct report (*restore)(void);
};

static int file;

static void make(uint32_t client, uint32_t object)
{
    uint32_t alloc[12] = {client, 50, object, 0xa06c, 0, 0, 0, 0, 0, 0, 99, 0};
    ioctl(file, 0xc030462b, alloc);
}

static void end(uint32_t client, uint32_t object)
{
    uint32_t freed[4] = {client, 50, object, 99};
    ioctl(file, 0xc0104629, freed);
}

static void own_slice(uint32_t client, uint32_t object, uint64_t us)
{
    uint32_t control[8] = {client, object, 0xa06c0103, 0, 0, 0, 8, 99};
    uint64_t *at = &us;
    memcpy(&control[4], &at, sizeof at);
    ioctl(file, 0xc020462a, control);
}

static void show(const char *what, struct report r)
{
    printf("%s: groups %u kept %u status %x slices %llu to %llu\n", what, r.groups, r.kept, r.status,
           (unsigned long long)r.shortest, (unsigned long long)r.longest);
}

static void *churn(void *seed)
{
    uint32_t client = 1000 + (uint32_t)(uintptr_t)seed;
    for (int i = 0; i < 2000; i++) {
        make(client, 1);
        own_slice(client, 1, 2048);
        end(client, 1);
    }
    return NULL;
}

int main(void)
{
    struct table *t = dlsym(RTLD_DEFAULT, "takt_slices_1");
    if (!t) {
        puts("no table");
        return 0;
    }
    file = open("/dev/null", O_RDWR);
    int winsize[8];
    errno = 0;
    int returned = ioctl(file, TIOCGWINSZ, winsize);
    printf("other calls: %d %s\n", returned, strerror(errno));
    errno = E2BIG;
    make(7, 1);
    make(7, 2);
    printf("errno is the program's: %s\n", errno == E2BIG ? "yes" : "no");
    show("read", t->read());
    show("set", t->set(300));
    uint32_t epoch = t->epoch();
    t->set(300);
    printf("changes by the library: %u\n", t->epoch() - epoch);
    own_slice(7, 2, 2048);
    printf("changes by the driver: %u\n", t->epoch() - epoch);
    show("set again", t->set(300));
    end(7, 1);
    show("one less", t->read());
    show("restored", t->restore());
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        show("child", t->set(300));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    close(file);
    file = open("/dev/zero", O_RDWR);
    show("closed", t->set(300));
    end(7, 2);
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    show("after threads", t->read());
    return 0;
}
