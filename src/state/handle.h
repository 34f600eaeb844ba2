/*
 * The handle: the descriptor by which a process's segment is found, and which programs that it executes inherit.
 *
 * It names the file and opens nothing (O_PATH). Whoever inherits it opens the file anew by way of /proc, as its mode lets
 * them: its user and root for reading and writing, others for reading alone, so that a program with fewer privileges starts
 * with its parent's partition and can change nothing. Without /proc there is no such descriptor, and it is the file's own,
 * which is not passed on; nor is that of a program with more privileges than its user.
 */
#ifndef NVTASKSET_SEGMENT_HANDLE_H
#define NVTASKSET_SEGMENT_HANDLE_H

#include "base/descriptor.h"

#include <stdbool.h>
#include <sys/types.h>

/* Its number: HANDLE_USUAL or above where limits allow, which scripts do not use; in a process with threads HANDLE_MIN or above
 * (base/descriptor.h). */
#define HANDLE_USUAL 237
#define HANDLE_MIN (DESCRIPTOR_TABLE_MIN - DESCRIPTOR_TABLE_END)

/* Makes the handle of a file and takes the file over, also where it fails: -1, with errno. `in_place_of`, a handle of this
 * process, is replaced at one stroke, so that those whom it starts meanwhile find one or the other; -1: none is. */
int handle_make(int file, int in_place_of);

/* Whether the descriptor leads to the segment whose file has this number. */
bool handle_leads_to(int number, ino_t inode);

/* This process's next descriptor, from `first` on, that may be a segment's; -1 where there are no more. Without /proc, too. */
int handle_next(int first);

/* Opens its file, close-on-exec: for reading and writing, or for reading where no more is permitted. -1 with errno: ENOENT
 * without /proc. */
int handle_open(int number);

/* Whether programs that this process executes inherit it. */
bool handle_is_passed_on(int number);

#endif
