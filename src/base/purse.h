/*
 * What it may cost to look at other processes. These may be hostile: without a bound, they decide how long we look.
 *
 * Each reader has a bound for what one process offers. Who looks at many processes also opens a purse for each of them, from
 * which all readers of this thread pay: it belongs to the process's user, so nobody makes us overlook others' processes; all
 * users but our own share another one, since a user may have many names (/etc/subuid). Waiting is paid from one purse for all.
 *
 * Without a purse, for one process that somebody has named, only the readers' bounds hold.
 */
#ifndef NVTASKSET_PURSE_H
#define NVTASKSET_PURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A look is one descriptor, or so many bytes that the kernel reports: about a microsecond. */
#define PURSE_BYTES_OF_LOOK 1024
#define PURSE_LOOKS_OF_USER (1U << 20)
#define PURSE_LOOKS_OF_ALL (1U << 22)
#define PURSE_USERS 32 /* those that come later share the last one's */

/* Of one command, or one round of it; at first {.wait_ms = …}. */
struct purses {
	unsigned int wait_ms; /* that all processes together may make us wait */
	unsigned int spent;   /* looks, at other users' processes */
	unsigned int spent_here; /* at the process that is looked at */
	unsigned int count;
	struct purse {
		uid_t user;
		unsigned int spent;
	} list[PURSE_USERS];
	bool is_short; /* processes were left out */
};

/* From here on this thread's readers pay from the purse of the process's user, until purses_close. False if that is empty: the
 * process must be left out, and nothing is open. If others are open already, as in a search inside a search, these stay. */
bool purses_open(struct purses *purses, pid_t pid);
void purses_close(struct purses *purses, pid_t pid);

/* For readers. False if the open purse is empty: they then go on as if there were no more. */
bool purse_pay(unsigned int looks);
bool purse_pay_bytes(size_t bytes);

/* Waits for a millisecond, and counts `patience_ms` down, a bound of the caller's own. False without waiting if that, or the
 * open purse, is used up. */
bool purse_wait(unsigned int *patience_ms);

#endif
