/* libtakt: deadlines on a shared GPU, for programs that ask for them themselves.
 *
 * Written by `UPDATE_EXPECT=1 cargo test -p takt-capi --test header`; change crates/takt-capi/src instead.
 *
 * Nothing here can stop a program: without a daemon, or if it dies or hangs, every call returns
 * TAKT_UNSCHEDULED at once, the program runs on, and the daemon is looked for again now and then.
 *
 * Threads: all functions may be called from any thread, also at the same time, except that
 * takt_leave must be the last call with its app, takt_job_end with its job, and takt_close_display with its
 * display. None of them survives fork() in the child.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */

#ifndef TAKT_H
#define TAKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Makes `params` ask for nothing, in the version of takt_params that this header has. NULL is ignored.
#define takt_params_init(params) takt_params_init_sized((params), sizeof(struct takt_params))

// The same for takt_job_params.
#define takt_job_params_init(params) takt_job_params_init_sized((params), sizeof(struct takt_job_params))

// How a call ended. Negative: nothing was done, as the caller made a mistake, or libtakt did
// (TAKT_INTERNAL).
typedef enum takt_status {
  // Done.
  TAKT_OK = 0,
  // Done, but the app is unscheduled: it goes on as if Takt were not there.
  TAKT_UNSCHEDULED = 1,
  // A pointer that must not be is NULL.
  TAKT_NULL = -1,
  // A number is out of range, or a text is no UTF-8 or too long.
  TAKT_INVALID = -2,
  // A structure was not made by its initialiser, or is of a later version than the library.
  TAKT_SIZE = -3,
  // A mistake in libtakt, not of the caller; the app should be left.
  TAKT_INTERNAL = -4,
  // There are as many as there can be: end some first.
  TAKT_BUSY = -5,
} takt_status;

// A registered app.
typedef struct takt_app takt_app;

// A display.
typedef struct takt_display takt_display;

// A job that has begun.
typedef struct takt_job takt_job;

// What an app asks for. Initialise it with takt_params_init, then set what is wanted.
typedef struct takt_params {
  // Size of this structure, set by takt_params_init.
  size_t size;
  // How people call the app; at most 64 bytes of UTF-8. Must be set.
  const char *name;
  // The daemon's socket; NULL: $TAKT_SOCKET, else takt/control in $XDG_RUNTIME_DIR if
  // one answers there, else in /run.
  const char *socket;
  // Importance, higher wins; negative: the daemon's default.
  int64_t priority;
  // Frames per second, which must divide the refresh rate of the display; 0: as many as it gets.
  double fps;
  // GPU time to reserve for each frame, in milliseconds; 0: none, and then nothing is guaranteed.
  double etpf_ms;
  // The display that it draws for, as the daemon calls it; NULL: its first one.
  const char *display;
} takt_params;

// How an app fares. Set `size` to sizeof(takt_state) before asking.
typedef struct takt_state {
  // Size of this structure.
  size_t size;
  // Whether a daemon schedules the app now.
  bool scheduled;
  // Whether its deadlines are guaranteed now.
  bool guaranteed;
  // Whether takt_end_frame waits for the release of the next frame.
  bool paced;
  // Whether the last frame met its deadline: 1 yes, 0 no, -1 not known.
  int32_t last_frame_met;
  // Frames that ended so far.
  uint64_t frames;
  // Longest batch that others can live with, in milliseconds; infinite if there is no limit.
  double max_slice_ms;
} takt_state;

// Work with a grant. Filled by takt_begin_batch; what is inside is libtakt's.
typedef struct takt_batch {
  // How much GPU time was granted, in milliseconds; infinite if the app is unscheduled.
  double granted_ms;
  // When it was granted, in nanoseconds of CLOCK_MONOTONIC.
  uint64_t granted_at_ns;
  uint64_t number;
  uint64_t life;
} takt_batch;

// A refresh of a display. Set `size` to sizeof(takt_vsync) before waiting for one.
typedef struct takt_vsync {
  // Size of this structure.
  size_t size;
  // Its number.
  uint64_t period;
  // When it was, in nanoseconds of CLOCK_MONOTONIC.
  uint64_t at_ns;
  // When the next one is.
  uint64_t next_ns;
  // Refreshes that were over before this call came.
  uint64_t skipped;
  // How many windows were written.
  size_t windows;
} takt_vsync;

