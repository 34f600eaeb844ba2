/* Which TPCs hold a launch whose blocks must run at once, on an H200: GPC 0 has virtual GPC 0 with 4 of its TPCs, the rest are
 * singletons; the others have one virtual GPC each. */
#include "../cases.h"
#include "gpu/topology/topology.h"
#include "sets.h"
#include "share.h"

#define WHOLE "0-65"

static struct topology_list list;

static struct occupancy need(unsigned int cluster, unsigned int cooperative, unsigned int blocks_per_sm)
{
	const struct qmd_shape shape = {.cluster = cluster, .cooperative = cooperative, .threads = 32};
	const struct topology *gpu = share_read(&list, "h200");
	struct tpcset all = topology_all(gpu);

	return occupancy_of(gpu, &shape, blocks_per_sm, &all);
}

static void assert_fits(struct occupancy occupancy, const char *text, bool does)
{
	struct tpcset set = parse(text);

	assert_int_equal(occupancy_fits(&occupancy, &set), does);
}

static void assert_room(const struct occupancy *occupancy, const char *allowed, const char *preferred, const char *expected)
{
	struct tpcset a = parse(allowed), b = parse(preferred), found = occupancy_find_room(occupancy, &a, &b);
	char text[TPCSET_TEXT];

	assert_string_equal(tpcset_format_list(&found, text), expected);
}

TEST(cooperative_grid_needs_enough_sms)
{
	const struct occupancy eight = need(1, 8, 1), dense = need(1, 64, 8);

	assert_fits(eight, "0-3", true);
	assert_fits(eight, "0-2", false);
	assert_fits(dense, "0-3", true);
	assert_fits(dense, "0-2", false);
	/* A launch that is not cooperative needs no room. */
	assert_room(&eight, "0-3", WHOLE, "0-3");
}

TEST(cluster_needs_one_virtual_gpc)
{
	/* Four TPCs with consecutive numbers lie in four GPCs; these are GPC 2's. */
	assert_fits(need(8, 0, 1), "1-4", false);
	assert_fits(need(8, 0, 1), "1,9,17,25,32,39,46,53", true);
	/* A singleton holds a cluster of two blocks, and no larger one. */
	assert_fits(need(8, 0, 1), "62-65", false);
	assert_fits(need(2, 0, 1), "62", true);
}

TEST(only_whole_clusters_count)
{
	/* 3 TPCs of one group are 6 SMs: one whole cluster of 4, with 8 blocks to an SM 32 blocks. */
	assert_fits(need(4, 32, 8), "1,9,17", true);
	assert_fits(need(4, 33, 8), "1,9,17", false);
}

TEST(room_in_preferred_then_allowed_then_widened)
{
	const struct occupancy four = need(1, 4, 1);

	assert_room(&four, "0-7", "2-3,60", "2-3");
	assert_room(&four, "0-7", "2,60", "0-7");
	/* For a cluster, the groups that it has a part of are added as a whole; if none of these can hold it, the one with the fewest
	 * missing TPCs. */
	const struct occupancy small = need(4, 0, 1), large = need(16, 0, 1);

	assert_room(&small, "1", WHOLE, "1,9,17,25,32,39,46,53");
	assert_room(&small, "0-1", WHOLE, "0-1,8-9,16-17,24-25,32,39,46,53");
	assert_room(&large, "1,9,17,25,32", WHOLE, "1,9,17,25,32,39,46,53");
	assert_room(&large, "0", WHOLE, "1,9,17,25,32,39,46,53");
}

TEST(unknown_groups_use_drivers_answer)
{
	static struct topology gpu;
	const struct qmd_shape shape = {.cluster = 4, .threads = 32};
	struct tpcset judged = parse("0-7");

	gpu = *share_read(&list, "h200");
	for (unsigned int tpc = 0; tpc < gpu.tpc_count; tpc++)
		gpu.tpcs[tpc].virtual_gpc = TOPOLOGY_UNKNOWN;
	struct occupancy unknown = occupancy_of(&gpu, &shape, 1, &judged);

	assert_fits(unknown, "0-7", true);
	assert_fits(unknown, "0-6", false);
	assert_room(&unknown, "0-3", "0-7", "0-7");
}

RUN_TESTS(NULL, NULL)
