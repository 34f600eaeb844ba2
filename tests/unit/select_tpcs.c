/* Choosing a number of TPCs. */
#include "../cases.h"
#include "gpu/topology/select_tpcs.h"
#include "sets.h"
#include "share.h"

static struct error error;

static struct topology_list list;

/* The chosen TPCs, as a list; "" if there are not enough. */
static const char *choose(const struct topology *gpu, const char *used, unsigned int count, enum strategy strategy)
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

static unsigned int gpcs_of(const struct topology *gpu, const char *text, unsigned int *whole)
{
	struct tpcset set = parse(text);
	unsigned int touched = 0;

	*whole = 0;
	for (unsigned int gpc = 0; gpc < TOPOLOGY_GPCS_MAX; gpc++) {
		struct tpcset members = topology_gpc(gpu, gpc), both = tpcset_and(&set, &members);

		touched += !tpcset_is_empty(&both);
		*whole += !tpcset_is_empty(&members) && tpcset_equal(&both, &members);
	}
	return touched;
}

TEST(whole_gpcs_first)
{
	const struct topology *gpu = share_read(&list, "h200");
	unsigned int whole;

	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 8, STRATEGY_PACKED), &whole), 1);
	assert_int_equal(whole, 1);
	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 20, STRATEGY_PACKED), &whole), 3);
	assert_int_equal(whole, 2);
	/* The largest ones: two GPCs have 9, the others 8. */
	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 18, STRATEGY_PACKED), &whole), 2);
	assert_int_equal(whole, 2);
	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 3, STRATEGY_PACKED), &whole), 1);
	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 66, STRATEGY_PACKED), &whole), 8);
	assert_int_equal(whole, 8);
}

/* Of two GPCs in use, the one with less room is taken, whatever its number. */
TEST(rest_prefers_fuller_gpc)
{
	const struct topology *gpu = share_read(&list, "h200");

	for (unsigned int full = 2; full < 4; full++) {
		struct tpcset gpc = topology_gpc(gpu, full), other = topology_gpc(gpu, 5 - full), used = {{0}}, chosen;
		char text[TPCSET_TEXT];

		tpcset_add(&used, tpcset_next(&other, 0));
		for (unsigned int tpc = tpcset_next(&gpc, 0); tpcset_count(&used) < 5; tpc = tpcset_next(&gpc, tpc + 1))
			tpcset_add(&used, tpc);
		chosen = parse(choose(gpu, tpcset_format_list(&used, text), 2, STRATEGY_PACKED));
		assert_true(tpcset_is_subset(&chosen, &gpc));
	}
}

TEST(fragments_as_last_resort)
{
	const struct topology *gpu = share_read(&list, "h200");

	/* One TPC of each GPC is free. */
	assert_string_equal(choose(gpu, "8-65", 8, STRATEGY_PACKED), "0-7");
	assert_string_equal(choose(gpu, "8-65", 8, STRATEGY_DISTRIBUTED), "0-7");
	assert_string_equal(choose(gpu, "8-65", 9, STRATEGY_PACKED), "");
}

