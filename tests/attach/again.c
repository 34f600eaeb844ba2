/*
 * Usage: again PID LIBRARY TIMES
 *
 * Loads a library that does not stay (library.c) into a process, TIMES times. Prints the median and the longest time
 * for which a thread stood still, in ms.
 */
#include "attach/attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMES_MAX 100000

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int main(int count, char **arguments)
{
	static double still[TIMES_MAX];
	size_t times = count == 4 ? strtoul(arguments[3], NULL, 10) : 0;

	if (times == 0 || times > TIMES_MAX) {
		fputs("Usage: again PID LIBRARY TIMES\n", stderr);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < times; i++) {
		struct attach_report report;
		struct error error = {.reason = ""};

		attach_load(atoi(arguments[1]), arguments[2], "", &report, &error);
		if (!strstr(error.reason, "called on thread")) {
			fprintf(stderr, "again: %s\n", error.reason);
			return EXIT_FAILURE;
		}
		still[i] = report.seconds * 1e3;
	}
	qsort(still, times, sizeof *still, compare);
	printf("%zu loads; a thread stood still for %.2f ms, at most %.2f ms\n", times, still[times / 2], still[times - 1]);
	return EXIT_SUCCESS;
}
