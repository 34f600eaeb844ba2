#include "progress.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVERY_MS 1000
#define ERASE "\r\033[K"

static struct {
	bool is_on, is_drawn;
	int file; /* the terminal, without waiting; -1: not a terminal */
	double begin_ms, due_ms;
	char text[80];
} progress;

/* Opened anew: programs with the same standard error must go on to wait for each write. */
static int open_terminal(void)
{
	const char *name = getenv("TERM");
	bool moves_cursor = isatty(STDERR_FILENO) && name && *name && strcmp(name, "dumb") != 0;

	return moves_cursor ? open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
}

void progress_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(progress.text, sizeof progress.text, format, arguments);
	va_end(arguments);
	if (!progress.is_on) {
		double now = clock_ms();

		progress.is_on = true;
		progress.file = open_terminal();
		progress.begin_ms = now;
		progress.due_ms = now + EVERY_MS;
	}
	progress_tick();
}

/* The cursor stays in front: the next output of a program replaces the line. */
void progress_tick(void)
{
	double now = progress.is_on ? clock_ms() : 0;
	char line[128];

	if (!progress.is_on || progress.file < 0 || now < progress.due_ms)
		return;
	int length = snprintf(line, sizeof line, ERASE "nvtaskset: %s (%.0f s)\r", progress.text,
	                      (now - progress.begin_ms) / 1000);

	progress.is_drawn = write(progress.file, line, (size_t)length) > 0 || progress.is_drawn;
	progress.due_ms = now + EVERY_MS;
}

void progress_end(void)
{
	if (progress.is_drawn && write(progress.file, ERASE, sizeof ERASE - 1) < 0)
		progress.is_drawn = false;
	if (progress.is_on && progress.file >= 0)
		close(progress.file);
	progress.is_on = progress.is_drawn = false;
}