/* Clusters of 8 blocks find as much room as so many TPCs can have, in as many virtual GPCs as possible. */
TEST(distributed_in_chunks)
{
	const struct topology *gpu = share_read(&list, "h200");

	for (unsigned int count = 1; count <= 66; count++) {
		struct tpcset set = parse(choose(gpu, "", count, STRATEGY_DISTRIBUTED));
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
	const struct topology *gpu = share_read(&list, "h200");
	static const struct {
		const char *used, *chosen;
		unsigned int count;
	} cases[] = {
		{"", "6", 1},
		{"0,8", "16", 1},
		{"0,8", "16,24", 2},
		{"0,6-65", "1", 1},
		{"0,6-65", "1-5", 5},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_string_equal(choose(gpu, cases[i].used, cases[i].count, STRATEGY_DISTRIBUTED), cases[i].chosen);
}

/* Clusters have room in a virtual GPC; singletons are taken when that is used up. */
TEST(singletons_last)
{
	const struct topology *gpu = share_read(&list, "h200");
	struct tpcset gpc = topology_gpc(gpu, 1), all = topology_all(gpu), others = tpcset_without(&all, &gpc);
	char used[TPCSET_TEXT];

	assert_string_equal(choose(gpu, tpcset_format_list(&others, used), 4, STRATEGY_PACKED), "0,8,16,24");
}

/* All TPCs of one GPU are taken in chunks, until none is left: none is taken twice. */
TEST(every_tpc_is_found)
{
	static const char *const names[] = {"h200", "turing", "ada", "hopper-synthetic", "blackwell"};

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		for (unsigned int chunk = 1; chunk < 12; chunk++) {
			const struct topology *gpu = share_read(&list, names[i]);
			struct tpcset used = {{0}}, all = topology_all(gpu);

			while (tpcset_count(&used) + chunk <= gpu->tpc_count) {
				char text[TPCSET_TEXT];
				struct tpcset next = parse(choose(gpu, tpcset_format_list(&used, text), chunk,
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
	struct topology gpu = *share_read(&list, "h200");

	for (unsigned int tpc = 0; tpc < gpu.tpc_count; tpc++)
		gpu.tpcs[tpc].gpc = gpu.tpcs[tpc].virtual_gpc = TOPOLOGY_UNKNOWN;
	struct tpcset set = parse(choose(&gpu, "0-7", 30, STRATEGY_PACKED));

	assert_int_equal(tpcset_count(&set), 30);
}

TEST(numbers_and_shares)
{
	static const struct {
		const char *text;
		unsigned int count;
		const char *reason; /* NULL: accepted */
	} cases[] = {
		{"1", 1, NULL},
		{"66", 66, NULL},
		{"57%", 37, NULL},
		{"25%", 16, NULL},
		{"75%", 49, NULL},
		{"1%", 1, NULL},
		{"50%", 33, NULL},
		{"100%", 66, NULL},
		{"0", 0, "0 TPCs: a program without TPCs would never run"},
		{"67", 0, "67 TPCs: this GPU has 66"},
		{"99999999999999999999999", 0, "99999999999999999999999 TPCs: this GPU has 66"},
		{"0%", 0, "0%: must be 1%-100%"},
		{"101%", 0, "101%: must be 1%-100%"},
		{"", 0, "'': not a number of TPCs such as 20 or 57%"},
		{"-3", 0, "'-3': not a number of TPCs such as 20 or 57%"},
		{"+3", 0, "'+3': not a number of TPCs such as 20 or 57%"},
		{"3x", 0, "'3x': not a number of TPCs such as 20 or 57%"},
		{"3%%", 0, "'3%%': not a number of TPCs such as 20 or 57%"},
		{"%", 0, "'%': not a number of TPCs such as 20 or 57%"},
		{"5.5%", 0, "'5.5%': not a number of TPCs such as 20 or 57%"},
	};
	const struct topology *gpu = share_read(&list, "h200");

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		unsigned int count = 0;

		if (cases[i].reason) {
			assert_error(select_parse_count(&count, cases[i].text, gpu, &error), cases[i].reason);
			continue;
		}
		assert_int_equal(select_parse_count(&count, cases[i].text, gpu, &error), 0);
		assert_int_equal(count, cases[i].count);
	}
}

/* -n 25% and -n 75%: of any two shares that make 100% together, on every GPU of two TPCs or more. */
TEST(two_shares_of_everything_fit)
{
	for (unsigned int total = 2; total <= TPCSET_MAX; total++) {
		const struct topology gpu = {.tpc_count = total};

		for (unsigned int percent = 1; percent < 100; percent++) {
			unsigned int one = 0, other = 0;
			char text[8];

			snprintf(text, sizeof text, "%u%%", percent);
			assert_int_equal(select_parse_count(&one, text, &gpu, &error), 0);
			snprintf(text, sizeof text, "%u%%", 100 - percent);
			assert_int_equal(select_parse_count(&other, text, &gpu, &error), 0);
			assert_true(one >= 1 && other >= 1);
			assert_true(one + other <= total);
			/* No share is more than one TPC too small. */
			assert_true(100 * (one + 1) > percent * total);
		}
	}
}

RUN_TESTS(NULL, NULL)
