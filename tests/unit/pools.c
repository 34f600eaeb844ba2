/*
 * Memory of pools and graphs: as much is counted as the pool may need for all allocations in progress, and never less
 * than the driver holds. A pool that is being destroyed is not asked about.
 *
 * link: -Wl,--wrap=futex_wait_until
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

static struct account account, of_other_gpu;

CUdevice account_device(const struct account *asked)
{
	assert_ptr_equal(asked, &account);
	return 0;
}

struct account *account_of_device(CUdevice device)
{
	return device == 3 ? &of_other_gpu : NULL;
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
static bool is_gone; /* the driver must not be asked */
static void (*at_question)(void); /* after the second answer */

static CUresult answer(void *asked, int attribute, void *value)
{
	void (*do_now)(void) = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? at_question : NULL;

	assert_ptr_equal(asked, &pool);
	assert_false(is_gone);
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
	is_gone = false;
	driver.pointer_get_attribute = NULL;
	of_other_gpu.bytes = 0;
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

static void begin_anew(void)
{
	held = in_use = 0;
	pools_set_account(&pool, &account);
}

/* Between the driver's answer and the count, another thread counts more, or has a new pool with the handle. */
TEST_WITH(set_up, NULL, an_old_answer)
{
	assert_true(pools_reserve(&account, &pool, 0));
	at_question = grow_and_count;
	pools_settle(&pool, 0);
	assert_int_equal(account.bytes, 70 * MIB);
	at_question = begin_anew;
	pools_settle(&pool, 0);
	assert_int_equal(account.bytes, 0);
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

/* --- pools that came unseen --------------------------------------------------------------------------------------- */

#define ADDRESS 0x5000

static int number; /* of the GPU of the memory; below 0: the host's */

static CUresult tell_number(void *value, int attribute, CUdeviceptr address)
{
	assert_each(attribute, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, ADDRESS);
	*(int *)value = number;
	return CUDA_SUCCESS;
}

static CUresult device_of_number(CUdevice *device, int asked)
{
	assert_int_equal(asked, 1);
	*device = 3;
	return CUDA_SUCCESS;
}

static void allocate_first(int of_number)
{
	number = of_number;
	driver.pointer_get_attribute = tell_number;
	driver.device_get = device_of_number;
	assert_true(pools_reserve(&account, &pool, 40 * MIB));
	allocate(40 * MIB);
	pools_learn(&pool, ADDRESS);
	pools_settle(&pool, 40 * MIB);
}

/* The current context is of the first GPU. */
TEST_WITH(set_up, NULL, of_another_gpu)
{
	allocate_first(1);
	assert_each(account.bytes, 0, of_other_gpu.bytes, 40 * MIB);
	number = -1; /* The driver is asked once. */
	assert_true(pools_reserve(&account, &pool, 60 * MIB));
	pools_learn(&pool, ADDRESS);
	assert_each(account.bytes, 0, of_other_gpu.bytes, 100 * MIB);
	assert_false(pools_reserve(&account, &pool, 1 * MIB));
}

TEST_WITH(set_up, NULL, of_the_host)
{
	allocate_first(-1);
	assert_each(account.bytes, 0, of_other_gpu.bytes, 0);
}

TEST_WITH(set_up, NULL, of_a_known_gpu)
{
	pools_set_account(&pool, &account);
	allocate_first(1);
	assert_each(account.bytes, 40 * MIB, of_other_gpu.bytes, 0);
}

/* As with a driver without the question. */
TEST_WITH(set_up, NULL, the_driver_does_not_tell)
{
	assert_true(pools_reserve(&account, &pool, 40 * MIB));
	pools_learn(&pool, ADDRESS);
	assert_int_equal(account.bytes, 40 * MIB);
}

/* --- destroyed pools ---------------------------------------------------------------------------------------------- */

/* The driver is about to destroy the pool. */
static uint64_t take(void)
{
	uint64_t bytes;

	assert_ptr_equal(pools_take(&pool, &bytes), &account);
	is_gone = true;
	return bytes;
}

TEST_WITH(set_up, NULL, destroyed)
{
	assert_true(pools_reserve(&account, &pool, 60 * MIB));
	allocate(60 * MIB);
	pools_settle(&pool, 60 * MIB);
	assert_int_equal(take(), 60 * MIB);
	pools_synchronized();
	pools_settle_all(&account, true);
	assert_int_equal(account.bytes, 60 * MIB); /* until the call has succeeded */
	account.bytes = 0;
	/* The call has not returned yet, and a second thread has a new pool with the same handle. */
	held = in_use = 0;
	is_gone = false;
	pools_set_account(&pool, &account);
	assert_true(pools_reserve(&account, &pool, 60 * MIB));
	assert_int_equal(account.bytes, 60 * MIB);
	assert_false(pools_reserve(&account, &pool, 60 * MIB));
}

/* As of a GPU's default pool, while threads allocate. */
TEST_WITH(set_up, NULL, the_driver_refuses_to_destroy)
{
	assert_true(pools_reserve(&account, &pool, 40 * MIB));
	uint64_t bytes = take();

	assert_int_equal(bytes, 40 * MIB);
	assert_true(pools_reserve(&account, &pool, 20 * MIB));
	allocate(40 * MIB);
	pools_settle(&pool, 40 * MIB);
	is_gone = false;
	pools_put_back(&pool, &account, bytes);
	allocate(20 * MIB);
	pools_settle(&pool, 20 * MIB);
	assert_int_equal(account.bytes, 60 * MIB);
	assert_false(pools_reserve(&account, &pool, 41 * MIB));
	assert_true(pools_reserve(&account, &pool, 40 * MIB));
}

TEST_WITH(set_up, NULL, nothing_is_known_of_the_destroyed_pool)
{
	uint64_t bytes;

	assert_null(pools_take(&pool, &bytes));
	assert_int_equal(bytes, 0);
}

static atomic_bool waits, is_taken;
static pthread_t destroyer;

void __real_futex_wait_until(_Atomic uint32_t *word, uint32_t value, uint64_t until_ns);

/* A destroyer that nobody wakes waits for an hour. */
WRAP(void, futex_wait_until, _Atomic uint32_t *word, uint32_t value, uint64_t until_ns)
{
	atomic_store(&waits, true);
	__real_futex_wait_until(word, value, until_ns + UINT64_C(3600000000000));
}

static void *destroy(void *data)
{
	uint64_t bytes;

	pools_take(&pool, &bytes);
	atomic_store(&is_taken, true);
	return data;
}

/* Until the destroyer waits for the question. */
static void let_destroy(void)
{
	destroyer = thread_start(destroy, NULL);
	while (!atomic_load(&waits) && !atomic_load(&is_taken))
		sched_yield();
	assert_false(atomic_load(&is_taken));
}

static CUresult trim_while_destroyed(void *asked, size_t kept)
{
	let_destroy();
	return CUDA_SUCCESS;
}

/* A synchronisation, and a trimming. */
TEST_WITH(set_up, NULL, a_destruction_waits_for_questions)
{
	for (int trims = 0; trims < 2; trims++) {
		ROW("%s", trims ? "trims" : "asks");
		pools_set_account(&pool, &account);
		waits = is_taken = false;
		at_question = trims ? NULL : let_destroy;
		driver.pool_trim = trims ? trim_while_destroyed : NULL;
		pools_settle_all(&account, trims);
		assert_int_equal(pthread_join(destroyer, NULL), 0);
		assert_true(atomic_load(&is_taken));
		assert_int_equal(account.bytes, 0);
	}
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
