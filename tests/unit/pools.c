/*
 * Memory of pools and graphs: as much is counted as the pool may need for all allocations in progress, and never less
 * than the driver holds.
 *
 * processes: no
 */
#include "../cases.h"
#include "../../src/memory/pools.c"

#define MIB UINT64_C(1048576)
#define LIMIT (100 * MIB)

/* An account with a limit. */
struct account {
	uint64_t bytes;
};

static struct account account;

CUdevice account_device(const struct account *asked)
{
	assert_ptr_equal(asked, &account);
	return 0;
}

bool account_reserve(struct account *of, uint64_t bytes)
{
	bool fits = of->bytes + bytes <= LIMIT;

	of->bytes += fits ? bytes : 0;
	return fits;
}

void account_change(struct account *of, int64_t bytes)
{
	of->bytes += (uint64_t)bytes;
}

/* What the driver says of the only pool. */
static uint64_t held, in_use;
static int pool;
static void (*at_question)(void); /* after the second answer */

static CUresult answer(void *asked, int attribute, void *value)
{
	void (*do_now)(void) = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? at_question : NULL;

	assert_ptr_equal(asked, &pool);
	*(uint64_t *)value = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? held : in_use;
	if (do_now) {
		at_question = NULL;
		do_now();
	}
	return CUDA_SUCCESS;
}

FIXTURE(set_up)
{
	driver.pool_get_attribute = answer;
	pointer_map_clear(&pools);
	pools_after_fork();
	account.bytes = held = in_use = 0;
	at_question = NULL;
}

/* As the driver does, of a pool without holes. */
static void allocate(uint64_t bytes)
{
	in_use += bytes;
	held = in_use > held ? in_use : held;
}

TEST_WITH(set_up, NULL, one_after_the_other)
{
	assert_true(pools_reserve(&account, &pool, 60 * MIB));
	assert_int_equal(account.bytes, 60 * MIB);
	allocate(60 * MIB);
	pools_settle(&pool, 60 * MIB);
	assert_int_equal(account.bytes, 60 * MIB);
	assert_false(pools_reserve(&account, &pool, 50 * MIB));
	assert_int_equal(account.bytes, 60 * MIB);
	in_use = 10 * MIB; /* The pool holds the rest for the next allocation. */
	assert_true(pools_reserve(&account, &pool, 50 * MIB));
	assert_int_equal(account.bytes, 60 * MIB);
	allocate(50 * MIB);
	pools_settle(&pool, 50 * MIB);
	in_use = held = 0;
	pools_settle(&pool, 0);
	assert_int_equal(account.bytes, 0);
}

/* Both find the same unused memory. Whichever ends first, the account has what the other still needs. */
TEST_WITH(set_up, NULL, two_at_once)
{
	held = 50 * MIB;
	assert_true(pools_reserve(&account, &pool, 40 * MIB));
	assert_int_equal(account.bytes, 50 * MIB);
	assert_true(pools_reserve(&account, &pool, 40 * MIB));
	assert_int_equal(account.bytes, 80 * MIB);
	assert_false(pools_reserve(&account, &pool, 40 * MIB));
	allocate(40 * MIB);
	pools_settle(&pool, 40 * MIB);
	assert_int_equal(account.bytes, 80 * MIB);
	allocate(40 * MIB);
	pools_settle(&pool, 40 * MIB);
	assert_int_equal(account.bytes, 80 * MIB);
}

/* The driver refuses one of both. */
TEST_WITH(set_up, NULL, one_of_two_fails)
{
	assert_true(pools_reserve(&account, &pool, 40 * MIB));
	assert_true(pools_reserve(&account, &pool, 40 * MIB));
	pools_settle(&pool, 40 * MIB);
	assert_int_equal(account.bytes, 40 * MIB);
	pools_settle(&pool, 40 * MIB);
	assert_int_equal(account.bytes, 0);
}

static void grow_and_count(void)
{
	held = in_use = 70 * MIB;
	pools_settle(&pool, 0);
}

/* Between the driver's answer and the count, another thread counts more. */
TEST_WITH(set_up, NULL, an_old_answer)
{
	assert_true(pools_reserve(&account, &pool, 0));
	at_question = grow_and_count;
	pools_settle(&pool, 0);
	assert_int_equal(account.bytes, 70 * MIB);
}

/* Pools of the host's memory are not counted; a handle can come again. */
TEST_WITH(set_up, NULL, of_no_gpu)
{
	pools_set_account(&pool, NULL);
	assert_true(pools_reserve(&account, &pool, 1000 * MIB));
	allocate(1000 * MIB);
	pools_settle(&pool, 1000 * MIB);
	assert_int_equal(account.bytes, 0);
	pools_set_account(&pool, NULL);
	held = in_use = 0;
	pools_set_account(&pool, &account);
	assert_false(pools_reserve(&account, &pool, 1000 * MIB));
	assert_true(pools_reserve(&account, &pool, 30 * MIB));
	pools_set_account(&pool, NULL);
	assert_int_equal(account.bytes, 0);
}

/* All of many pools count. */
TEST_WITH(set_up, NULL, many)
{
	static char keys[1000];

	for (size_t i = 0; i < COUNT_OF(keys); i++)
		pools_set_account(&keys[i], &account);
	assert_true(pools_reserve(&account, &pool, 60 * MIB));
	assert_false(pools_reserve(&account, &pool, 60 * MIB));
}

RUN_TESTS(NULL, NULL)
