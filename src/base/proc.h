/*
 * What the kernel tells in files, those of /proc first of all. No allocation.
 *
 * A file is read by one call of the system, and so as it is at one moment. Paths are as for printf.
 */
#ifndef NVTASKSET_PROC_H
#define NVTASKSET_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* As many bytes as there are, or as there is room for: their number, or -1 with errno. */
ssize_t __attribute__((format(printf, 3, 4))) proc_read(void *bytes, size_t room, const char *path, ...);

/* The same as a string, which is "" where the file cannot be read. */
ssize_t __attribute__((format(printf, 3, 4))) proc_read_text(char *text, size_t room, const char *path, ...);

/* What a link leads to, as a string; false, and "", where it cannot be read. */
bool __attribute__((format(printf, 3, 4))) proc_read_link(char *text, size_t room, const char *path, ...);

/* Whose a process is; false where it has ended, or is not to be seen. */
bool proc_owner(pid_t pid, uid_t *owner);

#endif
