#include "room.h"

#include "select/set.h"

#include <stdio.h>

int room_choose(const struct room *room, unsigned int tpcs, struct segment_revision *wanted, struct error *error)
{
	struct options options = *room->options;
	const struct set_limits limits = {.except = &room->pids, .taken = &room->taken};
	char count[16];

	snprintf(count, sizeof count, "%u", tpcs);
	options.notation = NOTATION_COUNT;
	options.set = count;
	options.dry_run = true;
	return set_find(wanted, &options, &room->chosen, room->list, &limits, error);
}

unsigned int room_count(const struct room *room, struct error *error)
{
	struct segment_revision unused;
	unsigned int count = room->chosen.choices[0].gpu->tpc_count;

	while (count > 0 && room_choose(room, count, &unused, error) < 0)
		count--;
	return count;
}
