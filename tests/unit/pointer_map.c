/* Structs by a pointer. */
#include "base/pointer_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>

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

static void finds_what_was_added(void **state)
{
	struct pointer_map map = {.count = 0};

	(void)state;
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

static void is_empty_after_clearing(void **state)
{
	struct pointer_map map = {.count = 0};

	(void)state;
	pointer_map_clear(&map);
	for (int i = 0; i < 2; i++) {
		assert_non_null(pointer_map_add(&map, sizeof(struct known), pointer(1)));
		assert_int_equal(map.count, 1);
		pointer_map_clear(&map);
		assert_int_equal(map.count, 0);
		assert_null(pointer_map_find(&map, sizeof(struct known), pointer(1)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_added),
		cmocka_unit_test(is_empty_after_clearing),
	};

	return cmocka_run_group_tests_name("pointer_map", tests, NULL, NULL);
}
