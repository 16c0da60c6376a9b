/* Another preloaded library with a dlsym of its own, as overlays have it. */
#define _GNU_SOURCE
#include <dlfcn.h>

void *dlsym(void *handle, const char *name) {
    void *(*real)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real(handle, name);
}
