/*
 * Standard output, which may be a terminal.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum terminal_colours {
	TERMINAL_PLAIN,  /* no colours: not a terminal, a dumb terminal, or NO_COLOR is set */
	TERMINAL_BASIC,  /* the eight colours of every terminal */
	TERMINAL_PALETTE /* the 256 colours of xterm */
};

struct terminal {
	bool is_terminal;    /* not a file or a pipe */
	bool moves_cursor;   /* a terminal, and not dumb */
	bool utf8;           /* the locale has UTF-8 */
	enum terminal_colours colours;
	unsigned int columns; /* 1 or more; TERMINAL_ENDLESS without a terminal */
	unsigned int rows;    /* likewise */
};

#define TERMINAL_ENDLESS (~0u)

/* Examines standard output, for each display, since windows change their size. Sets the locale of characters. */
struct terminal terminal_look(void);

/* Whether to draw with lines and dots: only on a UTF-8 terminal. Files and pipes get ASCII. */
static inline bool terminal_draws(const struct terminal *terminal)
{
	return terminal->is_terminal && terminal->utf8;
}

/* From here on, terminal_write gives up when `file` becomes readable, or after `after_ms` milliseconds (-1: never): no
 * program waits for a stuck terminal. A `file` of -1 ends giving up. */
void terminal_give_up(int file, int after_ms);

/* Writes all, past stdio; -1 with the reason. */
int terminal_write(const char *text, size_t length, struct error *error);
