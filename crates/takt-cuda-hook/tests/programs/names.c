/* Whose function a program gets for a name. */
#include "cu.h"

static void whose(const char *name, const char *symbol) {
    void *driver = library(), *by_address = NULL;
    CUresult (*address)(const char *, void **, int, uint64_t, int *);
    *(void **)&address = dlsym(driver, "cuGetProcAddress_v2");
    CHECK(address(name, &by_address, 12000, 0, NULL));
    void *both[] = {dlsym(driver, symbol), by_address};
    const char *names[2];
    for (int i = 0; i < 2; i++) {
        Dl_info info = {0};
        int found = dladdr(both[i], &info);
        const char *end = found && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
        int ours = end && (!strcmp(end, "/libcuda.so.1") || !strcmp(end, "/libcuda.so"));
        names[i] = !end ? "another" : ours ? "ours" : "the driver's";
    }
    printf("%s: %s by name, %s by address\n", name, names[0], names[1]);
}

int main(void) {
    whose("cuLaunchKernel", "cuLaunchKernel");
    whose("cuEventRecord", "cuEventRecord");
    whose("cuGetExportTable", "cuGetExportTable");
    whose("cuStreamBeginCapture", "cuStreamBeginCapture_v2");
}
