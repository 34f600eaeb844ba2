/*
 * Reads files in which the kernel reports something, mostly in /proc. Allocates nothing but streams.
 *
 * A file is read by one system call, so its content is of one moment, but where a long one is searched. Paths are formats for
 * printf. A process is named by its pid; 0 is this one, whatever number it has in /proc.
 */
#ifndef NVTASKSET_PROC_H
#define NVTASKSET_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Reads at most `room` bytes. Returns their number; -1 with errno. */
ssize_t __attribute__((format(printf, 3, 4))) proc_read(void *bytes, size_t room, const char *path, ...);

/* The same as a string; "" if the file cannot be read. */
ssize_t __attribute__((format(printf, 3, 4))) proc_read_text(char *text, size_t room, const char *path, ...);

/* Reads the target of a link as a string; false and "" if it cannot be read. */
bool __attribute__((format(printf, 3, 4))) proc_read_link(char *text, size_t room, const char *path, ...);

/* The thread whose entry in /proc shows the program, memory and descriptors of a process: the first one, unless that thread has
 * ended and another lives; a number for /proc/%d in place of the pid. A directory that is open of the thread ends with the thread.
 * The pid where there is no process. */
pid_t proc_thread(pid_t pid);

/* Opens /proc/PID/NAME of that thread, close-on-exec. -1 with errno. */
int proc_open(pid_t pid, const char *name, int flags);

/* The same as a stream for reading. NULL with errno. */
FILE *proc_stream(pid_t pid, const char *name);

/* Searches /proc/PID/NAME for a text of less than 512 characters, in the first `most` bytes, and as long as `pay` agrees to read so
 * many more (NULL: always). What follows there in the same line goes into `behind` (NULL: nowhere), cut to its room. False and ""
 * if it is not found. */
bool proc_find(pid_t pid, const char *name, size_t most, bool (*pay)(size_t bytes), const char *text, char *behind, size_t room);

/* The user that a process belongs to; root if the process does not let itself be inspected. False and 0 if the process
 * has ended, or is hidden. */
bool proc_owner(pid_t pid, uid_t *owner);

/* --- status, of a process or a thread ----------------------------------------------------------------------------- */

/* The last number on the line of this field, such as "NSpid:", but not of the first line; `unknown` if there is none. */
uint64_t proc_status(pid_t pid, const char *field, uint64_t unknown);

/* Whether that line contains the text. */
bool proc_status_has(pid_t pid, const char *field, const char *text);

/* --- stat --------------------------------------------------------------------------------------------------------- */

#define PROC_STAT_TEXT 2048 /* some 50 numbers of 20 digits at most, and a name of 64 */

/* Reads the file by one system call; "" if there is none. */
void proc_stat_read(pid_t pid, char text[PROC_STAT_TEXT]);

/* The first thread's state, a letter, such as 'T' if it is stopped; '\0' if there is none. */
char proc_stat_state(const char *text);

/* The process's state: another thread's where the first thread has ended before the process. */
char proc_state(pid_t pid, const char *text);

/* The field of this number (proc(5) counts from 1), from 4 on; 0 if there is none. The process's name may contain
 * anything. */
uint64_t proc_stat_field(const char *text, int number);

/* The parent of a process; 0 if it has none, it has ended, or /proc is not mounted. */
pid_t parent_of(pid_t pid);

/* Bounds the search for ancestors: trees are not deeper, and numbers of another PID namespace may lead in a circle. */
#define PARENT_GENERATIONS 64

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* A mapping of memory, from a line of /proc/PID/maps. */
struct mapping {
	uint64_t start, end;
	int protection;   /* PROT_READ, PROT_WRITE and PROT_EXEC */
	uint64_t offset;  /* in its file */
	uint64_t inode;   /* of its file; 0 if it has none */
	const char *path; /* the rest of the line, with its newline if it has one; "" if the mapping has no name */
};

/* `mapping` points into `line`. False if it is no such line. */
bool mapping_parse(struct mapping *mapping, const char *line);

static inline bool mapping_has(const struct mapping *mapping, uint64_t address)
{
	return address >= mapping->start && address < mapping->end;
}

#endif
