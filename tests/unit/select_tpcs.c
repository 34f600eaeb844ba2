/* Choosing a number of TPCs. */
#include "../cases.h"
#include "gpu/topology/select_tpcs.h"
#include "sets.h"
#include "share.h"

static struct error error;

static struct topology_list list;
static const struct topology *gpu; /* an H200, or what a case has it be */

FIXTURE(begin)
{
	gpu = share_read(&list, "h200");
}

/* The chosen TPCs, as a list; "" if there are not enough. */
static const char *choose(const char *used, unsigned int count, enum strategy strategy)
{
	static char text[TPCSET_TEXT];
	struct tpcset set = {{0}}, taken = parse(used);

	if (select_tpcs(&set, gpu, &taken, count, strategy, &error) < 0)
		return "";
	struct tpcset both = tpcset_and(&set, &taken);

	assert_int_equal(tpcset_count(&set), count);
	assert_true(tpcset_is_empty(&both));
	return tpcset_format_list(&set, text);
}

/* So many lie in so many GPCs, of which so many are whole. */
static void assert_packed(unsigned int count, unsigned int gpcs, unsigned int whole)
{
	struct tpcset set = parse(choose("", count, STRATEGY_PACKED));
	unsigned int touched = 0, taken = 0;

	for (unsigned int gpc = 0; gpc < TOPOLOGY_GPCS_MAX; gpc++) {
		struct tpcset members = topology_gpc(gpu, gpc), both = tpcset_and(&set, &members);

		touched += !tpcset_is_empty(&both);
		taken += !tpcset_is_empty(&members) && tpcset_equal(&both, &members);
	}
	assert_each(touched, gpcs, taken, whole);
}

TEST(whole_gpcs_first)
{
	assert_packed(8, 1, 1);
	assert_packed(20, 3, 2);
	assert_packed(18, 2, 2); /* the largest ones: two GPCs have 9, the others 8 */
	assert_packed(3, 1, 0);
	assert_packed(66, 8, 8);
}

/* Of two GPCs in use, the one with less room is taken, whatever its number. */
TEST(rest_prefers_fuller_gpc)
{
	for (unsigned int full = 2; full < 4; full++) {
		struct tpcset gpc = topology_gpc(gpu, full), other = topology_gpc(gpu, 5 - full), used = {{0}}, chosen;
		char text[TPCSET_TEXT];

		tpcset_add(&used, tpcset_next(&other, 0));
		for (unsigned int tpc = tpcset_next(&gpc, 0); tpcset_count(&used) < 5; tpc = tpcset_next(&gpc, tpc + 1))
			tpcset_add(&used, tpc);
		chosen = parse(choose(tpcset_format_list(&used, text), 2, STRATEGY_PACKED));
		assert_true(tpcset_is_subset(&chosen, &gpc));
	}
}

TEST(fragments_as_last_resort)
{
	/* One TPC of each GPC is free. */
	assert_string_equal(choose("8-65", 8, STRATEGY_PACKED), "0-7");
	assert_string_equal(choose("8-65", 8, STRATEGY_DISTRIBUTED), "0-7");
	assert_string_equal(choose("8-65", 9, STRATEGY_PACKED), "");
}

/* Clusters of 8 blocks find as much room as so many TPCs can have, in as many virtual GPCs as possible. */
TEST(distributed_in_chunks)
{
	for (unsigned int count = 1; count <= 66; count++) {
		struct tpcset set = parse(choose("", count, STRATEGY_DISTRIBUTED));
		unsigned int chunks = 0, least = TPCSET_MAX, most = 0;

		for (unsigned int gpc = 0; gpc < 8; gpc++) {
			struct tpcset members = topology_virtual_gpc(gpu, gpc), both = tpcset_and(&set, &members);
			unsigned int taken = tpcset_count(&both) / 4;

			chunks += taken;
			least = taken < least ? taken : least;
			most = taken > most ? taken : most;
		}
		/* One virtual GPC has 4 TPCs, the others 8 or 9. */
		assert_int_equal(chunks, count / 4 < 15 ? count / 4 : 15);
		assert_in_range(most - least, 0, 1);
	}
}

