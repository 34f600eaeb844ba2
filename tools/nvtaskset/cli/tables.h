/*
 * The options of a command line, and the words of its actions. Parsing, the check of the options together, --help and
 * completion all read these two tables.
 */
#pragma once

#include "options.h"

#include <sys/types.h>

struct taking {
	struct options *options;
	const struct option_row *row;
	const char *value; /* or NULL */
	struct error *error;
};

struct option_row {
	char letter;           /* or 0 */
	const char *name;
	const char *value;     /* for people; NULL: takes no value; "[=…": an optional value */
	unsigned int actions;  /* a bit for each action with a use for the option */
	bool is_in_help;       /* of the whole command: for newcomers */
	int (*take)(const struct taking *it);
	size_t detail;         /* for `take`: the place of a member in struct options, or a constant */
	const char *values;    /* values to offer: words, or a kind below */
	const char *about;     /* completion shows the text up to a ';'. NULL: neither in --help nor in completion */
};

#define VALUES_GPUS "@gpus"
#define VALUES_GROUPS "@groups"
#define VALUES_FILES "@files"

#define OPTION_ROWS (43 + SETTING_COUNT)
extern const struct option_row tables_options[OPTION_ROWS];

/* No first word can be read as a mask: each has a letter that is no hexadecimal digit. */
struct word_row {
	const char *first, *second; /* NULL: the first alone */
	enum action action;
	const char *value; /* the rest of the command line, for people; or "" */
	const char *about;
};

#define WORD_ROWS 17
extern const struct word_row tables_words[WORD_ROWS];

/* PID. A thread's id stands for its process, as in taskset. -1 with the reason. */
int tables_parse_pid(pid_t *pid, const char *text, struct error *error);
