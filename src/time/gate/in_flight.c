#include "in_flight.h"

#include "base/process_clock.h"

#include <stdlib.h>

/* --- coming and going ------------------------------------------------------------------------------------------------ */

struct in_flight_launch *in_flight_add(struct in_flight *all)
{
	struct in_flight_launch *launch = NULL;

	if (all->free_count > 0)
		launch = all->free[--all->free_count];
	else if (all->used < IN_FLIGHT_MAX)
		launch = &all->launches[all->used++];
	if (launch) {
		*launch = (struct in_flight_launch){.number = ++all->numbers};
		all->running[all->running_count++] = launch;
	}
	return launch;
}

void in_flight_free(struct in_flight *all, struct in_flight_launch *launch)
{
	all->free[all->free_count++] = launch;
}

/* --- what its end is seen by ------------------------------------------------------------------------------------------ */

void in_flight_is_kernel(struct in_flight_launch *launch, const struct stamps *stamps, uint64_t record)
{
	launch->stamps = stamps;
	launch->record = record;
	atomic_store(&launch->is_called, true);
}

void in_flight_is_graph(struct in_flight_launch *launch, const struct counts_place *place, const struct stamps *stamps,
                        uint64_t record)
{
	launch->stamps = stamps;
	launch->record = record;
	launch->is_graph = true;
	launch->place = place;
	launch->nodes_to_end = counts_nodes_to_end(place);
	atomic_store(&launch->is_called, true);
}

void in_flight_is_nothing(struct in_flight_launch *launch)
{
	atomic_store(&launch->is_called, true);
}

static bool has_ended(const struct in_flight_launch *launch)
{
	bool ended = true;

	if (!atomic_load(&launch->is_called))
		ended = false;
	else if (launch->is_graph)
		ended = counts_nodes_have_ended(launch->place, launch->nodes_to_end);
	else if (launch->stamps)
		ended = stamps_has_ended(launch->stamps, launch->record);
	return ended;
}

/* --- looking --------------------------------------------------------------------------------------------------------- */

/* Whoever looks may have been interrupted since `now`: from when an end is seen the GPU's clock is known, so that time must not
 * be before the end. */
static void sort_out(struct in_flight *all, uint64_t now, bool gives_up)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < all->running_count; i++) {
		struct in_flight_launch *launch = all->running[i];

		if (has_ended(launch) || (gives_up && atomic_load(&launch->is_called))) {
			launch->seen = process_clock_ns();
			all->ended[all->ended_count++] = launch;
		} else {
			launch->unseen = now;
			all->running[left++] = launch;
		}
	}
	all->running_count = left;
}

unsigned int in_flight_look(struct in_flight *all, uint64_t now)
{
	sort_out(all, now, false);
	return all->running_count;
}

void in_flight_give_up(struct in_flight *all, uint64_t now)
{
	sort_out(all, now, true);
}

unsigned int in_flight_count(const struct in_flight *all)
{
	return all->running_count;
}

static int by_number(const void *a, const void *b)
{
	const struct in_flight_launch *const *first = a, *const *second = b;

	return ((*first)->number > (*second)->number) - ((*first)->number < (*second)->number);
}

/* More than `room` at once are those that our thread did not look at for long: then their order matters little. */
unsigned int in_flight_take(struct in_flight *all, struct in_flight_launch *taken[], unsigned int room)
{
	unsigned int count = 0, left = 0;

	for (unsigned int i = 0; i < all->ended_count; i++) {
		if (count < room)
			taken[count++] = all->ended[i];
		else
			all->ended[left++] = all->ended[i];
	}
	all->ended_count = left;
	qsort(taken, count, sizeof taken[0], by_number);
	return count;
}
