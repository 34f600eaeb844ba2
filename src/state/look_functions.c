#include "look_parts.h"

#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MAX 4096

/* Index 0 is that of all functions without a name. False if there is no memory. */
bool look_functions_add(struct look *look, const char *name)
{
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

static unsigned int index_of(struct look *look, const char *name)
{
	unsigned int index = 1;

	while (index < look->function_count && strcmp(look->functions[index].name, name) != 0)
		index++;
	if (index == look->function_count && (index >= FUNCTIONS_MAX || !look_functions_add(look, name)))
		index = 0;
	return index;
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
	unsigned int count = stamps_names_count(ring->reader.ring);
	char text[STAMPS_NAME_MAX + 1];
	uint64_t function;

	for (; ring->names_read < count; ring->names_read++) {
		if (stamps_read_name(ring->reader.ring, ring->names_read, &function, text) && function != 0)
			*locate(ring, function) = (struct watched_name){.function = function, .index = index_of(look, text)};
	}
}

struct look_function *look_functions_find(struct look *look, struct watched_ring *ring, uint64_t function)
{
	return &look->functions[function != 0 ? locate(ring, function)->index : 0];
}

struct look_function *look_functions_find_anywhere(struct look *look, uint64_t function)
{
	struct look_function *found = &look->functions[0];

	for (unsigned int i = 0; i < COUNTS_AREAS * COUNTS_PLACES && found == &look->functions[0]; i++) {
		struct watched_ring *ring = look->areas[i / COUNTS_PLACES].rings[i % COUNTS_PLACES];

		found = ring ? look_functions_find(look, ring, function) : found;
	}
	return found;
}
