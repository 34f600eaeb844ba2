#include "pools.h"

#include "driver/functions.h"

#include <pthread.h>

#define POOLS_MAX 64
#define PIECE (UINT64_C(2) << 20) /* the size of the GPU's pages */

/* A pool; or a GPU's pool for graphs, whose key is the account. */
struct pool {
	const void *key; /* NULL: free */
	struct account *account;
	uint64_t bytes; /* counted */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool pools[POOLS_MAX];

static uint64_t in_pieces(uint64_t bytes)
{
	return (bytes + PIECE - 1) / PIECE * PIECE;
}

/* --- the driver's word -------------------------------------------------------------------------------------------- */

static uint64_t ask_pool(void *pool, int attribute)
{
	uint64_t bytes = 0;

	if (!driver.pool_get_attribute || driver.pool_get_attribute(pool, attribute, &bytes) != CUDA_SUCCESS)
		bytes = 0;
	return bytes;
}

static uint64_t held_by_pool(void *pool)
{
	return ask_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

static uint64_t ask_graphs(const struct account *account, int attribute)
{
	uint64_t bytes = 0;

	if (!driver.graph_memory_get_attribute ||
	    driver.graph_memory_get_attribute(account_device(account), attribute, &bytes) != CUDA_SUCCESS)
		bytes = 0;
	return bytes;
}

static uint64_t held_by_graphs(const struct account *account)
{
	return ask_graphs(account, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

/* NULL if there are too many: what the pool holds is not counted. */
static struct pool *find(const void *key)
{
	struct pool *found = NULL;

	for (struct pool *pool = pools; pool < pools + POOLS_MAX && (!found || found->key != key); pool++)
		found = pool->key == key || (!found && !pool->key) ? pool : found;
	return found;
}

/* The first question may have the last answer: the next question sets an outdated number right. */
static void settle(struct account *account, const void *key, uint64_t bytes, uint64_t reserved)
{
	pthread_mutex_lock(&lock);
	struct pool *pool = find(key);
	int64_t change = -(int64_t)reserved;

	if (pool) {
		change += (int64_t)bytes - (pool->key ? (int64_t)pool->bytes : 0);
		*pool = (struct pool){.key = key, .account = account, .bytes = bytes};
	}
	account_change(account, change);
	pthread_mutex_unlock(&lock);
}

uint64_t pools_growth(struct account *account, void **pool, uint64_t bytes)
{
	if (!*pool && driver.memory_get_pool)
		driver.memory_get_pool(pool, account_device(account));
	uint64_t held = *pool ? held_by_pool(*pool) : 0;
	uint64_t used = *pool ? ask_pool(*pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) : 0;

	if (*pool)
		settle(account, *pool, held, 0);
	return *pool && bytes > held - used ? in_pieces(bytes) : 0;
}

void pools_settle(struct account *account, void *pool, uint64_t reserved)
{
	settle(account, pool, held_by_pool(pool), reserved);
}

void pools_forget(void *pool)
{
	struct pool gone = {.key = NULL};

	pthread_mutex_lock(&lock);
	struct pool *there = find(pool);

	if (there && there->key) {
		gone = *there;
		there->key = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (gone.account)
		account_change(gone.account, -(int64_t)gone.bytes);
}

/* An instance has the same memory in each launch. In the first launch, the instance gets memory not yet in use. */
uint64_t pools_growth_of_graph(struct account *account, uint64_t bytes, bool was_launched)
{
	uint64_t held = held_by_graphs(account);
	uint64_t needed = in_pieces(bytes) +
	                  (was_launched ? 0 : ask_graphs(account, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT));

	settle(account, account, held, 0);
	return needed > held ? needed - held : 0;
}

void pools_settle_graphs(struct account *account, uint64_t reserved)
{
	settle(account, account, held_by_graphs(account), reserved);
}

static void settle_again(const struct pool *pool, bool trims)
{
	bool is_of_graphs = pool->key == pool->account;
	void *handle = (void *)(uintptr_t)pool->key;

	if (trims && is_of_graphs && driver.graph_memory_trim)
		driver.graph_memory_trim(account_device(pool->account));
	else if (trims && !is_of_graphs && driver.pool_trim)
		driver.pool_trim(handle, 0);
	if (is_of_graphs)
		pools_settle_graphs(pool->account, 0);
	else
		pools_settle(pool->account, handle, 0);
}

void pools_settle_all(struct account *account, bool trims)
{
	for (int i = 0; i < POOLS_MAX; i++) {
		pthread_mutex_lock(&lock);
		struct pool pool = pools[i];

		pthread_mutex_unlock(&lock);
		if (pool.key && pool.account == account)
			settle_again(&pool, trims);
	}
}

void pools_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	for (int i = 0; i < POOLS_MAX; i++)
		pools[i].key = NULL;
}
