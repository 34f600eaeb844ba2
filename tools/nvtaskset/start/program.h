/*
 * Examines COMMAND before it is started: whether its dynamic linker will load our library.
 *
 * It reads the file of COMMAND, or of a script's interpreter, and not the files of programs that it starts or of
 * libraries that it loads.
 */
#ifndef NVTASKSET_PROGRAM_H
#define NVTASKSET_PROGRAM_H

#include "base/error.h"

enum program_trouble {
	PROGRAM_FINE,       /* no trouble found */
	PROGRAM_ABSENT,     /* execvp would find no file to execute; errno says why not, as it would */
	PROGRAM_PRIVILEGED, /* it gets other privileges than ours, and its dynamic linker then ignores our variables */
	PROGRAM_UNREACHABLE /* statically linked, for another architecture, or with another libc */
};

/* Finds `command` as execvp does and follows #! lines. Sets the reason unless the program is fine, or absent. */
enum program_trouble program_examine(const char *command, struct error *error);

#endif
