/*
 * The addresses and handles by which this process holds memory: of which GPU, and how many bytes. Without room in the
 * table, a holding is not counted.
 *
 * A driver gives a freed address to the next caller. Therefore a holding is taken out before the call that frees the
 * memory, and put back if the call fails.
 *
 * Any thread.
 */
#pragma once

#include "account.h"

struct holding {
	const void *key; /* an address or a handle; NULL: nothing */
	struct account *account;
	CUcontext context; /* the holding ends with the context */
	uint64_t bytes;
	bool is_managed; /* the kernel driver counts the memory only once a kernel has touched the memory */
};

/* The bytes are reserved already, and given back if there is no room in the table. */
void holdings_add(const struct holding *holding);

/* The bytes stay counted. 0 bytes: there is no holding. */
struct holding holdings_take(const void *key);

/* In bytes: all managed memory of the account. */
uint64_t holdings_managed(const struct account *account);

/* Gives back all that ended with a context. */
void holdings_forget(CUcontext context);

/* In the child of a fork: nothing is held. */
void holdings_after_fork(void);
