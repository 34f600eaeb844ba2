/*
 * Examines COMMAND before it is started: whether its dynamic linker will load our library.
 *
 * It reads the file of COMMAND, or of a script's interpreter, and not the files of programs that it starts or of
 * libraries that it loads.
 */
#ifndef NVTASKSET_PROGRAM_H
#define NVTASKSET_PROGRAM_H

#include "base/error.h"
#include "library_path.h"

enum program_trouble {
	PROGRAM_FINE,        /* no trouble found */
	PROGRAM_ABSENT,      /* execvp would find no file to execute; errno says why not, as it would */
	PROGRAM_PRIVILEGED,  /* it gets other privileges than ours, and its dynamic linker then ignores our variables */
	PROGRAM_UNREACHABLE, /* statically linked, for another architecture, or with another libc */
	PROGRAM_ELSEWHERE    /* its work is not done by its own process, or without our environment: handover.h */
};

/* COMMAND, and how its dynamic linker searches for libraries. */
struct program {
	char **words;          /* COMMAND; from PROGRAM on where COMMAND is ld.so [OPTION]... PROGRAM */
	char **linker_path;    /* the word behind --library-path of ld.so, for LD_LIBRARY_PATH; NULL: there is none */
	char origin[PATH_MAX]; /* the directory of the program's file */
};

/* Finds COMMAND as execvp does and follows #! lines. Sets the reason unless the program is fine, or absent. */
enum program_trouble program_examine(char **command, struct program *program, struct error *error);

/* Where the program searches for libraries first. Valid as long as the program and the environment. */
struct library_path program_search_path(const struct program *program);

/* Puts the directory first in the search path of ld.so --library-path, if that is COMMAND. -1 with the reason. */
int program_put_first(const struct program *program, const char *directory, struct error *error);

#endif