// A window: an app with a new frame that was finished before a refresh.
typedef struct takt_window {
  // Number of the app at the daemon.
  uint32_t app;
  // Its process; 0 if that is not known.
  uint32_t process;
  // How many frames of it were finished before the refresh.
  uint64_t frames;
  // When the last of these was finished, in nanoseconds of CLOCK_MONOTONIC.
  uint64_t finished_ns;
  // Its name, ended with a zero byte.
  char name[65];
} takt_window;

// What a job asks for. Initialise it with takt_job_params_init, then set what is wanted.
typedef struct takt_job_params {
  // Size of this structure, set by takt_job_params_init.
  size_t size;
  // How people call jobs of this kind: letters, digits, '-', '_' and '.'; NULL: the app's name and "-job".
  const char *name;
  // How long after takt_job_begin all of its work is due, in milliseconds; 0: the period.
  double deadline_ms;
  // GPU time of all of its batches together, in milliseconds. Must be set.
  double budget_ms;
  // Time between two jobs of this kind at least, in milliseconds; 0: the deadline.
  double period_ms;
  // A job whose budget is used up waits for the next period, even if the GPU is idle. Only where the
  // deadline is the period.
  bool hard;
  // The app or job that consumes what this one produces; while it waits for that, this job has its deadline.
  // NULL: none.
  const char *feeds;
  // Importance, higher wins; negative: the app's. Give the jobs of the shortest deadlines the most: what is promised
  // to more important ones comes first.
  int64_t priority;
} takt_job_params;

// What came of a job. Set `size` to sizeof(takt_job_result) before asking.
typedef struct takt_job_result {
  // Size of this structure.
  size_t size;
  // From takt_job_begin to takt_job_end, in milliseconds.
  double response_ms;
  // Whether it ended before it was due.
  bool met;
  // Whether a daemon scheduled it, up to its end.
  bool scheduled;
  // Whether its deadline is guaranteed now.
  bool guaranteed;
} takt_job_result;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of libtakt, such as "0.1.0". Never NULL; the text lives forever.
const char *takt_version(void);

// Makes `params`, of `size` bytes, ask for nothing. NULL is ignored. Use takt_params_init, which knows
// the size that the program was compiled with.
//
// `params` is NULL or has room for `size` bytes.
void takt_params_init_sized(struct takt_params *params,
                            size_t size);

// Registers an app and stores it in `*app`. TAKT_UNSCHEDULED also stores one: it becomes scheduled
// as soon as a daemon admits it.
//
// Pointers are NULL or valid; texts end with a zero byte.
enum takt_status takt_register(const struct takt_params *params, struct takt_app **app);

// Changes what the app asks for: frames per second, above 0, and GPU time to reserve for each, in
// milliseconds (0: none). If the daemon refuses, the terms stay as they were, and takt_message says
// why.
//
// `app` is NULL or registered.
enum takt_status takt_set_frame_target(struct takt_app *app, double fps, double etpf_ms);

// Says in `*state` how the app fares.
//
// `app` is NULL or registered; `state` is NULL or points to a takt_state.
enum takt_status takt_query(const struct takt_app *app, struct takt_state *state);

// Writes what was last said of the connection, in English, to `buffer` of `size` bytes, cut off if
// it is longer and always ended with a zero byte. Returns the length of the whole text.
//
// `app` is NULL or registered; `buffer` is NULL or has room for `size` bytes.
size_t takt_message(const struct takt_app *app, char *buffer, size_t size);

// Leaves: the daemon releases what the app reserved at once, and `app` must not be used any more. NULL is ignored.
// Jobs that are open stay so; each leaves when it ends.
//
// `app` is NULL or registered, and no other call with it is under way.
void takt_leave(struct takt_app *app);

// Asks for a grant to use the GPU for `predicted_ms`, and waits for it; then hand the work to the
// GPU. A prediction that is too low delays others, one that is too high makes the app wait longer.
// Work longer than takt_state.max_slice_ms should be cut into several batches.
//
// `app` is NULL or registered; `batch` is NULL or points to a takt_batch.
enum takt_status takt_begin_batch(struct takt_app *app,
                                  double predicted_ms,
                                  struct takt_batch *batch);

