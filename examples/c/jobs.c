/* Two kinds of jobs in one program, each with a deadline, a budget and a period of its own, with libtakt.
 *
 * "brake" is due 4 ms after it begins and needs 1 ms; it comes every 40 ms. "map" needs 5 ms in every 100 ms.
 * Their "GPU" is the processor. A real program would hand work to its driver and wait for the fence instead.
 *
 *   cc -o jobs jobs.c $(pkg-config --cflags --libs takt) -lpthread
 *   takt serve & ./jobs 25
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <takt.h>

struct kind {
	const char *name;
	double deadline_ms, budget_ms, period_ms, work_ms;
	int priority;
	long jobs, met, scheduled;
	char said[256];
};

static takt_app *app;

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

static void sleep_until(double at_ms)
{
	struct timespec at = { (time_t)(at_ms / 1e3), 0 };

	at.tv_nsec = (long)((at_ms - at.tv_sec * 1e3) * 1e6);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void *run(void *argument)
{
	struct kind *kind = argument;
	double next_ms = now_ms();
	takt_job_params params;

	takt_job_params_init(&params);
	params.name = kind->name;
	params.deadline_ms = kind->deadline_ms;
	params.budget_ms = kind->budget_ms;
	params.period_ms = kind->period_ms;
	params.priority = kind->priority;
	for (long i = 0; i < kind->jobs; i++) {
		takt_job_result result = { .size = sizeof result };
		takt_batch batch;
		takt_job *job;

		sleep_until(next_ms);
		next_ms += kind->period_ms;
		if (takt_job_begin(app, &params, &job) < 0)
			exit(1);
		takt_job_begin_batch(job, kind->work_ms, &batch);
		work(kind->work_ms);
		takt_job_end_batch(job, &batch, -1.0);
		takt_job_message(job, kind->said, sizeof kind->said);
		takt_job_end(job, &result);
		kind->met += result.met;
		kind->scheduled += result.scheduled;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long jobs = argc > 1 ? atol(argv[1]) : 25;
	struct kind kinds[] = {
		{ "brake", 4.0, 2.0, 40.0, 1.0, 60, jobs, 0, 0, "" },
		{ "map", 100.0, 10.0, 100.0, 5.0, 50, jobs, 0, 0, "" },
	};
	pthread_t threads[2];
	takt_params params;
	takt_status status;

	takt_params_init(&params);
	params.name = "jobs";
	params.priority = 50;
	status = takt_register(&params, &app);
	if (status < 0) {
		fprintf(stderr, "cannot register: %s\n", takt_strerror(status));
		return 1;
	}
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, run, &kinds[i]) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++)
		printf("%s: %ld jobs, %ld scheduled, %ld in time; %s\n", kinds[i].name, kinds[i].jobs,
		       kinds[i].scheduled, kinds[i].met, kinds[i].said);
	takt_leave(app);
	return 0;
}
