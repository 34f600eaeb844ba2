/*
 * Standard output, which may be a terminal.
 */
#ifndef NVTASKSET_TERMINAL_TERMINAL_H
#define NVTASKSET_TERMINAL_TERMINAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum terminal_colours {
	TERMINAL_PLAIN,  /* no colours: not a terminal, a dumb one, or NO_COLOR is set */
	TERMINAL_BASIC,  /* the eight that every terminal has */
	TERMINAL_PALETTE /* the 256 that xterm has */
};

struct terminal {
	bool is_terminal;    /* not a file or a pipe */
	bool moves_cursor;   /* a terminal, and not a dumb one */
	bool utf8;           /* the locale says that text is UTF-8 */
	enum terminal_colours colours;
	unsigned int columns; /* 1 or more; TERMINAL_ENDLESS if it is no terminal */
	unsigned int rows;    /* the same */
};

#define TERMINAL_ENDLESS (~0u)

/* Examines standard output. To be called for each display, since windows change their size. Sets the locale of
 * characters. */
struct terminal terminal_look(void);

/* Whether to draw with lines and dots: only on a UTF-8 terminal. Files and pipes get ASCII. */
static inline bool terminal_draws(const struct terminal *terminal)
{
	return terminal->is_terminal && terminal->utf8;
}

/* From here on, terminal_write gives up when this file becomes readable, or after so many milliseconds (-1: never): a terminal
 * that takes nothing keeps nobody waiting. -1 ends that. */
void terminal_give_up(int file, int after_ms);

/* Writes past stdio, all of it; -1 with the reason. */
int terminal_write(const char *text, size_t length, struct error *error);

#endif
