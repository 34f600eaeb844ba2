/*
 * Memory made by cuMemCreate: counted until the last handle and the last mapping are gone, and never counted as an
 * import.
 *
 * processes: no
 */
#include "../cases.h"

#include "../../src/memory/mapped.c"

struct account {
	int64_t bytes;
};

static struct account first, second;

void account_change(struct account *account, int64_t bytes)
{
	account->bytes += bytes;
}

static const void *at(uintptr_t number)
{
	return (const void *)number;
}

FIXTURE(set_up)
{
	pointer_map_clear(&handles);
	pointer_map_clear(&mappings);
	mapped_after_fork();
	first.bytes = second.bytes = 0;
}

static void assert_end(struct mapped_end end, const struct account *account, uint64_t bytes)
{
	assert_ptr_equal(end.account, account);
	assert_int_equal(end.bytes, bytes);
}

TEST_WITH(set_up, NULL, imports)
{
	mapped_map(at(1), at(0x1000), 0x100);
	mapped_retain(at(1), at(0x1000));
	assert_end(mapped_unmap(at(0x1000), 0x100), NULL, 0);
	assert_end(mapped_release(at(1)), NULL, 0);
}

/* A call can unmap several mappings side by side. */
TEST_WITH(set_up, NULL, side_by_side)
{
	for (uintptr_t i = 1; i <= 3; i++) {
		mapped_create(at(i), &first, 10);
		mapped_map(at(i), at(0x1000 * i), 0x1000);
		assert_end(mapped_release(at(i)), NULL, 0);
	}
	assert_end(mapped_unmap(at(0x1000), 0x2000), &first, 20);
	assert_end(mapped_unmap(at(0x1000), 0x2000), NULL, 0);
	assert_end(mapped_unmap(at(0x3000), 0x1000), &first, 10);
}

/* Only the bytes of one GPU can wait for the end of a call. */
TEST_WITH(set_up, NULL, of_two_gpus)
{
	mapped_create(at(1), &first, 10);
	mapped_create(at(2), &second, 20);
	second.bytes = 20;
	for (uintptr_t i = 1; i <= 2; i++) {
		mapped_map(at(i), at(0x1000 * i), 0x1000);
		mapped_release(at(i));
	}
	assert_end(mapped_unmap(at(0x1000), 0x2000), &first, 10);
	assert_int_equal(second.bytes, 0);
}

/* Two mappings of a piece, and a handle that comes again. */
TEST_WITH(set_up, NULL, two_mappings)
{
	mapped_create(at(1), &first, 10);
	mapped_map(at(1), at(0x1000), 0x1000);
	mapped_map(at(1), at(0x5000), 0x1000);
	assert_end(mapped_unmap(at(0x1000), 0x1000), NULL, 0);
	assert_end(mapped_release(at(1)), NULL, 0);
	mapped_create(at(1), &first, 30);
	assert_end(mapped_unmap(at(0x5000), 0x1000), &first, 10);
	assert_end(mapped_release(at(1)), &first, 30);
}

RUN_TESTS(NULL, NULL)
