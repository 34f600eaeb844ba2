#include "cluster.h"

#include "bench.h"

#include <math.h>
#include <stdlib.h>

/* Numbers of GPUs or of nodes, in any order. */
struct bag {
	uint32_t *members;
	uint32_t count, room;
};

struct gpu {
	unsigned int free; /* TPCs */
	unsigned int jobs;
	unsigned int owner;           /* for whom it is kept; 0: nobody */
	unsigned int bag;             /* in which of `parts` it is; 0: none */
	uint32_t position;            /* there */
	double until[CLUSTER_TPCS];   /* when its jobs will have ended */
};

struct node {
	unsigned int idle; /* its idle GPUs that are not kept, and its bag in `idle`; 0: none */
	uint32_t position;
};

/* When one, two … GPUs of a node will be idle, those that are kept left out; or of the best node of several. */
struct soonest {
	double times[CLUSTER_GPUS];
};

struct cluster {
	struct gpu *gpus; /* those of a node follow one another */
	struct node *nodes;
	struct bag parts[CLUSTER_TPCS];    /* GPUs by free TPCs, but for full and idle ones, and those that are kept */
	struct bag idle[CLUSTER_GPUS + 1]; /* nodes by idle GPUs */
	struct soonest *tree;              /* 1 is the root, 2n and 2n + 1 are below n, and `leaves` is the first node */
	unsigned int leaves;
};

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		bench_fail("out of memory");
	return memory;
}

/* --- bags ------------------------------------------------------------------------------------------------------------ */

static uint32_t put(struct bag *bag, uint32_t member)
{
	if (bag->count == bag->room) {
		bag->room = bag->room * 2 + 64;
		bag->members = realloc(bag->members, bag->room * sizeof *bag->members);
		if (!bag->members)
			bench_fail("out of memory");
	}
	bag->members[bag->count] = member;
	return bag->count++;
}

/* The last one comes to its position, and is returned. */
static uint32_t take_out(struct bag *bag, uint32_t position)
{
	return bag->members[position] = bag->members[--bag->count];
}

static void sort_gpu(struct cluster *cluster, uint32_t number)
{
	struct gpu *gpu = &cluster->gpus[number];
	unsigned int bag = gpu->owner || gpu->free == CLUSTER_TPCS ? 0 : gpu->free;

	if (bag == gpu->bag)
		return;
	if (gpu->bag)
		cluster->gpus[take_out(&cluster->parts[gpu->bag], gpu->position)].position = gpu->position;
	gpu->bag = bag;
	if (bag)
		gpu->position = put(&cluster->parts[bag], number);
}

static void sort_node(struct cluster *cluster, uint32_t number, unsigned int idle)
{
	struct node *node = &cluster->nodes[number];

	if (idle == node->idle)
		return;
	if (node->idle)
		cluster->nodes[take_out(&cluster->idle[node->idle], node->position)].position = node->position;
	node->idle = idle;
	if (idle)
		node->position = put(&cluster->idle[idle], number);
}

/* --- when GPUs will be idle ------------------------------------------------------------------------------------------ */

static double idle_time(const struct gpu *gpu)
{
	double time = gpu->owner ? INFINITY : 0;

	for (unsigned int i = 0; i < gpu->jobs; i++)
		time = gpu->until[i] > time ? gpu->until[i] : time;
	return time;
}

static struct soonest soonest_of(const struct gpu *gpus)
{
	struct soonest soonest;

	for (unsigned int i = 0; i < CLUSTER_GPUS; i++) {
		double time = idle_time(&gpus[i]);
		unsigned int place = i;

		for (; place > 0 && soonest.times[place - 1] > time; place--)
			soonest.times[place] = soonest.times[place - 1];
		soonest.times[place] = time;
	}
	return soonest;
}

static struct soonest sooner(const struct soonest *one, const struct soonest *other)
{
	struct soonest soonest;