// The GPU has finished the batch; it took `measured_ms`, or, if that is negative, as long as it is
// since the batch was granted. Each batch ends once, in any order and from any thread.
//
// `app` is NULL or registered; `batch` is NULL or was filled by takt_begin_batch.
enum takt_status takt_end_batch(struct takt_app *app,
                                const struct takt_batch *batch,
                                double measured_ms);

// The frame is complete. If the app has a frame target, waits until the next frame may begin.
// End all batches of the frame first.
//
// `app` is NULL or registered.
enum takt_status takt_end_frame(struct takt_app *app);

// Opens the display that the daemon knows by `name` and stores it in `*display`; NULL is its first one.
// `socket` is that of the daemon, or NULL as in takt_params. Without a daemon, the display refreshes 60
// times per second.
//
// Pointers are NULL or valid; texts end with a zero byte.
enum takt_status takt_open_display(const char *name,
                                   const char *socket,
                                   struct takt_display **display);

// Says that the caller owns the display: it refreshes at `refresh_hz`, and does or did at `vsync_ns` of
// CLOCK_MONOTONIC. The daemon releases apps that draw for this display accordingly, if the caller may
// say so; it is told now and whenever it is started again. Call it again when that changes.
//
// `display` is NULL or was opened.
enum takt_status takt_own_display(struct takt_display *display,
                                  double refresh_hz,
                                  uint64_t vsync_ns);

// Waits for the next refresh, and writes it to `vsync`, and up to `room` windows whose frames were
// finished before it and which no call has returned yet to `windows`; the next call returns the others.
// TAKT_UNSCHEDULED: the refresh came, but no daemon says which frames were finished.
//
// `display` is NULL or was opened; `vsync` is NULL or points to a takt_vsync whose size is set; `windows`
// has room for `room` of them, and may be NULL if that is 0.
enum takt_status takt_wait_vsync(struct takt_display *display,
                                 struct takt_vsync *vsync,
                                 struct takt_window *windows,
                                 size_t room);

// Closes a display, which must not be used any more. NULL is ignored.
//
// `display` is NULL or was opened, and no other call with it is under way.
void takt_close_display(struct takt_display *display);

// Makes `params`, of `size` bytes, ask for nothing. NULL is ignored. Use takt_job_params_init, which knows
// the size that the program was compiled with.
//
// `params` is NULL or has room for `size` bytes.
void takt_job_params_init_sized(struct takt_job_params *params,
                                size_t size);

// Begins a job and stores it in `*job`; up to 32 of an app may be open at once, with any terms. It is due
// `deadline_ms` from now. Where the deadline is shorter than the period, this waits if the job comes less than a
// period after the one before it. TAKT_UNSCHEDULED also stores a job.
//
// The first job of a kind asks the daemon for admission. The app reserves its budget from then on, also between jobs,
// until it leaves.
//
// `app` is NULL or registered; other pointers are NULL or valid; texts end with a zero byte.
enum takt_status takt_job_begin(struct takt_app *app,
                                const struct takt_job_params *params,
                                struct takt_job **job);

// As takt_begin_batch, for work of a job.
//
// `job` is NULL or has begun; `batch` is NULL or points to a takt_batch.
enum takt_status takt_job_begin_batch(struct takt_job *job,
                                      double predicted_ms,
                                      struct takt_batch *batch);

// As takt_end_batch, for work of a job. All batches of a job end before the job does.
//
// `job` is NULL or has begun; `batch` is NULL or was filled by takt_job_begin_batch.
enum takt_status takt_job_end_batch(struct takt_job *job,
                                    const struct takt_batch *batch,
                                    double measured_ms);

// The work of the job is over, and `job` must not be used any more. Says in `*result` what came of it, unless
// that is NULL. Does not wait. With any mistake but a `job` that is NULL the job ends all the same.
//
// `job` is NULL or has begun, and no other call with it is under way; `result` is NULL or points to a
// takt_job_result.
enum takt_status takt_job_end(struct takt_job *job,
                              struct takt_job_result *result);

// As takt_message, for the connection of a job.
//
// `job` is NULL or has begun; `buffer` is NULL or has room for `size` bytes.
size_t takt_job_message(const struct takt_job *job, char *buffer, size_t size);

// What a status means, in English. Never NULL; the text lives forever.
const char *takt_strerror(int32_t status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TAKT_H */
