/*
 * The handle: the descriptor that leads to a process's segment. Programs that the process executes inherit the handle.
 *
 * The handle names the file without opening the file (O_PATH). The heir opens the file through /proc, as the file's
 * mode permits: for reading and writing as root or the file's user, otherwise only for reading. So a program with fewer
 * privileges starts with the parent's partition and cannot change the partition. Without /proc, the handle is the open
 * file itself, and is not inherited. A program with more privileges than its user does not pass on a handle either.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The lowest number to ask for, for our descriptors: programs count on low numbers being free. Returns `usual`, a high
 * number that no other program uses. But in a process with threads, the kernel enlarges a table of descriptors only
 * after waiting for all processors (hardware.md, "Attaching"). So for a table of `table` entries ("FDSize:" in
 * /proc/PID/status; 0: the table may grow), returns a number near the end of the table. */
#define DESCRIPTOR_TABLE_MIN 64 /* the kernel's smallest table of descriptors, NR_OPEN_DEFAULT */
#define DESCRIPTOR_TABLE_END 16
int handle_lowest_descriptor(uint64_t table, int usual);

/* The handle's number: HANDLE_USUAL or above if limits permit, a number that scripts do not use; in a process with
 * threads HANDLE_MIN or above (handle_lowest_descriptor). */
#define HANDLE_USUAL 237
#define HANDLE_MIN (DESCRIPTOR_TABLE_MIN - DESCRIPTOR_TABLE_END)

/* The lowest number of our descriptors in process `pid`; 0 if the process may open only few files, or the limit is
 * unknown. */
int handle_lowest_of(pid_t pid);

/* Makes the handle of a file, and takes the file over in any case. `in_place_of` is a handle of this process to
 * replace, or -1. The replacement is atomic: programs started meanwhile inherit the old or the new handle, or both if
 * the old number is above the process's limit. -1 with errno. `above` raises the number, and leaves the numbers below
 * free. */
int handle_make(int file, int in_place_of, int above);

/* Moves the file to a number as for a handle, close-on-exec; keeps the number if there is no room. */
int handle_move_up(int file);

/* Whether the descriptor leads to a file with the inode number and the size, as our files have. Never waits for a file
 * system of the program. */
bool handle_leads_to(int number, ino_t inode, size_t size);

/* This process's next descriptor, from `first` on, of a file with the name (memfd_find.h) and the size of a segment; -1
 * at the end. Works without /proc, too. */
int handle_next(int first, const char *link, size_t size);

/* Opens the handle's file, close-on-exec, for reading and writing, or else for reading. -1 with errno: ENOENT without
 * /proc. */
int handle_open(int number);

/* Whether executed programs inherit the descriptor. */
bool handle_is_passed_on(int number);
