/*
 * The handle: the descriptor by which a process's segment is found. Programs that the process executes inherit it.
 *
 * It names the file but does not open it (O_PATH). Who inherits it opens the file through /proc, as far as the file's
 * mode permits: its user and root for reading and writing, others only for reading. So a program with fewer
 * privileges starts with its parent's partition and cannot change it. Without /proc there is no O_PATH handle: the
 * handle is the open file itself, and is not inherited. A program with more privileges than its user does not pass on
 * its handle either.
 */
#ifndef NVTASKSET_SEGMENT_HANDLE_H
#define NVTASKSET_SEGMENT_HANDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The numbers that our descriptors get in programs, which count on the low ones being free. The lowest one to ask for is `usual`, a
 * high number that nobody else uses. But if the process has threads, the kernel enlarges a table of descriptors only after waiting
 * for all processors (hardware.md, "Attaching"). So for a table of `table` entries ("FDSize:" in /proc/PID/status; 0: it may
 * grow), a number near its end is returned. */
#define DESCRIPTOR_TABLE_MIN 64 /* the kernel's smallest table of descriptors, NR_OPEN_DEFAULT */
#define DESCRIPTOR_TABLE_END 16
int descriptor_lowest(uint64_t table, int usual);

/* The handle's number: HANDLE_USUAL or above if limits permit, which scripts do not use; in a process with threads
 * HANDLE_MIN or above (descriptor_lowest). */
#define HANDLE_USUAL 237
#define HANDLE_MIN (DESCRIPTOR_TABLE_MIN - DESCRIPTOR_TABLE_END)

/* The lowest number that descriptors of ours have in that process: 0 if it may open only few files, or that is not known. */
int handle_lowest_of(pid_t pid);

/* Makes the handle of a file, and takes the file over in any case. `in_place_of` is a handle of this process that is
 * replaced, or -1. The replacement is atomic: programs that are started meanwhile inherit one or the other. -1 with
 * errno. `above`: the number is higher by so much, and leaves those below free. */
int handle_make(int file, int in_place_of, int above);

/* Gives the file a number as a handle has, close-on-exec; the number that it has if there is no room. */
int handle_move_up(int file);

/* Whether the descriptor leads to a file with this inode number and size, as one of ours has. Never waits for a file system
 * of the program's. */
bool handle_leads_to(int number, ino_t inode, size_t size);

/* This process's next descriptor, from `first` on, that leads to a file of this name (memfd_find.h) and size,
 * as a segment has; -1 if there are no more. Also works without /proc. */
int handle_next(int first, const char *link, size_t size);

/* Opens the handle's file, close-on-exec, for reading and writing, or for reading if only that is permitted. -1 with
 * errno: ENOENT without /proc. */
int handle_open(int number);

/* Whether programs that this process executes inherit the descriptor. */
bool handle_is_passed_on(int number);

#endif
