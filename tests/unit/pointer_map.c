/* Structs by a pointer. */
#include "../cases.h"
#include "base/pointer_map.h"

struct known {
	const void *pointer;
	uint64_t value;
};

/* Descriptors of one graph: at the same distance from each other. */
static const void *pointer(uintptr_t number)
{
	return (const void *)(UINT64_C(0x7f0000000000) + (number << 10));
}

#define MANY 5000

TEST(finds_what_was_added)
{
	struct pointer_map map = {.count = 0};

	for (uintptr_t i = 0; i < MANY; i++) {
		assert_null(pointer_map_find(&map, sizeof(struct known), pointer(i)));
		struct known *new = pointer_map_add(&map, sizeof *new, pointer(i));

		assert_non_null(new);
		assert_ptr_equal(new->pointer, pointer(i));
		assert_int_equal(new->value, 0);
		new->value = i + 1;
	}
	assert_int_equal(map.count, MANY);
	for (uintptr_t i = 0; i < MANY; i++) {
		const struct known *found = pointer_map_find(&map, sizeof *found, pointer(i));

		assert_non_null(found);
		assert_ptr_equal(found->pointer, pointer(i));
		assert_int_equal(found->value, i + 1);
	}
	assert_null(pointer_map_find(&map, sizeof(struct known), pointer(MANY)));
	pointer_map_clear(&map);
}

RUN_TESTS(NULL, NULL)