	for (unsigned int i = 0; i < CLUSTER_GPUS; i++)
		soonest.times[i] = one->times[i] < other->times[i] ? one->times[i] : other->times[i];
	return soonest;
}

static void update_tree(struct cluster *cluster, unsigned int node)
{
	struct soonest *tree = cluster->tree;
	unsigned int at = cluster->leaves + node;

	tree[at] = soonest_of(&cluster->gpus[node * CLUSTER_GPUS]);
	for (at /= 2; at > 0; at /= 2)
		tree[at] = sooner(&tree[2 * at], &tree[2 * at + 1]);
}

/* After a change of its GPUs. */
static void update(struct cluster *cluster, unsigned int node)
{
	unsigned int idle = 0;

	for (unsigned int i = 0; i < CLUSTER_GPUS; i++) {
		const struct gpu *gpu = &cluster->gpus[node * CLUSTER_GPUS + i];

		idle += !gpu->owner && gpu->free == CLUSTER_TPCS;
		sort_gpu(cluster, node * CLUSTER_GPUS + i);
	}
	sort_node(cluster, node, idle);
	update_tree(cluster, node);
}

/* --- the cluster ----------------------------------------------------------------------------------------------------- */

struct cluster *cluster_open(unsigned int nodes)
{
	struct cluster *cluster = allocate(1, sizeof *cluster);

	for (cluster->leaves = 1; cluster->leaves < nodes;)
		cluster->leaves *= 2;
	cluster->gpus = allocate((size_t)nodes * CLUSTER_GPUS, sizeof *cluster->gpus);
	cluster->nodes = allocate(nodes, sizeof *cluster->nodes);
	cluster->tree = allocate((size_t)cluster->leaves * 2, sizeof *cluster->tree);
	for (unsigned int i = 0; i < cluster->leaves * 2; i++)
		for (unsigned int k = 0; k < CLUSTER_GPUS; k++)
			cluster->tree[i].times[k] = INFINITY;
	for (unsigned int i = 0; i < nodes * CLUSTER_GPUS; i++)
		cluster->gpus[i].free = CLUSTER_TPCS;
	for (unsigned int node = 0; node < nodes; node++)
		update(cluster, node);
	return cluster;
}

void cluster_close(struct cluster *cluster)
{
	for (unsigned int i = 0; i < CLUSTER_TPCS; i++)
		free(cluster->parts[i].members);
	for (unsigned int i = 0; i <= CLUSTER_GPUS; i++)
		free(cluster->idle[i].members);
	free(cluster->gpus);
	free(cluster->nodes);
	free(cluster->tree);
	free(cluster);
}

static struct gpu *gpu_of(const struct cluster *cluster, unsigned int node, unsigned int gpu)
{
	return &cluster->gpus[node * CLUSTER_GPUS + gpu];
}

/* --- room ------------------------------------------------------------------------------------------------------------ */

/* The first idle GPUs of a node that has as many. */
static struct place idle_gpus(const struct cluster *cluster, unsigned int node, unsigned int count)
{
	struct place place = {.node = node};

	for (unsigned int i = 0; count > 0 && i < CLUSTER_GPUS; i++) {
		const struct gpu *gpu = gpu_of(cluster, node, i);

		if (!gpu->owner && gpu->free == CLUSTER_TPCS) {
			place.gpus |= 1U << i;
			count--;
		}
	}
	return place;
}

bool cluster_find(const struct cluster *cluster, struct need need, struct place *place)
{
	for (unsigned int free = need.tpcs; free < CLUSTER_TPCS; free++) {
		const struct bag *bag = &cluster->parts[free];

		if (bag->count > 0) {
			uint32_t gpu = bag->members[bag->count - 1];

			*place = (struct place){gpu / CLUSTER_GPUS, 1U << gpu % CLUSTER_GPUS};
			return true;
		}
	}
	for (unsigned int idle = need.gpus; idle <= CLUSTER_GPUS; idle++) {
		const struct bag *bag = &cluster->idle[idle];

		if (bag->count > 0) {
			*place = idle_gpus(cluster, bag->members[bag->count - 1], need.gpus);
			return true;
		}
	}
	return false;
}

