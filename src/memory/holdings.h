/*
 * What this process holds by an address or a handle: of which GPU, and how many bytes. What cannot be remembered, for
 * want of memory, is not counted.
 *
 * A driver gives a freed address to the next who asks. So a holding is taken out before its call frees it, and put back
 * if the call fails.
 *
 * Any thread.
 */
#ifndef NVTASKSET_MEMORY_HOLDINGS_H
#define NVTASKSET_MEMORY_HOLDINGS_H

#include "account.h"

struct holding {
	const void *key; /* an address or a handle; NULL: none */
	struct account *account;
	CUcontext context; /* with which the holding ends */
	uint64_t bytes;
};

/* The bytes are reserved already; they are given back if they cannot be remembered. */
void holdings_add(const struct holding *holding);

/* Bytes of 0: there is none. They stay counted. */
struct holding holdings_take(const void *key);

/* Gives back what ended with a context. */
void holdings_forget(CUcontext context);

/* In the child of a fork: nothing is held. */
void holdings_after_fork(void);

#endif
