/* What can be done wrong with libtakt, and what comes of it. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <takt.h>

#define CHECK(what)                                                         \
	do {                                                                \
		if (!(what)) {                                              \
			fprintf(stderr, "line %d: %s\n", __LINE__, #what);  \
			exit(1);                                            \
		}                                                           \
	} while (0)

static void *draw(void *app)
{
	for (int i = 0; i < 50; i++) {
		takt_batch batch;

		CHECK(takt_begin_batch(app, 0.01, &batch) >= 0);
		CHECK(takt_end_batch(app, &batch, 0.01) >= 0);
	}
	return NULL;
}

static takt_status begin(takt_app *app, double deadline_ms, double budget_ms, double period_ms, takt_job **job)
{
	takt_job_params params;

	takt_job_params_init(&params);
	params.deadline_ms = deadline_ms;
	params.budget_ms = budget_ms;
	params.period_ms = period_ms;
	return takt_job_begin(app, &params, job);
}

static void check_jobs(takt_app *app)
{
	takt_job_params params;
	takt_job_result result = { .size = sizeof result };
	takt_job *jobs[33], *job = (takt_job *)&job;
	takt_batch batch;
	char text[8];

	/* NULL everywhere. */
	takt_job_params_init(NULL);
	takt_job_params_init(&params);
	CHECK(takt_job_begin(NULL, &params, &job) == TAKT_NULL && job == NULL);
	CHECK(takt_job_begin(app, NULL, &job) == TAKT_NULL);
	CHECK(takt_job_begin(app, &params, NULL) == TAKT_NULL);
	CHECK(takt_job_begin_batch(NULL, 1, &batch) == TAKT_NULL);
	CHECK(takt_job_end_batch(NULL, &batch, 1) == TAKT_NULL);
	CHECK(takt_job_end(NULL, &result) == TAKT_NULL);
	CHECK(takt_job_message(NULL, text, sizeof text) == 0);

	/* Terms that could never be. */
	CHECK(takt_job_begin(app, &params, &job) == TAKT_INVALID && job == NULL);
	CHECK(begin(app, 4, 5, 40, &job) == TAKT_INVALID);
	CHECK(begin(app, 50, 5, 40, &job) == TAKT_INVALID);
	CHECK(begin(app, NAN, 5, 40, &job) == TAKT_INVALID);
	params.budget_ms = 1;
	params.period_ms = 1000;
	params.name = "two words";
	CHECK(takt_job_begin(app, &params, &job) == TAKT_INVALID);
	params.name = NULL;
	params.size = 8;
	CHECK(takt_job_begin(app, &params, &job) == TAKT_SIZE);

	/* A job without batches, one with several, and results of no known size. */
	CHECK(begin(app, 0, 1, 1000, &job) == TAKT_OK);
	CHECK(takt_job_message(job, text, sizeof text) > sizeof text);
	CHECK(takt_job_end(job, &result) == TAKT_OK && result.scheduled && result.met);
	CHECK(begin(app, 0, 1, 1000, &job) == TAKT_OK);
	for (int i = 0; i < 3; i++) {
		CHECK(takt_job_begin_batch(job, 0.1, &batch) == TAKT_OK);
		CHECK(takt_job_begin_batch(job, -1, &batch) == TAKT_INVALID);
		CHECK(takt_job_end_batch(job, &batch, 0.1) == TAKT_OK);
	}
	result.size = 1;
	CHECK(takt_job_end(job, &result) == TAKT_SIZE);

	/* More than there can be. */
	for (int i = 0; i < 32; i++)
		CHECK(begin(app, 0, 0.01, 1000, &jobs[i]) >= 0);
	CHECK(begin(app, 0, 0.01, 1000, &job) == TAKT_BUSY && job == NULL);
	for (int i = 0; i < 32; i++)
		CHECK(takt_job_end(jobs[i], NULL) >= 0);
	CHECK(begin(app, 0, 0.01, 1000, &job) >= 0 && takt_job_end(job, NULL) >= 0);
}

