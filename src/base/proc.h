/*
 * Reads files in which the kernel reports something, mostly in /proc. Allocates nothing.
 *
 * A file is read by one system call, so its content is of one moment. Paths are formats for printf.
 */
#ifndef NVTASKSET_PROC_H
#define NVTASKSET_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads at most `room` bytes. Returns their number; -1 with errno. */
ssize_t __attribute__((format(printf, 3, 4))) proc_read(void *bytes, size_t room, const char *path, ...);

/* The same as a string; "" if the file cannot be read. */
ssize_t __attribute__((format(printf, 3, 4))) proc_read_text(char *text, size_t room, const char *path, ...);

/* Reads the target of a link as a string; false and "" if it cannot be read. */
bool __attribute__((format(printf, 3, 4))) proc_read_link(char *text, size_t room, const char *path, ...);

/* The user that a process belongs to; root if the process does not let itself be inspected. False and 0 if the process
 * has ended, or is hidden. */
bool proc_owner(pid_t pid, uid_t *owner);

#endif
