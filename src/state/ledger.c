#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

/* --- words -------------------------------------------------------------------------------------------------------- */

/* A word has an amount in its upper half; in the lower half, a slot (8 bits) and a number raised by each change (24
 * bits). */
#define NUMBER_BITS 24
#define NUMBER_MASK ((UINT32_C(1) << NUMBER_BITS) - 1)

_Static_assert(LEDGER_MEMBERS <= 256, "a slot has 8 bits");

static uint64_t word_of(uint32_t amount, int slot, uint32_t number)
{
	return (uint64_t)amount << 32 | (uint32_t)slot << NUMBER_BITS | (number & NUMBER_MASK);
}

static uint32_t amount_in(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static int slot_in(uint64_t word)
{
	return (int)((uint32_t)word >> NUMBER_BITS) % LEDGER_MEMBERS;
}

static uint32_t number_in(uint64_t word)
{
	return (uint32_t)word & NUMBER_MASK;
}

static uint32_t next_number(uint64_t word)
{
	return (number_in(word) + 1) & NUMBER_MASK;
}

/* Within 32 bits for any words. */
static uint32_t add_amount(uint32_t amount, int64_t change)
{
	int64_t sum = amount + change;

	return sum < 0 ? 0 : sum >= LEDGER_UNLIMITED ? LEDGER_UNLIMITED - 1 : (uint32_t)sum;
}

/* --- changing ----------------------------------------------------------------------------------------------------- */

/* Lets a slot's share follow the total made by the slot, unless the share has done so. */
static void complete(struct ledger_gpu *gpu, uint64_t total)
{
	int slot = slot_in(total);
	struct ledger_account *account = &gpu->accounts[slot];
	uint64_t intent = atomic_load(&account->intent), share = atomic_load(&account->share);
	uint32_t amount = add_amount(amount_in(share), (int32_t)amount_in(intent));
	bool is_due = next_number(share) == number_in(total) && number_in(intent) == number_in(total);

	if (is_due)
		atomic_compare_exchange_strong(&account->share, &share, word_of(amount, slot, number_in(total)));
}

struct bounds {
	uint32_t most, most_of_command;
	const struct ledger *ledger; /* NULL: there is no limit of a command */
};

/* The intent stands there already. False if a limit would be exceeded. */
static bool carry_out(struct ledger_gpu *gpu, int slot, int32_t kib, uint32_t number, const struct bounds *bounds)
{
	uint64_t before = atomic_load(&gpu->total), after;

	do {
		complete(gpu, before);
		uint32_t amount = add_amount(amount_in(before), kib);
		bool has_command = kib > 0 && bounds->ledger;
		uint32_t command = has_command ? add_amount(ledger_of_command(bounds->ledger, gpu, slot), kib) : 0;

		if (kib > 0 && (amount > bounds->most || command > bounds->most_of_command))
			return false;
		after = word_of(amount, slot, number);
	} while (!atomic_compare_exchange_weak(&gpu->total, &before, after));
	complete(gpu, after);
	return true;
}

static bool change(struct ledger_gpu *gpu, int slot, int64_t kib, const struct bounds *bounds)
{
	struct ledger_account *account = &gpu->accounts[slot];
	uint32_t number = next_number(atomic_load(&account->share));

	if (kib > INT32_MAX || kib < INT32_MIN)
		return false;
	atomic_store(&account->intent, word_of((uint32_t)(int32_t)kib, slot, number));
	return carry_out(gpu, slot, (int32_t)kib, number, bounds);
}

bool ledger_change(struct ledger_gpu *gpu, int slot, int64_t kib, uint32_t most)
{
	return change(gpu, slot, kib, &(struct bounds){.most = most});
}

bool ledger_change_within(struct ledger_gpu *gpu, int slot, int64_t kib, uint32_t most,
                          const struct ledger *ledger, uint32_t most_of_command)
{
	return change(gpu, slot, kib, &(struct bounds){most, most_of_command, ledger});
}

/* --- the dead ----------------------------------------------------------------------------------------------------- */

/* Far behind the file's end, away from all other locks. */
#define FIRST_LOCK (INT64_C(1) << 40)

static int lock_of(int file, int slot, int command, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = FIRST_LOCK + slot, .l_len = 1};
	int result = fcntl(file, command, &lock);

	return command == F_OFD_GETLK && result == 0 ? lock.l_type != F_UNLCK : result;
}

/* A child of a fork that has not unmapped the ledger keeps the lock. */
static bool has_no_process(const struct ledger_member *member)
{
	return atomic_load(&member->namespace) == identity_own().namespace &&
	       kill((pid_t)atomic_load(&member->pid), 0) < 0 && errno == ESRCH;
}

static bool is_dead(const struct ledger_member *member, int file, int slot)
{
	return atomic_load(&member->pid) != 0 &&
	       (lock_of(file, slot, F_OFD_GETLK, F_WRLCK) == 0 || has_no_process(member));
}

/* In the name of a slot whose owner does nothing any more. Several processes may do the same: each step happens
 * once. */
