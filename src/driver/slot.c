#include "slot.h"

#include "base/clock.h"
#include "base/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DOMAINS 32
#define IDS 1024 /* the driver's API, the largest domain, has some 800 */

#define TOOLS_FEATURE 0 /* of the features: see declare_feature */

/* The driver's own functions, and our events. Constant once a second subscriber can come. */
static struct {
	uint32_t handle;
	bool (*is_ours)(int domain, int id);
	slot_enable *enable;
	slot_enable_domain *enable_domain;
	slot_declare_feature *declare_feature;
} real;

/* For the time while another tool has the slot and we wait. */
static struct {
	slot_unsubscribe *unsubscribe;
	void (*may_be_free)(void);
} first;

/* Constant once published in slot_other: a reader gets a callback with the right user. */
struct slot_subscriber {
	slot_callback *callback;
	void *user;
	struct slot_subscriber *next; /* in the list of former subscribers */
};

static struct {
	atomic_bool taken;     /* from the begin of subscribing to the end of unsubscribing */
	atomic_uint under_way; /* events that are, or may be, in the callback */
	_Atomic uint64_t wanted[DOMAINS][IDS / 64];
	struct slot_subscriber *left; /* not freed yet: a thread may still be in a callback. Guarded by `taken` */
} other;

_Atomic(struct slot_subscriber *) slot_other;

/* The part of `under_way` on this thread. May be more than 1: a callback may call the driver. */
static __thread unsigned int own_under_way __attribute__((tls_model("initial-exec")));

/* --- the events that it wants -------------------------------------------------------------------------------- */

static bool is_known(int domain, int id)
{
	return domain >= 0 && domain < DOMAINS && id >= 0 && id < IDS;
}

static bool is_wanted(int domain, int id)
{
	return is_known(domain, id) &&
	       (atomic_load_explicit(&other.wanted[domain][id / 64], memory_order_relaxed) >> (id % 64) & 1);
}

/* --- handing on ---------------------------------------------------------------------------------------------- */

/* Counts first, then looks: either unsubscribe sees the count, or we see no subscriber. */
void slot_hand_on(int domain, int id, const void *parameters)
{
	own_under_way++;
	atomic_fetch_add(&other.under_way, 1);
	const struct slot_subscriber *subscriber = atomic_load(&slot_other);

	if (subscriber && is_wanted(domain, id))
		subscriber->callback(subscriber->user, domain, id, parameters);
	/* The counter is 0 already if the callback has unsubscribed: see wait_for_callbacks. */
	if (own_under_way > 0) {
		own_under_way--;
		atomic_fetch_sub(&other.under_way, 1);
	}
}

/* Waits until no other thread is in a callback of the leaving subscriber. This thread may unsubscribe inside of a
 * callback. The time is limited, since a callback may wait for this thread. */
static bool wait_for_callbacks(void)
{
	double end = clock_ms() + SLOT_PATIENCE_MS;
	int saved = errno;

	atomic_fetch_sub(&other.under_way, own_under_way);
	own_under_way = 0;
	while (atomic_load(&other.under_way) > 0 && clock_ms() < end)
		clock_pause_us(50);
	errno = saved;
	return atomic_load(&other.under_way) == 0;
}

void slot_after_fork(void)
{
	atomic_store(&other.under_way, own_under_way);
	atomic_store(&other.taken, atomic_load(&slot_other) != NULL);
}

/* --- the table's functions, for others ------------------------------------------------------------------ */

