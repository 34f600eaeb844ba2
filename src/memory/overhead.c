#include "kinds.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "base/pointer_map.h"
#include "calls_in_progress.h"
#include "gpu/topology/topology.h"
#include "holdings.h"
#include "state/ledger.h"

#include <pthread.h>
#include <unistd.h>

#define BETWEEN_LOOKS_NS UINT64_C(500000000)
#define CONTEXT_MOST (UINT64_C(2) << 30) /* a larger change is another program's */

/* Of a GPU. */
struct overhead {
	struct account *account; /* NULL: free */
	uint64_t bytes;          /* the driver's own */
	uint64_t looked_ns;      /* 0: never */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct overhead overheads[LEDGER_GPUS];

struct known_context {
	const void *context;
	CUdevice device; /* NO_DEVICE: the context has ended */
};

#define NO_DEVICE (-1)

static struct pointer_map contexts;
static bool some_are_unknown;

/* What the books and the kernel driver say at the same moment. */
struct moment {
	uint64_t others;  /* bytes that are counted otherwise */
	uint64_t managed; /* part of the others; the kernel driver may count all of the part, or nothing */
	uint64_t all;     /* of the process; 0: the kernel driver does not tell */
	uint64_t free;
};

/* Before the thread makes a context. */
static __thread struct {
	bool is_first; /* nothing is counted yet */
	uint64_t free; /* 0: not known */
} before __attribute__((tls_model("initial-exec")));

/* NULL if there are too many. */
static struct overhead *find_overhead(struct account *account)
{
	struct overhead *found = NULL;

	for (int i = 0; i < LEDGER_GPUS && (!found || found->account != account); i++) {
		struct overhead *there = &overheads[i];

		found = there->account == account || (!found && !there->account) ? there : found;
	}
	if (found)
		found->account = account;
	return found;
}

static uint64_t others_of(struct account *account)
{
	pthread_mutex_lock(&lock);
	const struct overhead *overhead = find_overhead(account);
	uint64_t bytes = account_bytes(account) - (overhead ? overhead->bytes : 0);

	pthread_mutex_unlock(&lock);
	return bytes;
}

/* False if the kernel driver does not answer. */
static bool ask_kernel(struct account *account, struct moment *moment)
{
	struct topology_user own = {.pid = getpid()};

	moment->others = others_of(account);
	moment->managed = holdings_managed(account);
	bool is_answered = topology_read_memory(account_pci(account), &own, 1, &moment->free);

	moment->all = own.bytes;
	return is_answered;
}

/* From now on, the driver's own bytes are as few more or less as lie between both. */
static void count_between(struct account *account, uint64_t least, uint64_t most)
{
	pthread_mutex_lock(&lock);
	struct overhead *overhead = find_overhead(account);

	if (overhead) {
		uint64_t bytes = min_u64(max_u64(overhead->bytes, least), most);

		account_change(account, (int64_t)(bytes - overhead->bytes));
		overhead->bytes = bytes;
		overhead->looked_ns = process_clock_ns();
	}
	pthread_mutex_unlock(&lock);
}

static void count_by_kernel(struct account *account, const struct moment *moment)
{
	count_between(account, rest_u64(moment->all, moment->others),
	              rest_u64(moment->all, moment->others - moment->managed));
}

static void count_by_difference(struct account *account, const struct moment *moment)
{
	uint64_t less = rest_u64(before.free, moment->free);
	uint64_t bytes = less <= CONTEXT_MOST ? less : 0;

	count_between(account, bytes, bytes);
}

/* When the GPU was looked at last; UINT64_MAX: never again. */
static uint64_t last_look(struct account *account)
{
	pthread_mutex_lock(&lock);
	const struct overhead *overhead = find_overhead(account);
	uint64_t time = overhead ? overhead->looked_ns : UINT64_MAX;

	pthread_mutex_unlock(&lock);
	return time;
}

void overhead_context_begins(struct account *account)
{
	struct moment moment;

	before.is_first = last_look(account) == 0;
	before.free = before.is_first && ask_kernel(account, &moment) ? moment.free : 0;
}

void overhead_context_made(struct account *account)
{
	struct moment moment;
	uint64_t number, then;
	bool was_quiet = memory_is_quiet(&number);

	if (!before.is_first || !ask_kernel(account, &moment))
		return;
	if (moment.all == 0)
		count_by_difference(account, &moment);
	else if (was_quiet && memory_is_quiet(&then) && then == number)
		count_by_kernel(account, &moment);
	before.is_first = false;
}

/* The kernel driver counts all memory of the process: of no use while another thread changes the books. */
bool overhead_look(struct account *account, bool now)
{
	struct moment moment;
	uint64_t number, then, last = now ? 0 : last_look(account);
	bool is_due = now || (last != UINT64_MAX && process_clock_ns() - last >= BETWEEN_LOOKS_NS);
	bool asks = is_due && memory_is_quiet(&number);
	bool is_told = asks && ask_kernel(account, &moment) && moment.all > 0;

	if (is_told && memory_is_quiet(&then) && then == number)
		count_by_kernel(account, &moment);
	else if (asks && !is_told)
		count_between(account, 0, UINT64_MAX); /* as before; the account has been looked at */
	return is_told || !asks;
}

void overhead_reservation_begins(struct account *account, bool is_managed)
{
	if (last_look(account) == 0 && (is_managed || account_room(account).limit != SEGMENT_MEMORY_OFF))
		overhead_look(account, true);
}

/* --- the last context --------------------------------------------------------------------------------------------- */

void overhead_context_known(CUcontext context, CUdevice device)
{
	pthread_mutex_lock(&lock);
	struct known_context *known = pointer_map_have(&contexts, sizeof *known, context);

	if (known)
		known->device = device;
	some_are_unknown |= !known;
	pthread_mutex_unlock(&lock);
}

void overhead_contexts_unknown(void)
{
	pthread_mutex_lock(&lock);
	some_are_unknown = true;
	pthread_mutex_unlock(&lock);
}

static bool has_context(CUdevice device)
{
	const struct known_context *all = contexts.structs;
	bool has = some_are_unknown;

	for (size_t i = 0; i < contexts.room && !has; i++)
		has = all[i].context && all[i].device == device;
	return has;
}

/* The next context is the first again. */
static void forget_bytes(CUdevice device)
{
	for (int i = 0; i < LEDGER_GPUS; i++) {
		struct overhead *overhead = &overheads[i];

		if (overhead->account && account_device(overhead->account) == device) {
			account_change(overhead->account, -(int64_t)overhead->bytes);
			overhead->bytes = overhead->looked_ns = 0;
		}
	}
}

void overhead_context_ends(CUcontext context)
{
	pthread_mutex_lock(&lock);
	struct known_context *known = pointer_map_find(&contexts, sizeof *known, context);
	CUdevice device = known ? known->device : NO_DEVICE;

	if (known)
		known->device = NO_DEVICE;
	if (device != NO_DEVICE && !has_context(device))
		forget_bytes(device);
	pthread_mutex_unlock(&lock);
}

void overhead_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	pointer_map_forget(&contexts);
	some_are_unknown = false;
	for (int i = 0; i < LEDGER_GPUS; i++)
		overheads[i] = (struct overhead){.account = NULL};
}
