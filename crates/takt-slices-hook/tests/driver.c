/* A driver to preload behind the library under test: it keeps objects and their slices as the kernel's does.
 *
 * FAKE_DRIVER names what it does with slices: "keeps" them, is "deaf" (accepts and ignores them), "refuses" them, or
 * answers with "garbage". */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    uint32_t client, object;
    uint64_t slice;
} groups[256];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int find(uint32_t client, uint32_t object)
{
    for (int i = 0; i < count; i++)
        if (groups[i].client == client && groups[i].object == object)
            return i;
    return -1;
}

static void allocate(uint32_t *alloc)
{
    if (alloc[3] == 0xa06c && count < 256) {
        groups[count].client = alloc[0];
        groups[count].object = alloc[2];
        groups[count++].slice = 1024;
    }
    alloc[10] = 0;
}

static void control(uint32_t *call)
{
    const char *mood = getenv("FAKE_DRIVER");
    uint64_t *number;
    memcpy(&number, &call[4], sizeof number);
    int at = find(call[0], call[1]);
    call[7] = at < 0 ? 0x33 : 0;
    if (at >= 0 && call[2] == 0xa06c0104)
        *number = groups[at].slice;
    if (at >= 0 && call[2] == 0xa06c0103) {
        if (!strcmp(mood, "refuses"))
            call[7] = 0x1b;
        else if (strcmp(mood, "deaf"))
            groups[at].slice = *number;
    }
    if (!strcmp(mood, "garbage"))
        memset(call, 0xa5, 32);
}

static void end(uint32_t *freed)
{
    int at = find(freed[0], freed[2]);
    if (at >= 0)
        groups[at] = groups[--count];
    freed[3] = 0;
}

int ioctl(int file, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    void (*act)(uint32_t *) = request == 0xc030462b   ? allocate
                              : request == 0xc020462a ? control
                              : request == 0xc0104629 ? end
                                                      : NULL;
    if (!act)
        return syscall(SYS_ioctl, file, request, argument);
    pthread_mutex_lock(&lock);
    act(argument);
    pthread_mutex_unlock(&lock);
    return 0;
}
