/* Frames that the program waits for, while threads that others have started in it hardly get to run. */
#define _GNU_SOURCE
#include "trap.h"
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define FRAMES 20

static atomic_int over;

static void *spin(void *unused) {
    (void)unused;
    while (!atomic_load(&over)) {}
    return NULL;
}

/* Has a thread run on the first of our processors alone, which another one of ours keeps busy. */
static void pin(pid_t thread, int policy) {
    static cpu_set_t first;
    if (!CPU_COUNT(&first)) {
        cpu_set_t all;
        if (sched_getaffinity(0, sizeof all, &all)) die("sched_getaffinity");
        int at = 0;
        while (!CPU_ISSET(at, &all)) at++;
        CPU_SET(at, &first);
    }
    if (sched_setaffinity(thread, sizeof first, &first)) die("sched_setaffinity");
    struct sched_param none = {0};
    if (sched_setscheduler(thread, policy, &none)) die("sched_setscheduler");
}

static void *keep_busy(void *unused) {
    pin(gettid(), SCHED_OTHER);
    return spin(unused);
}

static void starve(const char *wanted) {
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) die("opendir");
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fgets(name, sizeof name, file) && !strncmp(name, wanted, strlen(wanted))) {
            pin(atoi(task->d_name), SCHED_IDLE);
            found++;
        }
        fclose(file);
    }
    closedir(tasks);
    if (!found) die("finding the thread");
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    start();
    GLuint linked = program();
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, TRIANGLE);
    glEnableVertexAttribArray(0);
    pthread_t busy;
    for (int frame = 0; frame < FRAMES; frame++) {
        if (frame == FRAMES / 2) {
            usleep(100000);
            starve(arguments[1]);
            if (pthread_create(&busy, NULL, keep_busy, NULL)) die("pthread_create");
        }
        use(linked, 0.05f * (float)frame);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        glFinish();
    }
    atomic_store(&over, 1);
    pthread_join(busy, NULL);
    say("end");
    return 0;
}
