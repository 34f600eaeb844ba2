#include "kinds.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "base/futex.h"
#include "base/pointer_map.h"
#include "driver/functions.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#define PIECE (UINT64_C(2) << 20) /* the size of the GPU's pages */
#define WAIT_MOST_NS UINT64_C(10000000000)

/* A pool; or a GPU's pool for graphs, whose key is the account. */
struct pool {
	const void *key;
	struct account *account; /* NULL: the memory is no GPU's, or the pool is gone or going */
	uint64_t bytes;          /* counted */
	uint64_t asked;          /* by allocations in progress */
	uint64_t number;         /* raised by each change */
	bool is_guessed;         /* the account is the first allocating context's: the pool came unseen */
	unsigned int askers;     /* threads with a question about the pool; none begins without an account */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_map pools;
static atomic_bool exist; /* some that are no graphs' */

/* The number of ended questions, and of threads waiting for an end. */
static _Atomic uint32_t answers;
static atomic_uint waiting;

static uint64_t in_pieces(uint64_t bytes)
{
	return (bytes + PIECE - 1) / PIECE * PIECE;
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

/* A copy of the pool; of an unknown key: without an account. With an account, the thread may ask the driver
 * about the pool until end_question. */
static struct pool begin_question(const void *key)
{
	pthread_mutex_lock(&lock);
	struct pool *there = pointer_map_find(&pools, sizeof *there, key);

	if (there && there->account)
		there->askers++;
	struct pool copy = there ? *there : (struct pool){.key = key};

	pthread_mutex_unlock(&lock);
	return copy;
}

static void end_question(const struct pool *copy)
{
	if (!copy->account)
		return;
	pthread_mutex_lock(&lock);
	struct pool *there = pointer_map_find(&pools, sizeof *there, copy->key);

	if (there)
		there->askers--;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&answers, 1);
	if (atomic_load(&waiting) > 0)
		futex_wake(&answers, INT_MAX);
}

static bool is_asked_about(const void *key)
{
	pthread_mutex_lock(&lock);
	const struct pool *there = pointer_map_find(&pools, sizeof *there, key);
	bool is_asked = there && there->askers > 0;

	pthread_mutex_unlock(&lock);
	return is_asked;
}

/* Not for ever: a thread may have left the question by a jump, or was cancelled there. */
static void await_answers(const void *key)
{
	uint64_t until = process_clock_ns() + WAIT_MOST_NS;
	uint32_t seen;

	atomic_fetch_add(&waiting, 1);
	for (seen = atomic_load(&answers); is_asked_about(key) && process_clock_ns() < until;
	     seen = atomic_load(&answers))
		futex_wait_until(&answers, seen, until);
	atomic_fetch_sub(&waiting, 1);
}

/* --- the driver's word -------------------------------------------------------------------------------------------- */

static bool is_of_graphs(const struct pool *pool)
{
	return pool->key == pool->account;
}

/* An attribute of the pool, whose number differs for a pool for graphs. 0 if the driver does not tell. */
static uint64_t ask_driver(const struct pool *pool, int of_pool, int of_graphs)
{
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;
	uint64_t bytes = 0;

	if (is_of_graphs(pool) && driver.graph_memory_get_attribute)
		result = driver.graph_memory_get_attribute(account_device(pool->account), of_graphs, &bytes);
	else if (!is_of_graphs(pool) && driver.pool_get_attribute)
		result = driver.pool_get_attribute((void *)(uintptr_t)pool->key, of_pool, &bytes);
	return result == CUDA_SUCCESS ? bytes : 0;
}

static uint64_t used(const struct pool *pool)
{
	return ask_driver(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
}

static void trim(const struct pool *pool)
{
	if (is_of_graphs(pool) && driver.graph_memory_trim)
		driver.graph_memory_trim(account_device(pool->account));
	else if (!is_of_graphs(pool) && driver.pool_trim)
		driver.pool_trim((void *)(uintptr_t)pool->key, 0);
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

enum outcome { DONE, REFUSED, OUTDATED };

static enum outcome count(const struct pool *pool, uint64_t bytes, bool obeys)
{
	enum outcome outcome = DONE;

	if (pool->account && obeys && bytes > pool->bytes)
		outcome = account_reserve(pool->account, bytes - pool->bytes) ? DONE : REFUSED;
	else if (pool->account)
		account_change(pool->account, (int64_t)(bytes - pool->bytes));
	return outcome;
}

static enum outcome replace(const struct pool *before, uint64_t bytes, uint64_t asked, bool obeys)
{
	enum outcome outcome = OUTDATED;

	pthread_mutex_lock(&lock);
	struct pool *there = pointer_map_find(&pools, sizeof *there, before->key);

	if (!there || there->number == before->number)
		outcome = there ? count(there, bytes, obeys) : DONE;
	if (there && outcome == DONE) {
		there->bytes = bytes;
		there->asked = asked;
		there->number++;
	}
	pthread_mutex_unlock(&lock);
	return outcome;
}

/* What the pool has once the driver has given the asked bytes, at most. */
static uint64_t bytes_with(const struct pool *pool, uint64_t asked)
{
	uint64_t now = ask_driver(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);

	return max_u64(now, in_pieces(used(pool) + asked));
}

/* Counts what the pool has once all allocations in progress have ended, at most: so each allocation has room, in any
 * order. If a second thread has counted meanwhile, the driver's answers may be outdated. */
static bool change(const void *key, uint64_t asked_more, bool obeys)
{
	enum outcome outcome = OUTDATED;

	while (outcome == OUTDATED) {
		struct pool pool = begin_question(key);
		uint64_t asked = pool.asked + asked_more;
		uint64_t bytes = pool.account ? bytes_with(&pool, asked) : 0;

		end_question(&pool);
		outcome = replace(&pool, bytes, asked, obeys);
	}
	return outcome != REFUSED;
}

static struct pool *find_or_add(const void *key, struct account *account)
{
	struct pool *there = pointer_map_find(&pools, sizeof *there, key);
	bool is_new = !there && key;

	if (is_new)
		there = pointer_map_add(&pools, sizeof *there, key);
	if (is_new && there) {
		there->account = account;
		there->is_guessed = !is_of_graphs(there);
	}
	if (there && !is_of_graphs(there))
		atomic_store_explicit(&exist, true, memory_order_relaxed);
	return there;
}

bool pools_reserve(struct account *account, const void *pool, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	find_or_add(pool, account);
	pthread_mutex_unlock(&lock);
	return change(pool, bytes, true);
}

void pools_settle(const void *pool, uint64_t bytes)
{
	change(pool, -bytes, false);
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

void *pools_current(const struct account *account)
{
	void *pool = NULL;

	if (driver.memory_get_pool && driver.memory_get_pool(&pool, account_device(account)) != CUDA_SUCCESS)
		pool = NULL;
	return pool;
}

/* An instance has the same memory in each launch. In the first launch, the instance gets memory not yet in use. */
uint64_t pools_asked_by_graph(struct account *account, uint64_t bytes, bool was_launched)
{
	uint64_t in_use = was_launched ? used(&(struct pool){.key = account, .account = account}) : 0;

	return in_pieces(bytes) > in_use ? in_pieces(bytes) - in_use : 0;
}

/* Allocations and questions in progress stay. */
static void set_content(struct pool *pool, struct account *account, uint64_t bytes)
{
	pool->account = account;
	pool->bytes = bytes;
	pool->number++;
}

/* The pool is of the account from here on, with so many bytes. */
static void name_account(struct pool *pool, struct account *account, uint64_t bytes)
{
	if (account)
		account_change(account, (int64_t)bytes);
	if (pool->account)
		account_change(pool->account, -(int64_t)pool->bytes);
	set_content(pool, account, account ? bytes : 0);
	pool->is_guessed = false;
}

void pools_set_account(const void *key, struct account *account)
{
	pthread_mutex_lock(&lock);
	struct pool *there = find_or_add(key, account);

	if (there)
		name_account(there, account, 0);
	pthread_mutex_unlock(&lock);
}

/* The account of the memory's GPU; `guess` if the driver does not tell. */
static struct account *account_of_memory(CUdeviceptr address, struct account *guess)
{
	CUdevice device = -1;
	int number = -1;
	bool is_told = driver.pointer_get_attribute &&
	               driver.pointer_get_attribute(&number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) ==
	                               CUDA_SUCCESS &&
	               (number < 0 || driver.device_get(&device, number) == CUDA_SUCCESS);

	return is_told ? account_of_device(device) : guess;
}

/* NULL: the pool is known, or gone. */
static struct pool *find_guessed(const void *key)
{
	struct pool *there = pointer_map_find(&pools, sizeof *there, key);

	return there && there->is_guessed && there->account ? there : NULL;
}

void pools_learn(const void *key, CUdeviceptr address)
{
	pthread_mutex_lock(&lock);
	const struct pool *guessed = find_guessed(key);
	struct account *account = guessed ? guessed->account : NULL;

	pthread_mutex_unlock(&lock);
	if (!account)
		return;
	account = account_of_memory(address, account);
	pthread_mutex_lock(&lock);
	struct pool *there = find_guessed(key);

	if (there && there->account != account)
		name_account(there, account, there->bytes);
	if (there)
		there->is_guessed = false;
	pthread_mutex_unlock(&lock);
}

struct account *pools_take(const void *key, uint64_t *bytes)
{
	struct account *account = NULL;

	*bytes = 0;
	pthread_mutex_lock(&lock);
	struct pool *there = pointer_map_find(&pools, sizeof *there, key);

	if (there) {
		account = there->account;
		*bytes = there->bytes;
		set_content(there, NULL, 0);
	}
	pthread_mutex_unlock(&lock);
	await_answers(key);
	return account;
}

void pools_put_back(const void *key, struct account *account, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	struct pool *there = pointer_map_find(&pools, sizeof *there, key);

	if (there)
		set_content(there, account, bytes);
	pthread_mutex_unlock(&lock);
}

/* False behind the last place. */
static bool copy_from(size_t place, struct pool *copy)
{
	pthread_mutex_lock(&lock);
	bool is_there = place < pools.room;

	if (is_there)
		*copy = ((const struct pool *)pools.structs)[place];
	pthread_mutex_unlock(&lock);
	return is_there;
}

static void trim_unless_gone(const void *key)
{
	struct pool pool = begin_question(key);

	if (pool.account)
		trim(&pool);
	end_question(&pool);
}

void pools_settle_all(struct account *account, bool trims)
{
	struct pool pool;

	for (size_t place = 0; copy_from(place, &pool); place++) {
		bool is_meant = pool.key && pool.account == account;

		if (is_meant && trims)
			trim_unless_gone(pool.key);
		if (is_meant)
			pools_settle(pool.key, 0);
	}
}

bool pools_exist(void)
{
	return atomic_load_explicit(&exist, memory_order_relaxed);
}

void pools_synchronized(void)
{
	struct pool pool;

	for (size_t place = 0; copy_from(place, &pool); place++) {
		if (pool.bytes > 0 && !is_of_graphs(&pool))
			pools_settle(pool.key, 0);
	}
}

void pools_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store(&waiting, 0);
	pointer_map_forget(&pools);
}
