#include "turns.h"

#include "faults.h"

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

void turns_begin(uint64_t slice_us)
{
	if (owner != getpid())
		take_place();
	if (own) {
		atomic_store(&own->slice_us, slice_us);
		atomic_fetch_add(&own->wants, 1);
	}
}

void turns_end(void)
{
	if (own)
		atomic_fetch_sub(&own->wants, 1);
}

static uint64_t slice_of(const struct place *place)
{
	return atomic_load(&place->wants) > 0 && is_alive(atomic_load(&place->pid)) ? atomic_load(&place->slice_us) * NS_PER_US : 0;
}

bool turns_is_mine(uint64_t now_ns, uint64_t *until_ns)
{
	uint64_t slices[PLACES], all = 0, end = 0;
	unsigned int turn = 0;

	*until_ns = now_ns + ALONE_NS;
	for (unsigned int i = 0; own && i < PLACES; i++)
		all += slices[i] = slice_of(&places[i]);
	if (!own || all == slice_of(own) || all == 0)
		return true;
	while (end + slices[turn] <= now_ns % all)
		end += slices[turn++];
	*until_ns = now_ns - now_ns % all + end + slices[turn];
	return &places[turn] == own;
}
