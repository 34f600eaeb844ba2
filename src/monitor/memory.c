#include "parts.h"

#include <stdatomic.h>

#define ALL_MOST ((size_t)512 << 20)
#define USERS 32 /* later users share the last account */

struct account {
	_Atomic uint64_t user; /* and 1; 0: free */
	_Atomic size_t bytes;
};

static struct account accounts[USERS];
static _Atomic size_t all;

static struct account *account_of(uint64_t user)
{
	unsigned int place = 0;
	bool is_found = false;

	for (; place < USERS - 1 && !is_found; place += !is_found) {
		uint64_t there = 0;

		is_found = atomic_compare_exchange_strong(&accounts[place].user, &there, user + 1) || there == user + 1;
	}
	return &accounts[place];
}

bool monitor_reserve_memory(struct monitor *monitor, size_t bytes)
{
	struct account *account = account_of(monitor->user);
	size_t own = atomic_fetch_add(&account->bytes, bytes) + bytes, sum = atomic_fetch_add(&all, bytes) + bytes;
	bool fits = sum < ALL_MOST && own <= ALL_MOST - sum;

	monitor->reserved += bytes;
	if (!fits)
		monitor_return_memory(monitor, bytes);
	return fits;
}

void monitor_return_memory(struct monitor *monitor, size_t bytes)
{
	atomic_fetch_sub(&account_of(monitor->user)->bytes, bytes);
	atomic_fetch_sub(&all, bytes);
	monitor->reserved -= bytes;
}
