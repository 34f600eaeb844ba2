#include "clock_fit.h"

#include <pthread.h>
#include <stdlib.h>

struct shared_clock {
	struct shared_clock *next;
	struct pci_address pci;
	uint64_t user;
	unsigned int members;
	struct clock_fit fit;
};

/* Guards list and clocks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_clock *clocks;

static struct shared_clock *find_clock(struct pci_address pci, uint64_t user)
{
	struct shared_clock *found = clocks;

	while (found && !(pci_address_equal(found->pci, pci) && found->user == user))
		found = found->next;
	return found;
}

static struct shared_clock *add_clock(struct pci_address pci, uint64_t user)
{
	struct shared_clock *new = calloc(1, sizeof *new);

	if (new) {
		new->next = clocks;
		new->pci = pci;
		new->user = user;
		clocks = new;
	}
	return new;
}

struct shared_clock *shared_clock_join(struct pci_address pci, uint64_t user)
{
	pthread_mutex_lock(&lock);
	struct shared_clock *clock = find_clock(pci, user);

	clock = clock ? clock : add_clock(pci, user);
	if (clock)
		clock->members++;
	pthread_mutex_unlock(&lock);
	return clock;
}

static void drop(const struct shared_clock *clock)
{
	struct shared_clock **link = &clocks;

	while (*link != clock)
		link = &(*link)->next;
	*link = clock->next;
}

void shared_clock_leave(struct shared_clock *clock)
{
	if (!clock)
		return;
	pthread_mutex_lock(&lock);
	if (--clock->members == 0) {
		drop(clock);
		free(clock);
	}
	pthread_mutex_unlock(&lock);
}

bool shared_clock_add(struct shared_clock *clock, enum clock_order order, uint64_t cpu, uint64_t gpu)
{
	pthread_mutex_lock(&lock);
	bool is_new = clock_fit_add(&clock->fit, order, cpu, gpu);

	pthread_mutex_unlock(&lock);
	return is_new;
}

bool shared_clock_offset(struct shared_clock *clock, uint64_t cpu, struct clock_offset *offset)
{
	pthread_mutex_lock(&lock);
	bool is_known = clock_fit_offset(&clock->fit, cpu, offset);

	pthread_mutex_unlock(&lock);
	return is_known;
}
