#include "pointer_map.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const void **key_at(const struct pointer_map *map, size_t size, size_t place)
{
	return (const void **)((char *)map->structs + place * size);
}

/* The place of the pointer, or the free place for the pointer. */
static const void **locate(const struct pointer_map *map, size_t size, const void *pointer)
{
	size_t place = (size_t)((uint64_t)(uintptr_t)pointer * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->room - 1);

	while (*key_at(map, size, place) && *key_at(map, size, place) != pointer)
		place = (place + 1) & (map->room - 1);
	return key_at(map, size, place);
}

void *pointer_map_find(const struct pointer_map *map, size_t size, const void *pointer)
{
	const void **found = map->room > 0 ? locate(map, size, pointer) : NULL;

	return found && *found ? found : NULL;
}

static bool grow(struct pointer_map *map, size_t size)
{
	struct pointer_map larger = {
		.count = map->count, .room = map->room ? 2 * map->room : 16, .former = map->former};

	larger.structs = calloc(larger.room, size);
	if (!larger.structs)
		return false;
	for (size_t i = 0; i < map->room; i++) {
		if (*key_at(map, size, i))
			memcpy(locate(&larger, size, *key_at(map, size, i)), key_at(map, size, i), size);
	}
	free(map->structs);
	*map = larger;
	return true;
}

/* At most half of the map is used. */
void *pointer_map_add(struct pointer_map *map, size_t size, const void *pointer)
{
	const void **new;

	if (2 * (map->count + 1) > map->room && !grow(map, size))
		return NULL;
	new = locate(map, size, pointer);
	*new = pointer;
	map->count++;
	return new;
}

void *pointer_map_have(struct pointer_map *map, size_t size, const void *pointer)
{
	void *there = pointer_map_find(map, size, pointer);

	return there || !pointer ? there : pointer_map_add(map, size, pointer);
}

void pointer_map_clear(struct pointer_map *map)
{
	free(map->structs);
	*map = (struct pointer_map){.former = map->former};
}

void pointer_map_forget(struct pointer_map *map)
{
	*map = (struct pointer_map){.former = map->structs ? map->structs : map->former};
}
