#include "overhead.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "calls_in_progress.h"
#include "gpu/topology/topology.h"
#include "state/ledger.h"

#include <pthread.h>
#include <stdatomic.h>
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
static atomic_bool has_managed;
static struct overhead overheads[LEDGER_GPUS];

/* Before the thread makes a context. */
static __thread struct {
	bool is_first; /* nothing is counted yet */
	uint64_t free; /* 0: not known */
} before __attribute__((tls_model("initial-exec")));

/* NULL if there are too many. */
static struct overhead *find(struct account *account)
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

/* Of the process. */
static void count(struct overhead *overhead, uint64_t bytes)
{
	account_change(overhead->account, (int64_t)(bytes - overhead->bytes));
	overhead->bytes = bytes;
}

static void count_by_kernel(struct account *account, uint64_t of_process)
{
	pthread_mutex_lock(&lock);
	struct overhead *overhead = find(account);

	if (overhead) {
		uint64_t others = account_bytes(account) - overhead->bytes;

		uint64_t own = of_process > others ? of_process - others : 0;

		overhead->looked_ns = process_clock_ns();
		count(overhead, atomic_load(&has_managed) ? max_u64(own, overhead->bytes) : own);
	}
	pthread_mutex_unlock(&lock);
}

/* When the GPU was looked at last; UINT64_MAX: never again. */
static uint64_t last_look(struct account *account)
{
	pthread_mutex_lock(&lock);
	const struct overhead *overhead = find(account);
	uint64_t time = overhead ? overhead->looked_ns : UINT64_MAX;

	pthread_mutex_unlock(&lock);
	return time;
}

static bool is_due(struct account *account)
{
	uint64_t last = last_look(account);

	return last != UINT64_MAX && process_clock_ns() - last >= BETWEEN_LOOKS_NS;
}

static bool ask(const struct account *account, struct topology_memory *memory)
{
	return topology_read_memory(account_pci(account), getpid(), memory);
}

void overhead_context_begins(struct account *account)
{
	struct topology_memory memory;

	before.is_first = last_look(account) == 0;
	before.free = before.is_first && ask(account, &memory) ? memory.free : 0;
}

static void count_difference(struct account *account, uint64_t less)
{
	pthread_mutex_lock(&lock);
	struct overhead *overhead = find(account);

	if (overhead) {
		overhead->looked_ns = process_clock_ns();
		count(overhead, less <= CONTEXT_MOST ? less : 0);
	}
	pthread_mutex_unlock(&lock);
}

void overhead_context_made(struct account *account)
{
	struct topology_memory memory;

	if (!before.is_first || !ask(account, &memory))
		return;
	if (memory.of_process > 0)
		count_by_kernel(account, memory.of_process);
	else
		count_difference(account, before.free > memory.free ? before.free - memory.free : 0);
	before.is_first = false;
}

bool overhead_look(struct account *account, bool now)
{
	struct topology_memory memory;
	uint64_t number, then;
	bool asks = (now || is_due(account)) && memory_is_quiet(&number);
	bool is_told = asks && ask(account, &memory) && memory.of_process > 0;

	/* The kernel driver counts all memory of the process: of no use while another thread changes the books. */
	if (is_told && memory_is_quiet(&then) && then == number)
		count_by_kernel(account, memory.of_process);
	return is_told || !asks;
}

void overhead_has_managed(void)
{
	atomic_store(&has_managed, true);
}

void overhead_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	for (int i = 0; i < LEDGER_GPUS; i++)
		overheads[i] = (struct overhead){.account = NULL};
}
