/* Who a process is, whoever looks at it from whichever PID namespace. */
#ifndef NVTASKSET_IDENTITY_H
#define NVTASKSET_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct identity {
	uint64_t pid;       /* in the innermost namespace that it is in: as it sees itself */
	uint64_t namespace; /* that one's number; 0: not known */
};

struct identity identity_own(void);

/* Of a process that /proc shows under this number; the namespace of one that may not be looked into is not known. */
struct identity identity_of(pid_t pid);

/* The same without the namespace: a process's or a thread's number in the innermost one. */
uint64_t identity_inner(pid_t pid);

/* Whether they may be the same process: a namespace that is not known may be any. */
bool identity_matches(struct identity a, struct identity b);

/* Whether this process has more privileges than the user who started it (set-user-ID, say). */
bool identity_is_privileged(void);

#endif
