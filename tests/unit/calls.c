/* Which calls are for managed memory: those keep a program from being put aside (shim/presence.h). */
#include "driver/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

enum {
	PINNED = 1,
	MANAGED = 2
};

/* The third argument is an int, or the second points to properties that begin with one. */
static bool uses(int id, int third, const int *properties)
{
	const int *arguments[3] = {NULL, properties, NULL};

	memcpy(&arguments[2], &third, sizeof third);
	return calls_use_managed_memory(&(struct call){.id = id, .arguments = (void **)arguments});
}

static void test_pools(void **state)
{
	const int pinned = PINNED, managed = MANAGED;
	const int ids[] = {CALL_GET_DEFAULT_POOL, CALL_GET_POOL, CALL_SET_POOL};

	(void)state;
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
		assert_true(calls_may_use_managed_memory(ids[i]));
		assert_true(uses(ids[i], MANAGED, NULL));
		assert_false(uses(ids[i], PINNED, &managed));
	}
	assert_true(calls_may_use_managed_memory(CALL_POOL_CREATE));
	assert_true(uses(CALL_POOL_CREATE, 0, &managed));
	assert_false(uses(CALL_POOL_CREATE, MANAGED, &pinned));
	assert_false(uses(CALL_POOL_CREATE, MANAGED, NULL));
}

static void test_memory(void **state)
{
	const int ids[] = {CALL_ALLOC_MANAGED, CALL_ATTACH_MEMORY, CALL_ADVISE, CALL_ADVISE_2, CALL_PREFETCH, CALL_PREFETCH_2,
	                   CALL_PREFETCH_BATCH, CALL_DISCARD_BATCH, CALL_DISCARD_AND_PREFETCH_PER_THREAD};

	(void)state;
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_true(uses(ids[i], PINNED, NULL));
	assert_false(uses(CALL_LAUNCH, MANAGED, NULL));
	assert_false(uses(CALL_EXPORT_POOL, MANAGED, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
