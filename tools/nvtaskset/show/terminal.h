/*
 * Standard output, which may be a terminal.
 */
#ifndef NVTASKSET_TERMINAL_H
#define NVTASKSET_TERMINAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum terminal_colours {
	TERMINAL_PLAIN,  /* no colours: not a terminal, a dumb one, or NO_COLOR is set */
	TERMINAL_BASIC,  /* the eight of every terminal */
	TERMINAL_PALETTE /* the 256 of xterm */
};

struct terminal {
	bool is_terminal;    /* somebody looks at it: not a file or a pipe */
	bool moves_cursor;   /* and it is not a dumb one */
	bool utf8;           /* text is UTF-8, by the locale */
	enum terminal_colours colours;
	unsigned int columns; /* 1 or more; TERMINAL_ENDLESS where it is no terminal */
	unsigned int rows;    /* likewise */
};

#define TERMINAL_ENDLESS (~0u)

/* Asks anew: windows change their size. Needs the environment's locale: terminal_use_locale, once. */
struct terminal terminal_look(void);
void terminal_use_locale(void);

/* Whether lines and dots can be drawn: a UTF-8 terminal; what reads a pipe gets ASCII. */
static inline bool terminal_draws(const struct terminal *terminal)
{
	return terminal->is_terminal && terminal->utf8;
}

/* Writes past stdio, all of it; -1 with the reason. */
int terminal_write(const char *text, size_t length, struct error *error);

#endif
