/* libtakt-cuda: deadlines for the work of CUDA streams, and targets for frames of GL.
 *
 * The names and units are those of HERCULES (deliverable D5.2). Nothing here can stop a program: started without
 * `takt run --schedule`, calls do nothing, and the first one says so on standard error.
 *
 *   cc -o program program.c $(pkg-config --cflags --libs takt-cuda)
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */

#ifndef TAKT_CUDA_H
#define TAKT_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* cudaStream_t and CUstream, without their headers. */
struct CUstream_st;

/* What is put into `stream` from now on, up to cudaStreamDeadlineEnd, is one job. It is due deadline_us after its
 * first work arrives, needs budget_us of GPU time, and comes again after period_us at the earliest; 0 or less: after
 * deadline_us. A job that has used up its budget is not stopped; it waits behind the work of others.
 *
 * Up to 32 streams may have deadlines at once, each with its own. Calls for different streams may come from any thread.
 * Returns 0, or 1 (cudaErrorInvalidValue) if no job could be so, as with a budget beyond the deadline. */
int cudaStreamDeadlineBegin(struct CUstream_st *stream, uint32_t deadline_us, uint32_t budget_us, int32_t period_us);

/* The job of `stream` has all of its work; it is over when the GPU has done that. Does not wait. Returns 0. */
int cudaStreamDeadlineEnd(struct CUstream_st *stream);

/* The program draws so many frames per second, and needs budget_us of GPU time for each. To be called once before the
 * loop that draws, when there is a context; each swap waits for the next frame from then on.
 * Returns 0, or 1 if no frames could be so. */
int glSetFrameTarget(unsigned framerate, unsigned budget_us);

#ifdef __cplusplus
}
#endif

/* With per-thread default streams, stream 0 is that of the thread. */
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define TAKT_STREAM(stream) ((stream) ? (stream) : (struct CUstream_st *)2)
#define cudaStreamDeadlineBegin(stream, deadline_us, budget_us, period_us) \
	cudaStreamDeadlineBegin(TAKT_STREAM(stream), deadline_us, budget_us, period_us)
#define cudaStreamDeadlineEnd(stream) cudaStreamDeadlineEnd(TAKT_STREAM(stream))
#endif

#endif /* TAKT_CUDA_H */