static bool empty_once(struct ledger_gpu *gpu, int slot)
{
	struct ledger_account *account = &gpu->accounts[slot];
	uint64_t total = atomic_load(&gpu->total);

	complete(gpu, total);
	uint64_t intent = atomic_load(&account->intent), share = atomic_load(&account->share);
	int32_t kib = (int32_t)(0 - amount_in(share));
	uint64_t wanted = word_of((uint32_t)kib, slot, next_number(share));
	uint64_t after = word_of(add_amount(amount_in(total), kib), slot, next_number(share));

	if (kib != 0 && atomic_compare_exchange_strong(&account->intent, &intent, wanted) &&
	    atomic_compare_exchange_strong(&gpu->total, &total, after))
		complete(gpu, after);
	return kib == 0;
}

#define ATTEMPTS 1000 /* a hostile member changes the total all the time */

static void empty_all(struct ledger *ledger, int slot)
{
	for (int i = 0; i < LEDGER_GPUS; i++) {
		for (int attempt = 0; attempt < ATTEMPTS && !empty_once(&ledger->gpus[i], slot);)
			attempt++;
	}
}

void ledger_reclaim(struct ledger *ledger, int file, int own)
{
	for (int slot = 0; slot < LEDGER_MEMBERS && file >= 0; slot++) {
		uint64_t pid = atomic_load(&ledger->members[slot].pid);

		if (slot != own && is_dead(&ledger->members[slot], file, slot)) {
			empty_all(ledger, slot);
			atomic_compare_exchange_strong(&ledger->members[slot].pid, &pid, 0);
		}
	}
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static void occupy(struct ledger *ledger, int slot)
{
	struct ledger_member *member = &ledger->members[slot];
	struct identity own = identity_own();

	empty_all(ledger, slot);
	atomic_store(&member->command, 0);
	atomic_store(&member->namespace, own.namespace);
	atomic_store(&member->pid, own.pid);
}

/* The lock keeps the slot from being taken twice. */
static bool try_to_join(struct ledger *ledger, int file, int slot)
{
	bool may = lock_of(file, slot, F_OFD_SETLK, F_WRLCK) == 0;

	if (may)
		occupy(ledger, slot);
	return may;
}

int ledger_join(struct ledger *ledger, int file)
{
	int slot = file < 0 ? 0 : ledger_slot_of(ledger, identity_own());

	if (file < 0) {
		occupy(ledger, 0);
	} else if (slot < 0 || !try_to_join(ledger, file, slot)) {
		for (slot = 0; slot < LEDGER_MEMBERS && !try_to_join(ledger, file, slot);)
			slot++;
	}
	return slot < LEDGER_MEMBERS ? slot : -1;
}

int ledger_slot_of(const struct ledger *ledger, struct identity who)
{
	int found = -1;

	for (int slot = 0; slot < LEDGER_MEMBERS && found < 0; slot++) {
		const struct ledger_member *member = &ledger->members[slot];
		struct identity there = {atomic_load(&member->pid), atomic_load(&member->namespace)};

		found = there.pid != 0 && identity_matches(there, who) ? slot : -1;
	}
	return found;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static uint64_t number_of(struct pci_address pci)
{
	return UINT64_C(1) << 63 | (uint64_t)pci.domain << 16 | (uint64_t)pci.bus << 8 | pci.device;
}

struct ledger_gpu *ledger_find(struct ledger *ledger, struct pci_address pci)
{
	struct ledger_gpu *found = NULL;

	for (int i = 0; i < LEDGER_GPUS && !found; i++) {
		uint64_t there = 0, wanted = number_of(pci);

		if (atomic_compare_exchange_strong(&ledger->gpus[i].pci, &there, wanted) || there == wanted)
			found = &ledger->gpus[i];
	}
	return found;
}

const struct ledger_gpu *ledger_look(const struct ledger *ledger, struct pci_address pci)
{
	const struct ledger_gpu *found = NULL;

	for (int i = 0; i < LEDGER_GPUS && !found; i++)
		found = atomic_load(&ledger->gpus[i].pci) == number_of(pci) ? &ledger->gpus[i] : NULL;
	return found;
}

uint32_t ledger_total(const struct ledger_gpu *gpu)
{
	return amount_in(atomic_load(&gpu->total));
}

uint32_t ledger_share(const struct ledger_gpu *gpu, int slot)
{
	return amount_in(atomic_load(&gpu->accounts[slot].share));
}

uint32_t ledger_of_living(const struct ledger *ledger, const struct ledger_gpu *gpu, int file)
{
	uint32_t sum = ledger_total(gpu);

	for (int slot = 0; slot < LEDGER_MEMBERS && file >= 0; slot++) {
		if (is_dead(&ledger->members[slot], file, slot))
			sum = add_amount(sum, -(int64_t)ledger_share(gpu, slot));
	}
	return sum;
}

uint32_t ledger_of_command(const struct ledger *ledger, const struct ledger_gpu *gpu, int slot)
{
	uint64_t command = atomic_load(&ledger->members[slot].command);
	uint32_t sum = ledger_share(gpu, slot);

	for (int other = 0; other < LEDGER_MEMBERS && command != 0; other++) {
		const struct ledger_member *member = &ledger->members[other];
		bool is_there = other != slot && atomic_load(&member->pid) != 0;

		if (is_there && atomic_load(&member->command) == command)
			sum = add_amount(sum, ledger_share(gpu, other));
	}
	return sum;
}
