#include "parts.h"

#include "base/purse.h"

#include <stdlib.h>
#include <string.h>

bool look_functions_add(struct look *look, const char *name)
{
	if (!look_take_memory(look, sizeof look->functions[0] + (name ? strlen(name) : 0)))
		return false;
	if (look->function_count == look->function_room) {
		unsigned int room = look->function_room ? 2 * look->function_room : 16;
		struct look_function *functions = realloc(look->functions, room * sizeof *functions);

		if (!functions)
			return false;
		look->functions = functions;
		look->function_room = room;
	}
	char *copy = name ? strdup(name) : NULL;

	if (name && !copy)
		return false;
	memset(&look->functions[look->function_count], 0, sizeof look->functions[0]);
	look->functions[look->function_count++].name = copy;
	return true;
}

/* Who chooses the names does not know the key. */
static size_t hash_of(const struct look *look, const char *name)
{
	uint64_t hash = (uintptr_t)look ^ look->began * UINT64_C(0x9e3779b97f4a7c15);

	for (; *name; name++) {
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
	}
	return (size_t)hash % (sizeof look->places / sizeof *look->places);
}

/* The table is half full at most. */
static unsigned int index_of(struct look *look, const char *name)
{
	const size_t room = sizeof look->places / sizeof *look->places, size = strlen(name) + 1;
	size_t at = hash_of(look, name);

	while (look->places[at] != 0 && strcmp(look->functions[look->places[at]].name, name) != 0)
		at = (at + 1) % room;
	if (look->places[at] == 0 && look->function_count < LOOK_FUNCTIONS_MOST && look->text + size <= LOOK_TEXT_MOST &&
	    look_functions_add(look, name)) {
		look->places[at] = (uint16_t)(look->function_count - 1);
		look->text += size;
	}
	return look->places[at];
}

/* Where a function stands in the ring's table, or would stand. It is never full. */
static struct watched_name *locate(struct watched_ring *ring, uint64_t function)
{
	size_t at = (size_t)(function * UINT64_C(0x9e3779b97f4a7c15) >> 32) % LOOK_NAMES;

	while (ring->names[at].function != 0 && ring->names[at].function != function)
		at = (at + 1) % LOOK_NAMES;
	return &ring->names[at];
}

void look_functions_read(struct look *look, struct watched_ring *ring)
{
	unsigned int count = timestamps_names_count(ring->reader.ring);
	char text[TIMESTAMPS_NAME_MAX + 1];
	uint64_t function;

	for (; ring->names_read < count && purse_pay_bytes(sizeof text); ring->names_read++) {
		if (timestamps_read_name(ring->reader.ring, ring->names_read, &function, text) && function != 0)
			*locate(ring, function) = (struct watched_name){.function = function, .index = index_of(look, text)};
	}
}

struct look_function *look_functions_find(struct look *look, struct watched_ring *ring, uint64_t function)
{
	return &look->functions[function != 0 ? locate(ring, function)->index : 0];
}
