/*
 * Examines COMMAND before the start: whether its dynamic linker will load our library.
 *
 * Reads the file of COMMAND, or of a script's interpreter, and no files of libraries, nor of programs started later.
 */
#pragma once

#include "base/error.h"
#include "library_path.h"

enum program_trouble {
	PROGRAM_FINE,        /* no trouble found */
	PROGRAM_ABSENT,      /* execvp would find no file to execute; errno as of execvp */
	PROGRAM_PRIVILEGED,  /* runs with other privileges; the dynamic linker then ignores our variables */
	PROGRAM_UNREACHABLE, /* statically linked, for another architecture, or with another libc */
	PROGRAM_ELSEWHERE    /* the work is done by another process, or without our environment: handover.c */
};

/* COMMAND, and how its dynamic linker searches for libraries. */
struct program {
	char **words;          /* COMMAND; from PROGRAM on where COMMAND is ld.so [OPTION]... PROGRAM */
	char **linker_path;    /* the word behind --library-path of ld.so, for LD_LIBRARY_PATH; or NULL */
	char origin[PATH_MAX]; /* the directory of the program's file */
};

/* Finds COMMAND as execvp does and follows #! lines. Sets the reason unless the program is fine, or absent. */
enum program_trouble program_examine(char **command, struct program *program, struct error *error);

/* Where the program searches for libraries first. Valid as long as the program and the environment. */
struct library_path program_search_path(const struct program *program);

/* If COMMAND is ld.so --library-path, puts the directory first in the search path. -1 with the reason. */
int program_put_first(const struct program *program, const char *directory, struct error *error);

/* --- handover.c --------------------------------------------------------------------------------------------------- */

/*
 * Commands, known by name, with work outside the environment of COMMAND: by a server that runs already, in a container,
 * by a child with a new environment. A child of COMMAND is not looked at.
 */

/* Whether the command is in the table; then the reason has the remedy. NULL ends the words. */
bool handover_examine(char **words, struct error *error);
