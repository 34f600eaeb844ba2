/*
 * COMMAND, looked at before it is started: whether its dynamic linker will load our library.
 *
 * What the first file says. Programs that it starts are not looked at, nor what it opens while it runs.
 */
#ifndef NVTASKSET_PROGRAM_H
#define NVTASKSET_PROGRAM_H

#include "base/error.h"

enum program_trouble {
	PROGRAM_FINE,       /* nothing speaks against it; or it cannot be run, and exec will say why */
	PROGRAM_PRIVILEGED, /* it gets other privileges than ours, and ignores our environment then */
	PROGRAM_UNREACHABLE /* statically linked, for another machine or of another libc */
};

/* Finds `command` as execvp does, follows #! lines, and leaves the reason of the trouble. */
enum program_trouble program_examine(const char *command, struct error *error);

#endif
