/* Tests that all registers of a thread keep their values. */
#ifndef TESTS_ATTACH_REGISTERS_H
#define TESTS_ATTACH_REGISTERS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Holds a pattern in every register, and below its stack pointer where a function may, while it counts to `turns`, and
 * says whether all of it is there afterwards. Another pattern each time. */
bool registers_hold(unsigned long turns);

/* At the first loss, the program says what was lost, and ends. */
static inline void check(bool holds, const char *what)
{
	if (holds)
		return;
	printf("lost: %s (%s)\n", what, strerror(errno));
	fflush(stdout);
	_exit(3);
}

#endif
