/*
 * What /proc says of a process or a thread in its "status" file.
 */
#ifndef NVTASKSET_ATTACH_STATUS_H
#define NVTASKSET_ATTACH_STATUS_H

#include <stddef.h>
#include <sys/types.h>

#define STATUS_TEXT 4096

/* What follows "WORD:" and blanks, in `text`, or NULL. */
const char *status_find(char text[STATUS_TEXT], pid_t pid, const char *word);

/* A number, or -1. */
long status_number(pid_t pid, const char *word);

/* The id that a thread has in the innermost of its namespaces: the same for whoever looks. */
long status_inner_id(pid_t thread);

/* The start of any small file, as a string; "" where it cannot be read. */
void status_read_file(const char *path, char *text, size_t room);

#endif
