/* A program that is on time for every frame, with libtakt.
 *
 * Its "GPU" is the processor: each frame is some work that takes about WORK_MS. A real program
 * would hand a command buffer to its driver and wait for the fence instead.
 *
 *   cc -o frames frames.c $(pkg-config --cflags --libs takt)
 *   takt serve & ./frames 30 3.0 90
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <takt.h>

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* Something that takes so long. */
static void work(double length_ms)
{
	double until = now_ms() + length_ms;

	while (now_ms() < until)
		;
}

static void say(takt_app *app, const char *what)
{
	char text[256];

	takt_message(app, text, sizeof text);
	printf("%s: %s\n", what, text);
}

int main(int argc, char **argv)
{
	double fps = argc > 1 ? atof(argv[1]) : 30.0;
	double work_ms = argc > 2 ? atof(argv[2]) : 3.0;
	long frames = argc > 3 ? atol(argv[3]) : 90;
	long met = 0, known = 0;
	takt_params params;
	takt_state state = { .size = sizeof state };
	takt_app *app;
	takt_status status;

	takt_params_init(&params);
	params.name = "frames";
	params.priority = 50;
	params.fps = fps;
	params.etpf_ms = work_ms * 1.5 + 1.0;
	status = takt_register(&params, &app);
	if (status < 0) {
		fprintf(stderr, "cannot register: %s\n", takt_strerror(status));
		return 1;
	}
	say(app, status == TAKT_OK ? "scheduled" : "on my own");

	for (long frame = 0; frame < frames; frame++) {
		/* Two batches per frame, so that others may come in between. */
		for (int half = 0; half < 2; half++) {
			takt_batch batch;

			takt_begin_batch(app, work_ms / 2, &batch);
			work(work_ms / 2);
			/* Negative: as long as it was since it was let through. */
			takt_end_batch(app, &batch, -1.0);
		}
		/* Sleeps until the next frame may begin; at once if no daemon schedules. */
		takt_end_frame(app);
		takt_query(app, &state);
		known += state.last_frame_met >= 0;
		met += state.last_frame_met > 0;
		/* Half of the way through, half of the frames will do. */
		if (frame == frames / 2 && takt_set_frame_target(app, fps / 2, params.etpf_ms) == TAKT_OK)
			say(app, "half the rate");
	}
	printf("%llu frames, %ld of %ld deadlines met; libtakt %s\n", (unsigned long long)state.frames, met,
	       known, takt_version());
	takt_leave(app);
	return 0;
}
