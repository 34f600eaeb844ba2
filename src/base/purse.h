/*
 * The cost of looking at other processes. A hostile process could decide without a bound how long we look.
 *
 * Each reader has a bound for a single process. A caller that looks at many processes also opens a purse for each
 * process, and all readers of the thread pay from the purse. The purse belongs to the process's user: no user makes us
 * overlook another user's processes. All users but ours also share a purse, since a user may have many names
 * (/etc/subuid). Waiting is paid from one purse. Without a purse, for a named process, only the readers' bounds hold.
 */
#ifndef NVTASKSET_PURSE_H
#define NVTASKSET_PURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A look is a descriptor, or PURSE_BYTES_OF_LOOK bytes reported by the kernel: about a microsecond. */
#define PURSE_BYTES_OF_LOOK 1024
#define PURSE_LOOKS_OF_USER (1U << 20)
#define PURSE_LOOKS_OF_ALL (1U << 22)
#define PURSE_USERS 32 /* later users share the last user's purse */

/* Of a command, or of a round of a command; at first {.wait_ms = …}. */
struct purses {
	unsigned int wait_ms; /* the longest wait for all processes together */
	unsigned int spent;   /* looks, at processes of other users */
	unsigned int spent_here; /* at the current process */
	unsigned int count;
	struct purse {
		uid_t user;
		unsigned int spent;
	} list[PURSE_USERS];
	bool is_short; /* processes were left out */
};

/* From here on, the thread's readers pay from the purse of the process's user, until purses_close. False for an empty
 * purse: the caller must leave the process out, and nothing is open. Open purses of an outer search stay open. */
bool purses_open(struct purses *purses, pid_t pid);
void purses_close(struct purses *purses, pid_t pid);

/* For readers. False if the open purse is empty: the reader then behaves as at the end. */
bool purse_pay(unsigned int looks);
bool purse_pay_bytes(size_t bytes);

/* Waits for a millisecond, and counts `patience_ms` down, the caller's own bound. False without waiting if the bound or
 * the open purse is used up. */
bool purse_wait(unsigned int *patience_ms);

#endif
