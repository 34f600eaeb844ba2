/*
 * Launches whose blocks must run at once, in green contexts. If the TPCs that green context and partition share can
 * hold them, they run there. Otherwise they run in the partition, widened if necessary. They never run in the green
 * context outside of the partition.
 */
#include "../cases.h"
#include "gpu/qmd.h"
#include "support/green.h"
#include "support/room.h"
#include "support/subscriber.h"

static struct tpcset outside(void)
{
	struct tpcset all = gpu_all(&gpu);

	return tpcset_without(&all, &green.tpcs);
}

/* Two TPCs of one virtual GPC. */
static struct tpcset pair_of(struct tpcset set)
{
	struct tpcset group = {{0}};

	for (unsigned int tpc = tpcset_next(&set, 0); tpcset_count(&group) < 2; tpc = tpcset_next(&set, tpc + 1)) {
		assert_true(tpc < TPCSET_MAX);
		group = topology_cluster_group(gpu.topology, &set, tpc);
	}
	return gpu_first_of(group, 2);
}

static struct tpcset both_of(struct tpcset a, struct tpcset b)
{
	return tpcset_or(&a, &b);
}

/* As many blocks as fit on so many TPCs at once, and `more`. */
static struct shape cooperative(unsigned int tpcs, unsigned int more)
{
	return (struct shape){
		.blocks = tpcs * gpu.topology->sms_per_tpc * gpu_blocks_per_sm(&green.inside) + more,
		.threads = GPU_COOPERATIVE_THREADS, .is_cooperative = true, .blocks_per_sm = gpu_blocks_per_sm(&green.inside),
	};
}

/* A launch of clusters, each of which needs two TPCs of one virtual GPC. */
static struct shape clusters(void)
{
	unsigned int size = 2 * gpu.topology->sms_per_tpc;

	return (struct shape){.blocks = 24 * size, .threads = GPU_THREADS, .cluster = size};
}

static struct tpcset run(const struct shape *shape)
{
	gpu_check(shape_launch(&green.inside, shape, NULL, green.inside.output));
	gpu_check(cuCtxSynchronize());
	return gpu_read_tpcs(&green.inside, green.inside.output, shape->blocks);
}

#define NOTHING SEGMENT_REASON_COUNT

/* The launch runs inside `room`, and exactly these counters rise. */
static void assert_runs_now(struct shape shape, struct tpcset room, enum segment_reason counted)
{
	struct segment_counters first = gpu_counters();
	struct tpcset ran = run(&shape);
	struct segment_counters second = gpu_counters();

	if (!tpcset_is_subset(&ran, &room))
		gpu_assert_ran(ran, room);
	for (enum segment_reason reason = 0; reason < SEGMENT_REASON_COUNT; reason++)
		assert_int_equal(second.reasons[reason], first.reasons[reason] + (reason == counted));
	assert_int_equal(second.restricted, first.restricted + 1);
}

/* From the second launch on, the mask for clusters is kept. */
static void assert_runs(struct shape shape, struct tpcset partition, struct tpcset room, enum segment_reason counted)
{
	gpu_set_partition(&gpu, partition);
	for (int i = 0; i < 3; i++)
		assert_runs_now(shape, room, counted);
}

/* The launch runs on the TPCs that the green context and the partition share. */
static void assert_in_both(struct shape shape, struct tpcset partition)
{
	assert_runs(shape, partition, tpcset_and(&partition, &green.tpcs), NOTHING);
}

static void assert_partition_wins(struct shape shape, struct tpcset partition)
{
	assert_runs(shape, partition, partition, SEGMENT_GREEN_CONTEXT);
}

static void assert_widened(struct shape shape, struct tpcset partition)
{
	assert_runs(shape, partition, room_for(gpu.topology, &shape, partition), SEGMENT_WIDENED);
}

TEST(cooperative)
{
	green_enter();
	assert_in_both(cooperative(2, 0), both_of(gpu_first_of(green.tpcs, 2), gpu_first_of(outside(), 2)));
	assert_in_both(cooperative(2, 0), gpu_first_of(green.tpcs, 2));
	/* With too little in common. */
	assert_partition_wins(cooperative(1, 1), both_of(gpu_first_of(green.tpcs, 1), gpu_first_of(outside(), 2)));
	assert_partition_wins(cooperative(3, 0), both_of(gpu_first_of(green.tpcs, 1), gpu_first_of(outside(), 2)));
	assert_widened(cooperative(2, 1), both_of(gpu_first_of(green.tpcs, 1), gpu_first_of(outside(), 1)));
	assert_widened(cooperative(2, 1), gpu_first_of(green.tpcs, 2));
	/* With nothing. */
	assert_partition_wins(cooperative(2, 0), gpu_first_of(outside(), 2));
	assert_widened(cooperative(1, 1), gpu_first_of(outside(), 1));
}

TEST(clusters)
{
	gpu_need_clusters();
	green_enter();
	assert_in_both(clusters(), both_of(pair_of(green.tpcs), pair_of(outside())));
	assert_in_both(clusters(), pair_of(green.tpcs));
	/* With too little in common. */
	assert_partition_wins(clusters(), both_of(gpu_first_of(green.tpcs, 1), pair_of(outside())));
	assert_widened(clusters(), gpu_first_of(green.tpcs, 1));
}

/* Checks the mask of the last descriptor, as another tool sees it. */
static void assert_disabled(struct tpcset set)
{
	const struct qmd_family *family = qmd_family_for(gpu.topology->compute_major, gpu.topology->compute_minor);
	struct qmd_mask mask = qmd_own_mask(family, subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd);

	for (unsigned int tpc = tpcset_next(&set, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&set, tpc + 1)) {
		unsigned int bit = gpu.topology->tpcs[tpc].mask_bit;

		assert_true(mask.words[bit / 64] >> (bit % 64) & 1);
	}
}

/* The driver keeps clusters off TPCs that have no room for one (facts.md, "Launch descriptors"). A mask that
 * replaces the driver's must do so, too. */
TEST(clusters_keep_off_singletons)
{
	struct tpcset singletons = gpu_singletons(&gpu);
	struct shape shape;

	gpu_need_clusters();
	green_enter();
	if (tpcset_is_empty(&singletons))
		gpu_skip("this GPU has no singleton TPCs");
	shape = clusters();
	struct tpcset wide = room_for(gpu.topology, &shape, singletons);

	subscriber_open(NULL);
	assert_runs(shape, singletons, tpcset_without(&wide, &singletons), SEGMENT_WIDENED);
	assert_disabled(singletons);
	assert_runs(shape, both_of(singletons, pair_of(outside())), pair_of(outside()), SEGMENT_GREEN_CONTEXT);
	assert_disabled(singletons);
	subscriber_close();
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, green_leave)
