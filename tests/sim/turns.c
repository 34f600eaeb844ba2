#include "turns.h"

#include "costs.h"
#include "faults.h"
#include "mps/reach.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLACES 16
#define NS_PER_US 1000
#define ALONE_NS 500000

static struct place {
	_Atomic int pid;            /* 0: free */
	_Atomic uint64_t slice_us;
	_Atomic unsigned int wants; /* contexts */
	_Atomic int is_client;
	struct tpcset tpcs;
} *places, *own;
static int owner; /* to which process `own` belongs: not to a fork's child */

/* Who has ended but was not waited for yet has no channels any more: kill() would take it for alive. */
static bool is_alive(int pid)
{
	struct pollfd end = {.fd = pid != 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1, .events = POLLIN};
	bool result = end.fd >= 0 && poll(&end, 1, 0) == 0;

	if (end.fd >= 0)
		close(end.fd);
	return result;
}

static void find_places(void)
{
	const char *path = getenv("SIM_GPU");
	int file = path && !places ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (file >= 0 && ftruncate(file, PLACES * sizeof *places) == 0)
		places = mmap(NULL, PLACES * sizeof *places, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (file >= 0)
		close(file);
}

static void take_place(void)
{
	find_places();
	own = NULL;
	owner = getpid();
	for (unsigned int i = 0; places && i < PLACES && !own; i++) {
		int before = atomic_load(&places[i].pid);

		if (!is_alive(before) && atomic_compare_exchange_strong(&places[i].pid, &before, owner)) {
			own = &places[i];
			atomic_store(&own->wants, 0);
		}
	}
	if (places && !own)
		fatal("more programs than a simulated GPU has places");
}

void turns_begin(uint64_t slice_us, const struct tpcset *tpcs)
{
	if (owner != getpid())
		take_place();
	if (own) {
		atomic_store(&own->slice_us, slice_us);
		atomic_store(&own->is_client, mps_is_in_reach());
		own->tpcs = *tpcs;
		atomic_fetch_add(&own->wants, 1);
	}
}

void turns_end(void)
{
	if (own)
		atomic_fetch_sub(&own->wants, 1);
}

static bool wants(const struct place *place)
{
	return atomic_load(&place->wants) > 0 && atomic_load(&place->is_client) == atomic_load(&own->is_client) &&
	       is_alive(atomic_load(&place->pid));
}

static double share_in_turns(uint64_t now_ns, uint64_t *until_ns)
{
	uint64_t turns[PLACES], all = 0, begin = 0, change = cost_ns(COST_CHANGE);
	unsigned int turn = 0;

	for (unsigned int i = 0; i < PLACES; i++)
		all += turns[i] = wants(&places[i]) ? change + atomic_load(&places[i].slice_us) * NS_PER_US : 0;
	if (all == 0 || all == turns[own - places])
		return 1;
	while (begin + turns[turn] <= now_ns % all)
		begin += turns[turn++];
	bool is_changing = now_ns % all < begin + change;

	*until_ns = now_ns - now_ns % all + begin + (is_changing ? change : turns[turn]);
	return &places[turn] == own && !is_changing;
}

static double share_side_by_side(void)
{
	unsigned int count = 0;
	double sum = 0;

	for (unsigned int tpc = tpcset_next(&own->tpcs, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&own->tpcs, tpc + 1)) {
		unsigned int sharers = 1;

		for (unsigned int i = 0; i < PLACES; i++)
			sharers += &places[i] != own && tpcset_has(&places[i].tpcs, tpc) && wants(&places[i]);
		sum += 1.0 / sharers;
		count++;
	}
	return count > 0 ? sum / count : 1;
}

double turns_share(uint64_t now_ns, uint64_t *until_ns)
{
	*until_ns = now_ns + ALONE_NS;
	if (!own)
		return 1;
	return atomic_load(&own->is_client) ? share_side_by_side() : share_in_turns(now_ns, until_ns);
}