int main(void)
{
	static char long_name[1000];
	takt_app *app = (takt_app *)&app;
	takt_params params;
	takt_state state;
	takt_batch batch;
	takt_display *display = NULL;
	takt_vsync vsync = { .size = 1 };
	pthread_t threads[3];
	char text[8];

	/* NULL everywhere. */
	takt_params_init(NULL);
	takt_params_init(&params);
	CHECK(takt_register(NULL, &app) == TAKT_NULL && app == NULL);
	CHECK(takt_register(&params, NULL) == TAKT_NULL);
	CHECK(takt_register(&params, &app) == TAKT_NULL); /* no name */
	CHECK(takt_set_frame_target(NULL, 30, 1) == TAKT_NULL);
	CHECK(takt_query(NULL, &state) == TAKT_NULL);
	CHECK(takt_begin_batch(NULL, 1, &batch) == TAKT_NULL);
	CHECK(takt_end_batch(NULL, &batch, 1) == TAKT_NULL);
	CHECK(takt_end_frame(NULL) == TAKT_NULL);
	CHECK(takt_message(NULL, text, sizeof text) == 0);
	takt_leave(NULL);

	/* Values that make no sense. */
	params.name = "";
	CHECK(takt_register(&params, &app) == TAKT_INVALID);
	params.name = "\xff";
	CHECK(takt_register(&params, &app) == TAKT_INVALID);
	memset(long_name, 'x', sizeof long_name - 1);
	params.name = long_name;
	CHECK(takt_register(&params, &app) == TAKT_INVALID);
	params.name = "mistakes";
	params.fps = -1;
	CHECK(takt_register(&params, &app) == TAKT_INVALID);
	params.fps = NAN;
	CHECK(takt_register(&params, &app) == TAKT_INVALID);
	params.fps = 0;
	params.etpf_ms = INFINITY;
	CHECK(takt_register(&params, &app) == TAKT_INVALID);
	params.etpf_ms = 0;
	params.priority = INT64_MAX;
	CHECK(takt_register(&params, &app) == TAKT_INVALID);
	params.priority = -1;
	params.size--;
	CHECK(takt_register(&params, &app) == TAKT_SIZE);
	params.size++;
	takt_params_init_sized(&params, 1); /* no room for anything */
	CHECK(params.size == sizeof params && strcmp(params.name, "mistakes") == 0);

	/* A program that was compiled with a later header has more room, which is not understood. */
	{
		struct {
			takt_params params;
			char later[16];
		} more;

		memset(&more, 'x', sizeof more);
		takt_params_init_sized(&more.params, sizeof more);
		CHECK(more.params.size == sizeof more && more.later[0] == 'x');
		CHECK(takt_register(&more.params, &app) == TAKT_SIZE);
	}

	/* A good app, used badly. */
	CHECK(takt_register(&params, &app) == TAKT_OK && app != NULL);
	state.size = 1;
	CHECK(takt_query(app, &state) == TAKT_SIZE);
	state.size = sizeof state;
	CHECK(takt_query(app, &state) == TAKT_OK);
	CHECK(state.scheduled && !state.guaranteed && !state.paced && state.last_frame_met == -1);
	CHECK(takt_begin_batch(app, -1, &batch) == TAKT_INVALID);
	CHECK(takt_begin_batch(app, NAN, &batch) == TAKT_INVALID);
	CHECK(takt_begin_batch(app, 1, NULL) == TAKT_NULL);
	CHECK(takt_end_batch(app, NULL, 1) == TAKT_NULL);
	CHECK(takt_set_frame_target(app, 1e9, 1) == TAKT_INVALID);
	CHECK(takt_set_frame_target(app, 0, 1) == TAKT_INVALID);

	/* A rate that the display does not have: the terms stay, and the app is told why. */
	CHECK(takt_set_frame_target(app, 45, 0) == TAKT_OK);
	CHECK(takt_message(app, text, sizeof text) > sizeof text && strcmp(text, "the ter") == 0);
	CHECK(takt_query(app, &state) == TAKT_OK && !state.guaranteed && !state.paced);
	CHECK(takt_set_frame_target(app, 60, 2) == TAKT_OK);
	/* Its contract is covered, but no frame was seen yet: nothing is guaranteed. */
	CHECK(takt_query(app, &state) == TAKT_OK && !state.guaranteed && state.paced);

	/* Several threads at once, then a whole frame. */
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, draw, app) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(takt_end_frame(app) >= 0);
	CHECK(takt_query(app, &state) >= 0 && state.frames == 1);

	check_jobs(app);

	/* A batch that is ended twice ends the conversation, not the program. */
	CHECK(takt_begin_batch(app, 1, &batch) >= 0);
	takt_end_batch(app, &batch, 1);
	takt_end_batch(app, &batch, 1);
	CHECK(takt_begin_batch(app, 1, &batch) >= 0);
	CHECK(takt_end_batch(app, &batch, 1) >= 0);

	/* Displays. */
	CHECK(takt_open_display("d", NULL, NULL) == TAKT_NULL);
	CHECK(takt_open_display(long_name, NULL, &display) == TAKT_INVALID && display == NULL);
	CHECK(takt_open_display(NULL, NULL, &display) == TAKT_OK);
	CHECK(takt_own_display(display, 60, 0) == TAKT_INVALID); /* It has no name. */
	CHECK(takt_own_display(NULL, 60, 0) == TAKT_NULL);
	CHECK(takt_wait_vsync(NULL, &vsync, NULL, 0) == TAKT_NULL);
	CHECK(takt_wait_vsync(display, NULL, NULL, 0) == TAKT_NULL);
	CHECK(takt_wait_vsync(display, &vsync, NULL, 1) == TAKT_NULL);
	CHECK(takt_wait_vsync(display, &vsync, NULL, 0) == TAKT_SIZE);
	vsync.size = sizeof vsync;
	CHECK(takt_wait_vsync(display, &vsync, NULL, 0) >= 0 && vsync.next_ns > vsync.at_ns);
	takt_close_display(display);
	takt_close_display(NULL);
	CHECK(takt_open_display("screen", NULL, &display) == TAKT_OK);
	CHECK(takt_own_display(display, NAN, 0) == TAKT_INVALID);
	CHECK(takt_own_display(display, 1e9, 0) == TAKT_INVALID);
	CHECK(takt_own_display(display, 100, 0) == TAKT_OK);
	CHECK(takt_wait_vsync(display, &vsync, NULL, 0) >= 0 && vsync.at_ns % 10000000 == 0);
	takt_close_display(display);

	CHECK(strcmp(takt_strerror(TAKT_OK), "done") == 0);
	CHECK(strcmp(takt_strerror(12345), "no status of libtakt") == 0);
	takt_leave(app);
	return 0;
}