/* What is no chunk comes from beside chunks, which others can then have. */
TEST(distributed_rest)
{
	assert_string_equal(choose("", 1, STRATEGY_DISTRIBUTED), "6");
	assert_string_equal(choose("0,8", 1, STRATEGY_DISTRIBUTED), "16");
	assert_string_equal(choose("0,8", 2, STRATEGY_DISTRIBUTED), "16,24");
	assert_string_equal(choose("0,6-65", 1, STRATEGY_DISTRIBUTED), "1");
	assert_string_equal(choose("0,6-65", 5, STRATEGY_DISTRIBUTED), "1-5");
}

/* Clusters have room in a virtual GPC; singletons are taken when that is used up. */
TEST(singletons_last)
{
	struct tpcset gpc = topology_gpc(gpu, 1), all = topology_all(gpu), others = tpcset_without(&all, &gpc);
	char used[TPCSET_TEXT];

	assert_string_equal(choose(tpcset_format_list(&others, used), 4, STRATEGY_PACKED), "0,8,16,24");
}

/* All TPCs of one GPU are taken in chunks, until none is left: none is taken twice. */
TEST(every_tpc_is_found)
{
	static const char *const names[] = {"h200", "turing", "ada", "hopper-synthetic", "blackwell"};

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		for (unsigned int chunk = 1; chunk < 12; chunk++) {
			gpu = share_read(&list, names[i]);
			struct tpcset used = {{0}}, all = topology_all(gpu);

			while (tpcset_count(&used) + chunk <= gpu->tpc_count) {
				char text[TPCSET_TEXT];
				struct tpcset next = parse(choose(tpcset_format_list(&used, text), chunk,
				                                  chunk % 2 ? STRATEGY_PACKED : STRATEGY_DISTRIBUTED));

				assert_int_equal(tpcset_count(&next), chunk);
				used = tpcset_or(&used, &next);
			}
			assert_true(tpcset_is_subset(&used, &all));
		}
	}
}

TEST(a_gpu_whose_gpcs_are_unknown)
{
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		list.gpus[0].tpcs[tpc].gpc = list.gpus[0].tpcs[tpc].virtual_gpc = TOPOLOGY_UNKNOWN;
	struct tpcset set = parse(choose("0-7", 30, STRATEGY_PACKED));

	assert_int_equal(tpcset_count(&set), 30);
}

TEST(numbers_and_shares)
{
	static const struct {
		const char *text;
		unsigned int count;
	} right[] = {{"1", 1}, {"66", 66}, {"57%", 37}, {"25%", 16}, {"75%", 49}, {"1%", 1}, {"50%", 33}, {"100%", 66}};
	static const char *const wrong[][2] = {
		{"0", "0 TPCs: a program without TPCs would never run"},
		{"67", "67 TPCs: this GPU has 66"},
		{"99999999999999999999999", "99999999999999999999999 TPCs: this GPU has 66"},
		{"0%", "0%: must be 1%-100%"},
		{"101%", "101%: must be 1%-100%"},
	};
	static const char *const no_number[] = {"", "-3", "+3", "3x", "3%%", "%", "5.5%"};
	unsigned int count;

	for (size_t i = 0; i < COUNT_OF(right); i++) {
		assert_int_equal(select_parse_count(&count, right[i].text, gpu, &error), 0);
		assert_int_equal(count, right[i].count);
	}
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_error(select_parse_count(&count, wrong[i][0], gpu, &error), wrong[i][1]);
	for (size_t i = 0; i < COUNT_OF(no_number); i++)
		assert_error(select_parse_count(&count, no_number[i], gpu, &error),
		             text_of("'%s': not a number of TPCs such as 20 or 57%%", no_number[i]));
}

/* -n 25% and -n 75%: of any two shares that make 100% together, on every GPU of two TPCs or more. */
TEST(two_shares_of_everything_fit)
{
	for (unsigned int total = 2; total <= TPCSET_MAX; total++) {
		const struct topology any = {.tpc_count = total};

		for (unsigned int percent = 1; percent < 100; percent++) {
			unsigned int one = 0, other = 0;

			assert_int_equal(select_parse_count(&one, text_of("%u%%", percent), &any, &error), 0);
			assert_int_equal(select_parse_count(&other, text_of("%u%%", 100 - percent), &any, &error), 0);
			assert_true(one >= 1 && other >= 1 && one + other <= total);
			/* No share is more than one TPC too small. */
			assert_true(100 * (one + 1) > percent * total);
		}
	}
}

RUN_TESTS(begin, NULL)
