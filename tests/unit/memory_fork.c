/*
 * The child of a fork forgets which memory the parent has, also where a thread of the parent was making a table larger:
 * the child frees nothing of the parent's.
 *
 * link: -Wl,--wrap=free
 * processes: no
 */
#include "../cases.h"
#include "driver/functions.h"
#include "memory/holdings.h"
#include "memory/kinds.h"

#define MANY 20 /* a table grows several times */

/* Neither a limit nor a ledger. */
struct account {
	int64_t bytes;
};

static struct account account;

void account_change(struct account *of, int64_t bytes)
{
	of->bytes += bytes;
}

bool account_reserve(struct account *of, uint64_t bytes)
{
	of->bytes += (int64_t)bytes;
	return true;
}

CUdevice account_device(const struct account *of)
{
	return of == &account ? 0 : -1;
}

struct account *account_of_device(CUdevice device)
{
	return device == 0 ? &account : NULL;
}

static const void *at(uintptr_t number)
{
	return (const void *)(0x1000 * number);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void add_holding(uintptr_t number)
{
	holdings_add(&(struct holding){.key = at(number), .account = &account, .bytes = 1});
}

static void add_handle(uintptr_t number)
{
	mapped_create(at(number), &account, 1);
}

static void add_mapping(uintptr_t number)
{
	mapped_create(at(1), &account, 1);
	mapped_map(at(1), at(number), 0x1000);
}

static void add_pool(uintptr_t number)
{
	pools_set_account(at(number), &account);
}

static CUresult one_node(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

static CUresult is_allocation(CUgraphNode node, int *type)
{
	*type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	return CUDA_SUCCESS;
}

static CUresult no_child(CUgraphNode node, CUgraph *graph)
{
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult one_byte(CUgraphNode node, struct graph_allocation *parameters)
{
	parameters->bytes = 1;
	return CUDA_SUCCESS;
}

static void add_instance(uintptr_t number)
{
	const void *made = at(number);
	void *arguments[] = {&made, NULL};

	driver.graph_get_nodes = one_node;
	driver.graph_node_get_type = is_allocation;
	driver.graph_child = no_child;
	driver.graph_allocation_get_parameters = one_byte;
	graph_allocations_instantiated(&(struct call){.arguments = arguments});
}

static const struct {
	const char *name;
	void (*add)(uintptr_t number);
	void (*forget)(void);
} tables[] = {
	{"holdings", add_holding, holdings_after_fork},
	{"handles", add_handle, mapped_after_fork},
	{"mappings", add_mapping, mapped_after_fork},
	{"pools", add_pool, pools_after_fork},
	{"instances of graphs", add_instance, graph_allocations_after_fork},
};

/* --- forks -------------------------------------------------------------------------------------------------------- */

static size_t tried;
static bool forks;
static unsigned int forked;

static void add_many(void)
{
	for (uintptr_t number = 1; number <= MANY; number++)
		tables[tried].add(number);
}

static void fork_now(void)
{
	forks = false;
	forked++;
	pid_t child = fork();

	if (child == 0) {
		tables[tried].forget();
		add_many();
		_exit(0);
	}
	assert_ends_well(child);
	forks = true;
}

void __real_free(void *start);

/* The caller still has the pointer. */
WRAP(void, free, void *start)
{
	__real_free(start);
	if (start && forks)
		fork_now();
}

TEST(the_child_frees_nothing_of_the_parents)
{
	for (tried = 0; tried < COUNT_OF(tables); tried++) {
		ROW("%s", tables[tried].name);
		forked = 0;
		forks = true;
		add_many();
		forks = false;
		assert_true(forked > 0);
	}
}

RUN_TESTS(NULL, NULL)