bool cluster_find_on(const struct cluster *cluster, struct need need, unsigned int node, struct place *place)
{
	unsigned int least = CLUSTER_TPCS;

	for (unsigned int i = 0; i < CLUSTER_GPUS; i++) {
		const struct gpu *gpu = gpu_of(cluster, node, i);

		if (!gpu->owner && gpu->free >= need.tpcs && gpu->free < least) {
			*place = (struct place){node, 1U << i};
			least = gpu->free;
		}
	}
	if (least == CLUSTER_TPCS && cluster->nodes[node].idle >= need.gpus)
		*place = idle_gpus(cluster, node, need.gpus);
	return least < CLUSTER_TPCS || cluster->nodes[node].idle >= need.gpus;
}

bool cluster_has_room(const struct cluster *cluster, struct need need, struct place place)
{
	for (unsigned int left = place.gpus; left > 0; left &= left - 1)
		if (gpu_of(cluster, place.node, (unsigned int)__builtin_ctz(left))->free < need.tpcs)
			return false;
	return true;
}

/* --- jobs ------------------------------------------------------------------------------------------------------------ */

static void begin(struct gpu *gpu, unsigned int tpcs, double until)
{
	if (gpu->free < tpcs)
		bench_fail("a TPC would be given twice");
	gpu->free -= tpcs;
	gpu->until[gpu->jobs++] = until;
}

static void end(struct gpu *gpu, unsigned int tpcs, double until)
{
	unsigned int job = 0;

	while (job < gpu->jobs && gpu->until[job] != until)
		job++;
	if (job == gpu->jobs)
		bench_fail("a job ends where it did not begin");
	gpu->until[job] = gpu->until[--gpu->jobs];
	gpu->free += tpcs;
}

static void change(struct cluster *cluster, struct need need, struct place place, double until,
                   void (*how)(struct gpu *, unsigned int, double))
{
	for (unsigned int i = 0; i < CLUSTER_GPUS; i++)
		if (place.gpus & 1U << i)
			how(gpu_of(cluster, place.node, i), need.tpcs, until);
	update(cluster, place.node);
}

void cluster_take(struct cluster *cluster, struct need need, struct place place, double until)
{
	change(cluster, need, place, until, begin);
}

void cluster_give(struct cluster *cluster, struct need need, struct place place, double until)
{
	change(cluster, need, place, until, end);
}

/* --- what is kept ---------------------------------------------------------------------------------------------------- */

/* The GPUs that will be idle by then. */
static struct place idle_by(const struct cluster *cluster, unsigned int node, unsigned int count, double time)
{
	struct place place = {.node = node};

	for (unsigned int i = 0; count > 0 && i < CLUSTER_GPUS; i++) {
		if (idle_time(gpu_of(cluster, node, i)) <= time) {
			place.gpus |= 1U << i;
			count--;
		}
	}
	return place;
}

bool cluster_find_soonest(const struct cluster *cluster, unsigned int gpus, struct place *place, double *time)
{
	unsigned int at = 1, which = gpus - 1;

	*time = cluster->tree[1].times[which];
	if (isinf(*time))
		return false;
	while (at < cluster->leaves)
		at = 2 * at + (cluster->tree[2 * at].times[which] != *time);
	*place = idle_by(cluster, at - cluster->leaves, gpus, *time);
	return true;
}

void cluster_keep(struct cluster *cluster, struct place place, unsigned int owner)
{
	for (unsigned int i = 0; i < CLUSTER_GPUS; i++)
		if (place.gpus & 1U << i)
			gpu_of(cluster, place.node, i)->owner = owner;
	update(cluster, place.node);
}

unsigned int cluster_owner(const struct cluster *cluster, unsigned int node, unsigned int gpu)
{
	return gpu_of(cluster, node, gpu)->owner;
}
