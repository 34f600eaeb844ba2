/*
 * Reads files of reports by the kernel, mostly in /proc. Allocates nothing but streams.
 *
 * A single system call reads a file: the content is of one moment, except in a search of a long file. Paths are formats
 * for printf. A pid names a process; 0 is the calling process, regardless of the number in /proc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Whether an errno is a limit of the reader, on open files or memory, and says nothing about the process. */
bool proc_is_limit(int code);

/* Reads at most `room` bytes. Returns the number of bytes; -1 with errno. */
ssize_t __attribute__((format(printf, 3, 4))) proc_read(void *bytes, size_t room, const char *path, ...);

/* The same as a string; "" if the file cannot be read. */
ssize_t __attribute__((format(printf, 3, 4))) proc_read_text(char *text, size_t room, const char *path, ...);

/* Reads the target of a link as a string; false and "" on failure. */
bool __attribute__((format(printf, 3, 4))) proc_read_link(char *text, size_t room, const char *path, ...);

/* False for a thread of the kernel, and for a thread that has ended: the kernel names no program. */
bool proc_has_program(pid_t thread);

/* The number to use in /proc in place of `pid`: the first thread, or a living thread if the first thread has ended;
 * `pid` if there is no process. An open directory of a thread ends with the thread. */
pid_t proc_thread(pid_t pid);

/* Opens /proc/PID/NAME of the thread, close-on-exec. -1 with errno. */
int proc_open(pid_t pid, const char *name, int flags);

/* The same as a stream for reading. NULL with errno. */
FILE *proc_stream(pid_t pid, const char *name);

/* Searches /proc/PID/NAME for a text of less than 512 characters, in the first `*most` bytes, and takes the bytes read
 * off `*most` (NULL: in all bytes). The rest of the line behind the text goes into `behind` (NULL: nowhere), cut to
 * `room`. False and "" if the text is not found. */
bool proc_find(pid_t pid, const char *name, size_t *most, const char *text, char *behind, size_t room);

/* The value of a variable in an environment of `length` bytes, with a '\0' behind the last variable. NULL without. */
const char *proc_variable(const char *environment, size_t length, const char *name);

/* The user of a process; root if only root may inspect the process. False and 0 if the process has ended, or is
 * hidden. */
bool proc_owner(pid_t pid, uid_t *owner);

/* --- status, of a process or a thread ----------------------------------------------------------------------------- */

/* The last number on the line of the field, such as "NSpid:"; `unknown` without a number. Leaves out the first line. */
uint64_t proc_status(pid_t pid, const char *field, uint64_t unknown);

/* Whether the line of the field contains the text. */
bool proc_status_has(pid_t pid, const char *field, const char *text);

/* --- stat --------------------------------------------------------------------------------------------------------- */

#define PROC_STAT_TEXT 2048 /* some 50 numbers of 20 digits at most, and a name of 64 */

/* Reads the file by a single system call; "" without the file. */
void proc_stat_read(pid_t pid, char text[PROC_STAT_TEXT]);

/* The first thread's state, a letter, such as 'T' for stopped; '\0' without a state. */
char proc_stat_state(const char *text);

/* The process's state: of a living thread if the first thread has ended before the process. */
char proc_state(pid_t pid, const char *text);

/* The field with the number (proc(5) counts from 1), from 4 on; 0 without the field. Safe for any process's name. */
uint64_t proc_stat_field(const char *text, int number);

/* The field of the time at which a process started, in clock ticks since boot, and the time; 0 without the process. */
#define PROC_STAT_START 22
uint64_t proc_started(pid_t pid);

/* The parent of a process; 0 without a parent, after the end of the process, or without /proc. */
pid_t proc_parent(pid_t pid);

/* Bounds the search for ancestors: no tree is deeper, and numbers of another PID namespace may lead in a circle. */
#define PARENT_GENERATIONS 64

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* A mapping of memory, from a line of /proc/PID/maps. */
struct mapping {
	uint64_t start, end;
	int protection;   /* PROT_READ, PROT_WRITE and PROT_EXEC */
	uint64_t offset;  /* in the file */
	uint64_t inode;   /* of the file; 0 without a file */
	const char *path; /* the rest of the line, with a newline if there is one; "" without a name */
};

/* `mapping` points into `line`. False for another kind of line. */
bool proc_mapping_parse(struct mapping *mapping, const char *line);

static inline bool proc_mapping_has(const struct mapping *mapping, uint64_t address)
{
	return address >= mapping->start && address < mapping->end;
}