static CUresult subscribe(uint32_t *handle, slot_callback *callback, void *user)
{
	CUresult result = CUDA_SUCCESS;

	if (!handle || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	struct slot_subscriber *new = malloc(sizeof *new);

	if (!new) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (atomic_exchange(&other.taken, true)) {
		free(new);
		result = CUDA_ERROR_ALREADY_ACQUIRED;
	} else {
		*new = (struct slot_subscriber){.callback = callback, .user = user};
		real.declare_feature(false, real.handle, TOOLS_FEATURE);
		atomic_store(&slot_other, new);
		*handle = real.handle;
	}
	return result;
}

static CUresult subscribe_with_name(uint32_t *handle, slot_callback *callback, void *user, const char *name)
{
	(void)name;
	return subscribe(handle, callback, user);
}

static bool is_others(uint32_t handle)
{
	return handle == real.handle && atomic_load(&slot_other);
}

static CUresult enable(uint32_t on, uint32_t handle, int domain, int id)
{
	uint64_t bit = UINT64_C(1) << (id % 64);
	CUresult result = CUDA_SUCCESS;

	if (!is_others(handle) || !is_known(domain, id))
		return CUDA_ERROR_INVALID_VALUE;
	if (on || !real.is_ours(domain, id))
		result = real.enable(on, handle, domain, id);
	if (result == CUDA_SUCCESS && on)
		atomic_fetch_or(&other.wanted[domain][id / 64], bit);
	else if (result == CUDA_SUCCESS)
		atomic_fetch_and(&other.wanted[domain][id / 64], ~bit);
	return result;
}

static bool has_ours(int domain)
{
	bool found = false;

	for (int id = 0; id < IDS && !found; id++)
		found = real.is_ours(domain, id);
	return found;
}

/* Event by event, without ours: between disabling the domain and enabling ours again, a launch would be missed. */
static void disable_others(int domain)
{
	for (int id = 0; id < IDS; id++) {
		if (is_wanted(domain, id) && !real.is_ours(domain, id))
			real.enable(false, real.handle, domain, id);
	}
}

static CUresult set_domain(bool on, int domain)
{
	CUresult result = CUDA_SUCCESS;

	if (on || !has_ours(domain))
		result = real.enable_domain(on, real.handle, domain);
	else
		disable_others(domain);
	for (int word = 0; word < IDS / 64 && result == CUDA_SUCCESS; word++)
		atomic_store(&other.wanted[domain][word], on ? UINT64_MAX : 0);
	return result;
}

/* Ignores errors: the driver does not know all domains. */
static void set_all(bool on)
{
	for (int domain = 0; domain < DOMAINS; domain++)
		set_domain(on, domain);
}

static CUresult enable_domain(uint32_t on, uint32_t handle, int domain)
{
	return is_others(handle) && is_known(domain, 0) ? set_domain(on, domain) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult enable_all(uint32_t on, uint32_t handle)
{
	if (!is_others(handle))
		return CUDA_ERROR_INVALID_VALUE;
	set_all(on);
	return CUDA_SUCCESS;
}

/* Unlinks before freeing: after a fork in between, the child finds a valid list. */
static void free_left(void)
{
	while (other.left) {
		struct slot_subscriber *gone = other.left;

		other.left = gone->next;
		free(gone);
	}
}

/* Afterwards the subscriber may free `user`: no callback may still run. */
static CUresult unsubscribe(uint32_t handle)
{
	struct slot_subscriber *leaving = handle == real.handle ? atomic_exchange(&slot_other, NULL) : NULL;

	if (!leaving)
		return CUDA_ERROR_INVALID_VALUE;
	leaving->next = other.left;
	other.left = leaving;
	set_all(false);
	if (wait_for_callbacks())
		free_left();
	real.declare_feature(true, real.handle, TOOLS_FEATURE);
	atomic_store(&other.taken, false);
	return CUDA_SUCCESS;
}

/* All features stay declared, since the driver refuses APIs without. Only the first is up to the other subscriber:
 * Nsight Compute does not declare the feature, and otherwise its callback waits for ever for a lock of the driver's
 * (hardware.md). */
static CUresult declare_feature(uint32_t on, uint32_t handle, int feature)
{
	return real.declare_feature(on || feature != TOOLS_FEATURE, handle, feature);
}

/* For a tool that subscribed before us. */
static CUresult unsubscribe_first(uint32_t handle)
{
	CUresult result = first.unsubscribe(handle);
	int saved = errno;

	if (result == CUDA_SUCCESS)
		first.may_be_free();
	errno = saved;
	return result;
}

/* --- replacing entries of the table ------------------------------------------------------------------------------ */

/* The protection of the page at `address`, for mprotect; PROT_READ if unknown. */
static int protection_of(const void *address)
{
	char line[512];
	struct mapping mapping;
	bool found = false;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && !found && fgets(line, sizeof line, maps))
		found = proc_mapping_parse(&mapping, line) && proc_mapping_has(&mapping, (uintptr_t)address);
	if (maps)
		fclose(maps);
	return found ? mapping.protection : PROT_READ;
}

/* Atomic: a thread may be reading the entry. */
#define REPLACE(table, entry, function) __atomic_store_n(&(table)[entry], (void *)(function), __ATOMIC_RELEASE)

static void replace_for_others(void **table)
{
	REPLACE(table, SLOT_UNSUBSCRIBE, unsubscribe);
	REPLACE(table, SLOT_ENABLE, enable);
	REPLACE(table, SLOT_ENABLE_DOMAIN, enable_domain);
	REPLACE(table, SLOT_ENABLE_ALL, enable_all);
	REPLACE(table, SLOT_DECLARE_FEATURE, declare_feature);
	/* Last: a subscriber through us finds the remaining entries replaced. */
	REPLACE(table, SLOT_SUBSCRIBE, subscribe);
	REPLACE(table, SLOT_SUBSCRIBE_WITH_NAME, subscribe_with_name);
}

static void replace_for_first(void **table)
{
	REPLACE(table, SLOT_UNSUBSCRIBE, unsubscribe_first);
}

/* Replaces entries in the read-only table. -1 with errno. */
static int change_table(void **table, void replace(void **table))
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *start = (char *)((uintptr_t)table / page * page);
	size_t length = (size_t)((char *)(table + SLOT_ENTRIES) - start);
	int protection = protection_of(table);

	if (mprotect(start, length, protection | PROT_WRITE) < 0)
		return -1;
	replace(table);
	mprotect(start, length, protection);
	return 0;
}

int slot_share(void **table, uint32_t handle, bool (*is_ours)(int domain, int id), struct error *error)
{
	real.handle = handle;
	real.is_ours = is_ours;
	real.enable = (slot_enable *)table[SLOT_ENABLE];
	real.enable_domain = (slot_enable_domain *)table[SLOT_ENABLE_DOMAIN];
	real.declare_feature = (slot_declare_feature *)table[SLOT_DECLARE_FEATURE];
	if (change_table(table, replace_for_others) < 0)
		return error_set_errno(error, "the driver's callback table cannot be shared with profilers");
	return 0;
}

int slot_wait(void **table, void (*may_be_free)(void))
{
	first.unsubscribe = (slot_unsubscribe *)table[SLOT_UNSUBSCRIBE];
	first.may_be_free = may_be_free;
	return change_table(table, replace_for_first);
}
