#include "parts.h"

#include "base/purse.h"

#include <stdlib.h>
#include <string.h>

bool monitor_functions_add(struct monitor *monitor, const char *name)
{
	if (!monitor_reserve_memory(monitor, sizeof monitor->functions[0] + (name ? strlen(name) : 0)))
		return false;
	if (monitor->function_count == monitor->function_room) {
		unsigned int room = monitor->function_room ? 2 * monitor->function_room : 16;
		struct monitor_function *functions = realloc(monitor->functions, room * sizeof *functions);

		if (!functions)
			return false;
		monitor->functions = functions;
		monitor->function_room = room;
	}
	char *copy = name ? strdup(name) : NULL;

	if (name && !copy)
		return false;
	memset(&monitor->functions[monitor->function_count], 0, sizeof monitor->functions[0]);
	monitor->functions[monitor->function_count++].name = copy;
	return true;
}

/* The author of the names does not know the key. */
static size_t hash_of(const struct monitor *monitor, const char *name)
{
	uint64_t hash = (uintptr_t)monitor ^ monitor->began * UINT64_C(0x9e3779b97f4a7c15);

	for (; *name; name++) {
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
	}
	return (size_t)hash % (sizeof monitor->places / sizeof *monitor->places);
}

/* The table is half full at most. */
static unsigned int index_of(struct monitor *monitor, const char *name)
{
	const size_t room = sizeof monitor->places / sizeof *monitor->places, size = strlen(name) + 1;
	size_t at = hash_of(monitor, name);

	while (monitor->places[at] != 0 && strcmp(monitor->functions[monitor->places[at]].name, name) != 0)
		at = (at + 1) % room;
	if (monitor->places[at] == 0 && monitor->function_count < MONITOR_FUNCTIONS_MOST &&
	    monitor->text + size <= MONITOR_TEXT_MOST && monitor_functions_add(monitor, name)) {
		monitor->places[at] = (uint16_t)(monitor->function_count - 1);
		monitor->text += size;
	}
	return monitor->places[at];
}

/* The place of a function in the ring's table, which is never full. */
static struct watched_name *locate(struct watched_ring *ring, uint64_t function)
{
	size_t at = (size_t)(function * UINT64_C(0x9e3779b97f4a7c15) >> 32) % MONITOR_NAMES;

	while (ring->names[at].function != 0 && ring->names[at].function != function)
		at = (at + 1) % MONITOR_NAMES;
	return &ring->names[at];
}

void monitor_functions_read(struct monitor *monitor, struct watched_ring *ring)
{
	unsigned int count = timestamps_names_count(ring->reader.ring);
	char text[TIMESTAMPS_NAME_MAX + 1];
	uint64_t function;

	for (; ring->names_read < count && purse_pay_bytes(monitor->editor.segment.purse, sizeof text);
	     ring->names_read++) {
		if (timestamps_read_name(ring->reader.ring, ring->names_read, &function, text) && function != 0)
			*locate(ring, function) =
			    (struct watched_name){.function = function, .index = index_of(monitor, text)};
	}
}

unsigned int monitor_functions_number(struct watched_ring *ring, uint64_t function)
{
	return function != 0 ? locate(ring, function)->index : 0;
}

struct monitor_function *monitor_functions_find(struct monitor *monitor, struct watched_ring *ring, uint64_t function)
{
	return &monitor->functions[monitor_functions_number(ring, function)];
}
