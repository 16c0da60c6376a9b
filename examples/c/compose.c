/* A compositor without pictures, with libtakt: it waits for each refresh of a display, and says whose
 * frames were finished before it. A real compositor would now draw these windows, and show them with the
 * next refresh.
 *
 *   cc -o compose compose.c $(pkg-config --cflags --libs takt)
 *   takt serve & takt run --name dial --fps 30 --display screen -- takt-speedometer & ./compose 120 30
 *
 * The display is called "screen". With a rate, this program owns it: the daemon releases the frames of
 * apps by the refreshes that are reported here. Without one, it follows what the daemon says.
 */
#include <stdio.h>
#include <stdlib.h>

#include <takt.h>

#define WINDOWS 16

int main(int argc, char **argv)
{
	long refreshes = argc > 1 ? atol(argv[1]) : 120;
	double refresh_hz = argc > 2 ? atof(argv[2]) : 0.0;
	unsigned long long skipped = 0, frames = 0, unknown = 0;
	takt_display *display;
	takt_status status = takt_open_display("screen", NULL, &display);

	/* Each refresh is a multiple of the period from the start of the clock: exact for every program that computes it. */
	if (status == TAKT_OK && refresh_hz > 0)
		status = takt_own_display(display, refresh_hz, 0);
	if (status < 0) {
		fprintf(stderr, "cannot open the display: %s\n", takt_strerror(status));
		return 1;
	}
	for (long count = 0; count < refreshes; count++) {
		takt_vsync vsync = { .size = sizeof vsync };
		takt_window windows[WINDOWS];

		status = takt_wait_vsync(display, &vsync, windows, WINDOWS);
		if (status < 0) {
			fprintf(stderr, "cannot wait: %s\n", takt_strerror(status));
			return 1;
		}
		unknown += status == TAKT_UNSCHEDULED;
		skipped += vsync.skipped;
		for (size_t i = 0; i < vsync.windows; i++) {
			double before_ms = (vsync.at_ns - windows[i].finished_ns) / 1e6;

			frames++;
			printf("refresh %llu: %s has finished %llu frames, the last one %.3f ms before\n",
			       (unsigned long long)vsync.period, windows[i].name,
			       (unsigned long long)windows[i].frames, before_ms);
		}
	}
	printf("%ld refreshes, %llu skipped, %llu without a daemon; %llu new frames\n", refreshes, skipped, unknown,
	       frames);
	takt_close_display(display);
	return 0;
}
