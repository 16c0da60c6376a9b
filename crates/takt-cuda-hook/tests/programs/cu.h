/* What test programs need of the CUDA driver API, found in one of the ways in which programs find it.
 *
 * FIND=linked   by the loader, as programs that are linked with the driver do (compile with -DLINKED)
 * FIND=symbol   dlopen and dlsym, as Python packages do
 * FIND=address  dlopen, dlsym of cuGetProcAddress_v2, and all others through that, as the CUDA runtime does
 * FIND=thread   the same, with the default stream of the thread
 * LIBRARY=libcuda.so.1  what to open
 */
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wunused-function"
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUdeviceptr;
typedef struct {
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void *attributes;
    unsigned count;
} CUlaunchConfig;

#define FUNCTIONS(F)                                                                                              \
    F(cuInit, cuInit, (unsigned))                                                                                 \
    F(cuDriverGetVersion, cuDriverGetVersion, (int *))                                                            \
    F(cuDeviceGet, cuDeviceGet, (CUdevice *, int))                                                                \
    F(cuCtxCreate, cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice))                                             \
    F(cuCtxDestroy, cuCtxDestroy_v2, (CUcontext))                                                                 \
    F(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext))                                                              \
    F(cuCtxGetCurrent, cuCtxGetCurrent, (CUcontext *))                                                            \
    F(cuCtxSynchronize, cuCtxSynchronize, (void))                                                                 \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                \
    F(cuModuleLoadData, cuModuleLoadData, (CUmodule *, const void *))                                             \
    F(cuModuleUnload, cuModuleUnload, (CUmodule))                                                                 \
    F(cuModuleGetFunction, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                           \
    F(cuStreamCreate, cuStreamCreate, (CUstream *, unsigned))                                                     \
    F(cuStreamDestroy, cuStreamDestroy_v2, (CUstream))                                                            \
    F(cuStreamSynchronize, cuStreamSynchronize, (CUstream))                                                       \
    F(cuStreamQuery, cuStreamQuery, (CUstream))                                                                   \
    F(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                        \
    F(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, unsigned))                                        \
    F(cuStreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph *))                                              \
    F(cuStreamIsCapturing, cuStreamIsCapturing, (CUstream, int *))                                                \
    F(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (unsigned *))                         \
    F(cuStreamWaitValue32, cuStreamWaitValue32_v2, (CUstream, CUdeviceptr, unsigned, unsigned))                   \
    F(cuStreamWriteValue32, cuStreamWriteValue32_v2, (CUstream, CUdeviceptr, unsigned, unsigned))                 \
    F(cuEventCreate, cuEventCreate, (CUevent *, unsigned))                                                        \
    F(cuEventDestroy, cuEventDestroy_v2, (CUevent))                                                               \
    F(cuEventRecord, cuEventRecord, (CUevent, CUstream))                                                          \
    F(cuEventQuery, cuEventQuery, (CUevent))                                                                      \
    F(cuEventSynchronize, cuEventSynchronize, (CUevent))                                                          \
    F(cuEventElapsedTime, cuEventElapsedTime, (float *, CUevent, CUevent))                                        \
    F(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))     \
    F(cuGraphGetNodes, cuGraphGetNodes, (CUgraph, void *, size_t *))                                              \
    F(cuGraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                                                      \
    F(cuGraphUpload, cuGraphUpload, (CUgraphExec, CUstream))                                                      \
    F(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec))                                                      \
    F(cuGraphDestroy, cuGraphDestroy, (CUgraph))                                                                  \
    F(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                         \
    F(cuMemFree, cuMemFree_v2, (CUdeviceptr))                                                                     \
    F(cuMemAllocHost, cuMemAllocHost_v2, (void **, size_t))                                                       \
    F(cuMemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                         \
    F(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                               \
    F(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                     \
    F(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                           \
    F(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                      \
    F(cuMemcpyAsync, cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                 \
    F(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, (const void *, CUstream))                                              \
    F(cuMemsetD32Async, cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))                              \
    F(cuMemsetD8, cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                                            \
    F(cuLaunchHostFunc, cuLaunchHostFunc, (CUstream, void (*)(void *), void *))                                   \
    F(cuStreamAddCallback, cuStreamAddCallback,                                                                   \
      (CUstream, void (*)(CUstream, CUresult, void *), void *, unsigned))                                         \
    F(cuLaunchKernel, cuLaunchKernel,                                                                             \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
    F(cuLaunchKernelEx, cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **))                 \
    F(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel,                                                       \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **))

#define DECLARE(name, symbol, types) static CUresult(*name) types __asm__("found_" #name);
FUNCTIONS(DECLARE)

#ifdef LINKED
#define PROTOTYPE(name, symbol, types) extern CUresult takt_##symbol types __asm__(#symbol);
FUNCTIONS(PROTOTYPE)
#endif

#define NOT_READY 600
#define CHECK(call) check(call, #call, __LINE__)
static void check(CUresult result, const char *call, int line) {
    if (result != 0) {
        printf("line %d: %s gives %d\n", line, call, result);
        exit(1);
    }
}

static void *library(void) {
    const char *name = getenv("LIBRARY");
    void *found = dlopen(name ? name : "libcuda.so.1", RTLD_NOW);
    if (!found) {
        printf("no driver\n");
        exit(3);
    }
    return found;
}

static void find_functions(void) {
    const char *how = getenv("FIND");
    if (!how || !strcmp(how, "linked")) {
#ifdef LINKED
#define LINK(name, symbol, types) name = takt_##symbol;
        FUNCTIONS(LINK)
        return;
#else
        how = "symbol";
#endif
    }
    void *driver = library();
    if (!strcmp(how, "symbol")) {
#define SYMBOL(name, symbol, types) *(void **)&name = dlsym(driver, #symbol);
        FUNCTIONS(SYMBOL)
        return;
    }
    CUresult (*address)(const char *, void **, int, uint64_t, int *);
    *(void **)&address = dlsym(driver, "cuGetProcAddress_v2");
    int status = 0;
    /* The runtime asks for this one again. */
    CHECK(address("cuGetProcAddress", (void **)&address, 12000, 0, &status));
    uint64_t flags = !strcmp(how, "thread") ? 2 : 0;
#define ADDRESS(name, symbol, types) CHECK(address(#name, (void **)&name, 12000, flags, &status));
    FUNCTIONS(ADDRESS)
}

static const char *const PTX =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry spin(.param .u64 out, .param .u32 n)\n{\n"
    " .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<2>;\n"
    " ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0; mov.f32 %f1, 0f3F000000;\n"
    "LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE; sin.approx.f32 %f1, %f1; add.u32 %r2, %r2, 1; bra LOOP;\n"
    "DONE: st.global.f32 [%rd1], %f1; ret;\n}\n"
    ".visible .entry append(.param .u64 log, .param .u32 value)\n{\n"
    " .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
    " ld.param.u64 %rd1, [log]; ld.param.u32 %r1, [value]; ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, 1;\n"
    " mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;\n"
    " st.global.u32 [%rd1], %r2; ret;\n}\n"
    ".visible .entry raise(.param .u64 flag)\n{\n"
    " .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [flag]; mov.u32 %r1, 1;\n"
    " st.volatile.global.u32 [%rd1], %r1; ret;\n}\n"
    ".visible .entry await(.param .u64 flag)\n{\n"
    " .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [flag];\n"
    "AGAIN: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN; ret;\n}\n";

static CUcontext context;
static CUmodule module;
static CUfunction spin, append, raise_flag, await_flag;
static CUdeviceptr out, log_;

/* Everything that most programs begin with. */
static void begin(void) {
    find_functions();
    CHECK(cuInit(0));
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate(&context, 0, device));
    CHECK(cuModuleLoadData(&module, PTX));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CHECK(cuModuleGetFunction(&append, module, "append"));
    CHECK(cuModuleGetFunction(&raise_flag, module, "raise"));
    CHECK(cuModuleGetFunction(&await_flag, module, "await"));
    CHECK(cuMemAlloc(&out, 64));
    CHECK(cuMemAlloc(&log_, 1 << 20));
    CHECK(cuMemsetD8(log_, 0, 1 << 20));
}

static CUresult launch_spin(unsigned n, CUstream stream) {
    void *parameters[] = {&out, &n};
    return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static CUresult launch_append(unsigned value, CUstream stream) {
    void *parameters[] = {&log_, &value};
    return cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* What the kernels wrote, in their order. */
static void print_log(void) {
    static unsigned words[1 << 18];
    CHECK(cuMemcpyDtoH(words, log_, sizeof words));
    printf("%u:", words[0]);
    for (unsigned i = 1; i <= words[0] && i <= 64; i++)
        printf(" %u", words[i]);
    printf("\n");
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}
