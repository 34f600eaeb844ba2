/*
 * The cost of looking at other processes. A hostile process could decide without a bound how long we look.
 *
 * Each reader has a bound for a single process. A caller that looks at many processes also makes a purse, names each
 * process to the purse, and passes the purse down to the readers, who pay from the purse. The payments count for the
 * process's user: no user makes us overlook another user's processes. All users but ours also share a bound, since a
 * user may have many names (/etc/subuid). Waiting has one bound for all processes. A process of a few dozen looks is
 * free. NULL, for a single process that the caller chose, pays without a bound.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A look is a descriptor, or PURSE_BYTES_OF_LOOK bytes reported by the kernel: about a microsecond. */
#define PURSE_BYTES_OF_LOOK 1024
#define PURSE_LOOKS_OF_USER (1U << 20)
#define PURSE_LOOKS_OF_ALL (1U << 22)
#define PURSE_USERS 32 /* later users share the last user's looks */

/* Of a command, or of a round of a command; at first {.wait_ms = …}, or for a single process {.left = …}. */
struct purse {
	unsigned int wait_ms;     /* the longest wait for all processes together */
	unsigned int spent;       /* looks, at processes of other users */
	unsigned int given, left; /* looks, at the current process */
	pid_t pid;                /* the current process */
	unsigned int count;
	struct {
		uid_t user;
		unsigned int spent;
	} users[PURSE_USERS];
	bool is_short; /* processes were left out */
};

/* From here on, the purse pays for looks at the process, and no longer for the process before. False if the process's
 * user has nothing left: the caller must leave the process out. */
bool purse_begin(struct purse *purse, pid_t pid);

/* For readers. False if nothing is left for the process: the reader then behaves as if all were read. */
bool purse_pay(struct purse *purse, unsigned int looks);
bool purse_pay_bytes(struct purse *purse, size_t bytes);

/* Whether /proc/PID/NAME has the text (proc_find) in the first `most` bytes, or in as many as are paid for. */
bool purse_find(struct purse *purse, pid_t pid, const char *name, size_t most, const char *text);

/* Waits for a millisecond, and counts `patience_ms` down, the caller's own bound. False without waiting if the bound or
 * the purse is used up. */
bool purse_wait(struct purse *purse, unsigned int *patience_ms);
