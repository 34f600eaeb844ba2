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

/* The call succeeds, and so many bytes are given back at the end. */
static void assert_end(struct mapped_ending *ending, const struct account *account, int64_t bytes)
{
	int64_t before = account->bytes;

	mapped_ended(ending, true);
	assert_int_equal(before - account->bytes, bytes);
}

static void assert_nothing_ends(struct mapped_ending *ending)
{
	bool is_nothing = !ending;

	mapped_ended(ending, true);
	assert_true(is_nothing);
}

TEST_WITH(set_up, NULL, imports)
{
	mapped_map(at(1), at(0x1000), 0x100);
	mapped_retain(at(1), at(0x1000));
	assert_nothing_ends(mapped_unmap(at(0x1000), 0x100));
	assert_nothing_ends(mapped_release(at(1)));
}

/* The memory of a mapping and of nothing else. */
static void map(uintptr_t handle, struct account *account, uint64_t bytes, uintptr_t address)
{
	mapped_create(at(handle), account, bytes);
	mapped_map(at(handle), at(address), 0x1000);
	assert_end(mapped_release(at(handle)), account, 0);
}

/* A call can unmap several mappings side by side. */
TEST_WITH(set_up, NULL, side_by_side)
{
	for (uintptr_t i = 1; i <= 3; i++)
		map(i, &first, 10, 0x1000 * i);
	assert_end(mapped_unmap(at(0x1000), 0x2000), &first, 20);
	assert_nothing_ends(mapped_unmap(at(0x1000), 0x2000));
	assert_end(mapped_unmap(at(0x3000), 0x1000), &first, 10);
}

/* As memory of the host, and imports: before, between and behind. */
TEST_WITH(set_up, NULL, beside_memory_that_is_not_counted)
{
	map(1, &first, 10, 0x2000);
	map(2, &first, 20, 0x4000);
	map(3, &first, 40, 0x6000);
	assert_end(mapped_unmap(at(0x1000), 0x5000), &first, 30);
	assert_end(mapped_unmap(at(0x6000), 0x1000), &first, 40);
}

/* The driver refuses. */
TEST_WITH(set_up, NULL, a_part_of_a_mapping)
{
	map(1, &first, 10, 0x2000);
	assert_nothing_ends(mapped_unmap(at(0x2000), 0x800));
	assert_nothing_ends(mapped_unmap(at(0x2800), 0x800));
	assert_nothing_ends(mapped_unmap(at(0x1000), 0x1800));
	assert_end(mapped_unmap(at(0x2000), 0x1000), &first, 10);
}

TEST_WITH(set_up, NULL, of_two_gpus)
{
	map(1, &first, 10, 0x1000);
	map(2, &second, 20, 0x2000);
	assert_end(mapped_unmap(at(0x1000), 0x2000), &first, 10);
	assert_int_equal(second.bytes, -20);
}

/* Two mappings of a piece, and a handle that comes again. */
TEST_WITH(set_up, NULL, two_mappings)
{
	map(1, &first, 10, 0x1000);
	mapped_retain(at(1), at(0x1000));
	mapped_map(at(1), at(0x5000), 0x1000);
	assert_end(mapped_unmap(at(0x1000), 0x1000), &first, 0);
	assert_end(mapped_release(at(1)), &first, 0);
	mapped_create(at(1), &first, 30);
	assert_end(mapped_unmap(at(0x5000), 0x1000), &first, 10);
	assert_end(mapped_release(at(1)), &first, 30);
}

/* The memory stays counted, and ends with the next call. */
TEST_WITH(set_up, NULL, refused_calls)
{
	mapped_create(at(1), &first, 10);
	mapped_ended(mapped_release(at(1)), false);
	mapped_map(at(1), at(0x1000), 0x1000);
	assert_end(mapped_release(at(1)), &first, 0);
	mapped_ended(mapped_unmap(at(0x1000), 0x1000), false);
	assert_int_equal(first.bytes, 0);
	assert_end(mapped_unmap(at(0x1000), 0x1000), &first, 10);
}

/* The driver has ended the mapping and the handle, and the call has not returned yet. */
TEST_WITH(set_up, NULL, another_thread_gets_address_and_handle)
{
	map(1, &first, 10, 0x1000);
	struct mapped_ending *unmapped = mapped_unmap(at(0x1000), 0x1000);

	mapped_create(at(1), &first, 20);
	mapped_map(at(1), at(0x1000), 0x1000);
	assert_end(unmapped, &first, 10);
	assert_end(mapped_unmap(at(0x1000), 0x1000), &first, 0);
	struct mapped_ending *released = mapped_release(at(1));

	mapped_create(at(1), &first, 40);
	assert_end(released, &first, 20);
	assert_end(mapped_release(at(1)), &first, 40);
}

/* The library has not seen the end. */
TEST_WITH(set_up, NULL, ended_unseen)
{
	map(1, &first, 10, 0x1000);
	map(2, &first, 20, 0x1000);
	assert_int_equal(first.bytes, -10);
	assert_end(mapped_unmap(at(0x1000), 0x1000), &first, 20);
	mapped_create(at(1), &first, 40);
	mapped_create(at(1), &first, 80);
	assert_int_equal(first.bytes, -70);
	assert_end(mapped_release(at(1)), &first, 80);
}

RUN_TESTS(NULL, NULL)
