#!/usr/bin/env python3
"""A CUDA stream with a deadline, from Python, with nothing but ctypes.

    takt run --schedule -- python3 examples/python/deadlines.py [JOBS]

libtakt-cuda works on any stream that has a handle: with PyTorch it is torch.cuda.Stream().cuda_stream, with CuPy
cupy.cuda.Stream().ptr. TAKT_CUDA says where the library is, if the loader does not find it.
"""

import contextlib
import ctypes
import os
import sys
import time

PTX = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 n)
{
 .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<2>;
 ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0; mov.f32 %f1, 0f3F000000;
LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE; sin.approx.f32 %f1, %f1; add.u32 %r2, %r2, 1; bra LOOP;
DONE: st.global.f32 [%rd1], %f1; ret;
}
"""


class Deadlines:
    """libtakt-cuda; without it, and without Takt, streams have no deadlines and programs run."""

    def __init__(self, path=os.environ.get("TAKT_CUDA", "libtakt-cuda.so.0")):
        try:
            self.library = ctypes.CDLL(path)
        except OSError:
            self.library = None
            return
        u32, stream = ctypes.c_uint32, ctypes.c_void_p
        self.library.cudaStreamDeadlineBegin.argtypes = [stream, u32, u32, ctypes.c_int32]
        self.library.cudaStreamDeadlineEnd.argtypes = [stream]

    @contextlib.contextmanager
    def job(self, stream, *, deadline_ms, budget_ms, period_ms=0):
        """What is put into the stream inside of this is due so long after the first of it."""
        us = (round(1000 * ms) for ms in (deadline_ms, budget_ms, period_ms))
        if self.library and self.library.cudaStreamDeadlineBegin(stream, *us) != 0:
            raise ValueError("no job could be so")
        try:
            yield
        finally:
            if self.library:
                self.library.cudaStreamDeadlineEnd(stream)


class Driver:
    """As much of CUDA as a kernel in a stream takes."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.spin, self.out = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.call("cuModuleGetFunction", ctypes.byref(self.spin), module, b"spin")
        self.call("cuMemAlloc_v2", ctypes.byref(self.out), ctypes.c_size_t(64))

    def call(self, name, *arguments):
        """A call of the driver."""
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            sys.exit(f"{name} gives {result}")

    def stream(self):
        """A stream of its own."""
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream

    def launch(self, stream, iterations):
        """A kernel of so many iterations."""
        n = ctypes.c_uint32(iterations)
        parameters = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(x), ctypes.c_void_p) for x in (self.out, n)))
        self.call("cuLaunchKernel", self.spin, 1, 1, 1, 32, 1, 1, 0, stream, parameters, None)


def main():
    """Jobs of 1 ms or so, each due 4 ms after it came."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    driver, deadlines = Driver(), Deadlines()
    stream, in_time, due = driver.stream(), 0, time.monotonic()
    for _ in range(jobs):
        time.sleep(max(0.0, due - time.monotonic()))
        due, arrival = due + 0.040, time.monotonic()
        with deadlines.job(stream, deadline_ms=4, budget_ms=3, period_ms=40):
            driver.launch(stream, 20000)
            driver.launch(stream, 20000)
        driver.call("cuStreamSynchronize", stream)
        in_time += time.monotonic() - arrival <= 0.004
    print(f"{jobs} jobs, {in_time} in time")


if __name__ == "__main__":
    main()
