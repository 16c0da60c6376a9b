/* A CUDA program whose streams have deadlines, with libtakt-cuda.
 *
 * The stream "brake" gets a kernel every 40 ms that is due 4 ms later, the stream "map" one that has 100 ms. A third
 * stream has no deadline, and gets what is left. Only the driver is needed, no CUDA runtime.
 *
 *   cc -o deadlines deadlines.c $(pkg-config --cflags --libs takt-cuda) -ldl
 *   takt run --schedule -- ./deadlines 25
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <takt-cuda.h>

typedef int CUresult;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef unsigned long long CUdeviceptr;

#define FUNCTIONS(F)                                                                          \
	F(cuInit, cuInit, (unsigned))                                                         \
	F(cuDeviceGet, cuDeviceGet, (int *, int))                                             \
	F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, int))             \
	F(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext))                                      \
	F(cuModuleLoadData, cuModuleLoadData, (CUmodule *, const void *))                     \
	F(cuModuleGetFunction, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))   \
	F(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                 \
	F(cuStreamCreate, cuStreamCreate, (CUstream *, unsigned))                             \
	F(cuStreamSynchronize, cuStreamSynchronize, (CUstream))                               \
	F(cuStreamDestroy, cuStreamDestroy_v2, (CUstream))                                    \
	F(cuLaunchKernel, cuLaunchKernel,                                                     \
	  (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
	   CUstream, void **, void **))

#define DECLARE(name, symbol, types) static CUresult(*name) types;
FUNCTIONS(DECLARE)

static const char *const PTX =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry spin(.param .u64 out, .param .u32 n)\n{\n"
	" .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<2>;\n"
	" ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0; mov.f32 %f1, 0f3F000000;\n"
	"LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;\n"
	" sin.approx.f32 %f1, %f1; add.u32 %r2, %r2, 1; bra LOOP;\n"
	"DONE: st.global.f32 [%rd1], %f1; ret;\n}\n";

static CUfunction spin;
static CUdeviceptr out;

static void check(CUresult result, const char *call)
{
	if (result != 0) {
		fprintf(stderr, "%s gives %d\n", call, result);
		exit(1);
	}
}
#define CHECK(call) check(call, #call)

static void begin(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	CUcontext context;
	CUmodule module;
	int device;

	if (!driver) {
		fprintf(stderr, "no CUDA driver\n");
		exit(1);
	}
	/* The way of POSIX around what ISO C says of pointers to functions. */
#define FIND(name, symbol, types) *(void **)&name = dlsym(driver, #symbol);
	FUNCTIONS(FIND)
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, PTX));
	CHECK(cuModuleGetFunction(&spin, module, "spin"));
	CHECK(cuMemAlloc(&out, 64));
}

static void launch(CUstream stream, unsigned iterations)
{
	void *parameters[] = { &out, &iterations };

	CHECK(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void sleep_until(double at_ms)
{
	struct timespec at = { (time_t)(at_ms / 1e3), 0 };

	at.tv_nsec = (long)((at_ms - at.tv_sec * 1e3) * 1e6);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

int main(int argc, char **argv)
{
	long jobs = argc > 1 ? atol(argv[1]) : 25;
	long in_time = 0;
	CUstream brake, map, rest;
	double next_ms;

	begin();
	CHECK(cuStreamCreate(&brake, 1));
	CHECK(cuStreamCreate(&map, 1));
	CHECK(cuStreamCreate(&rest, 1));
	next_ms = now_ms();
	for (long i = 0; i < jobs; i++) {
		double arrival_ms;

		sleep_until(next_ms);
		next_ms += 40.0;
		launch(rest, 20000);
		/* The first stream that gets a deadline is the most important one. */
		arrival_ms = now_ms();
		if (cudaStreamDeadlineBegin(brake, 4000, 2000, 40000) != 0)
			return 1;
		launch(brake, 20000);
		launch(brake, 20000);
		cudaStreamDeadlineEnd(brake);
		if (i % 3 == 0) {
			if (cudaStreamDeadlineBegin(map, 100000, 10000, 100000) != 0)
				return 1;
			launch(map, 50000);
			cudaStreamDeadlineEnd(map);
		}
		CHECK(cuStreamSynchronize(brake));
		in_time += now_ms() - arrival_ms <= 4.0;
	}
	CHECK(cuStreamSynchronize(map));
	CHECK(cuStreamSynchronize(rest));
	/* What has a deadline when its stream goes has none afterwards. */
	CHECK(cudaStreamDeadlineBegin(map, 100000, 10000, 100000));
	CHECK(cuStreamDestroy(map));
	/* No job could be so. */
	if (cudaStreamDeadlineBegin(brake, 1000, 2000, 40000) == 1)
		printf("a budget beyond its deadline is refused\n");
	printf("%ld jobs, %ld in time\n", jobs, in_time);
	return 0;
}
