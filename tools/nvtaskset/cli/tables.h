/*
 * What a command line may have: its options, and the words of its actions. Parsing, the check of which options go together, --help
 * and completion all read these two tables.
 */
#ifndef NVTASKSET_CLI_TABLES_H
#define NVTASKSET_CLI_TABLES_H

#include "options.h"

#include <sys/types.h>

/* An option as it was given. */
struct taking {
	struct options *options;
	const struct option_row *row;
	const char *value; /* NULL: none */
	struct error *error;
};

struct option_row {
	char letter;           /* 0: it has none */
	const char *name;
	const char *value;     /* what it takes, for people; NULL: nothing; "[=…": a value that may be left out */
	unsigned int actions;  /* a bit for each action that it makes sense with */
	bool is_in_help;       /* of the whole command: newcomers need it */
	int (*take)(const struct taking *it);
	size_t detail;         /* for `take`: the place of a member in struct options, or a constant */
	const char *values;    /* what to offer as its value: words, or one of the kinds below */
	const char *about;     /* up to a ';' in completion. NULL: in neither --help nor completion */
};

#define VALUES_GPUS "@gpus"
#define VALUES_GROUPS "@groups"
#define VALUES_FILES "@files"

#define OPTION_ROWS 47
extern const struct option_row option_rows[OPTION_ROWS];

/* No first word can be read as a mask: each has a letter that is no hexadecimal digit. */
struct word_row {
	const char *first, *second; /* NULL: the first alone */
	enum action action;
	const char *value; /* what may follow; "" */
	const char *about;
};

#define WORD_ROWS 16
extern const struct word_row word_rows[WORD_ROWS];

/* PID. A thread's id stands for its process, as in taskset. -1 with the reason. */
int parse_pid(pid_t *pid, const char *text, struct error *error);

#endif
