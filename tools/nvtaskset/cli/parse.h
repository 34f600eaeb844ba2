/*
 * Understands the command line.
 */
#pragma once

#include "tables.h"

/* Options may stand before SET or behind it. Words behind COMMAND belong to COMMAND. (In taskset, the order around -p
 * is a trap.) Words of an action may stand between options. Moves SET behind the options. -1 with the reason. */
int parse_options(struct options *options, int count, char **arguments, struct error *error);

/* The same for a line, `nvtaskset -G 0 …`, with one space between words, and for its COMMAND, which may be NULL.
 * Changes the line, which has the texts of the options. parse_line_settings: only the settings of the options. */
int parse_line(struct options *options, char *line, char **command, struct error *error);
int parse_line_settings(struct segment_revision *settings, char *line, struct error *error);

/* The beginning of a command line, up to the word that is being typed. */
struct beginning {
	struct options options;
	const struct option_row *wanting; /* the option whose value comes next, or NULL */
	unsigned int words;               /* of an action */
	bool has_set, has_ended;          /* no SET can follow; no option can follow */
	int next;                         /* the argument behind: COMMAND, or the PID */
};

/* -1 for a wrong command line: nothing can be offered. */
int parse_beginning(struct beginning *beginning, int count, char **arguments);
