/* Choosing a number of TPCs. */
#include "gpu/select_tpcs.h"
#include "sets.h"
#include "share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct topology_list list;

/* The chosen TPCs, as a list; "" if there are not enough. */
static const char *choose(const struct topology *gpu, const char *used, unsigned int count, enum strategy strategy)
{
	static char text[TPCSET_TEXT];
	struct tpcset set = {{0}}, taken = parse(used);
	struct error error;

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

static void test_whole_gpc_if_count_matches(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");
	char text[TPCSET_TEXT];

	(void)state;
	for (unsigned int gpc = 0; gpc < 8; gpc++) {
		struct tpcset all = topology_all(gpu), members = topology_gpc(gpu, gpc);
		struct tpcset others = tpcset_without(&all, &members);
		char used[TPCSET_TEXT];

		tpcset_format_list(&others, used);
		assert_string_equal(choose(gpu, used, tpcset_count(&members), STRATEGY_PACKED),
		                    tpcset_format_list(&members, text));
	}
}

static void test_whole_gpcs_first(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");
	unsigned int whole;

	(void)state;
	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 8, STRATEGY_PACKED), &whole), 1);
	assert_int_equal(whole, 1);
	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 20, STRATEGY_PACKED), &whole), 3);
	assert_int_equal(whole, 2);
	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 3, STRATEGY_PACKED), &whole), 1);
	assert_int_equal(gpcs_of(gpu, choose(gpu, "", 66, STRATEGY_PACKED), &whole), 8);
	assert_int_equal(whole, 8);
}

/* A few TPCs are taken from a GPC that is in use, so that free GPCs stay whole. */
static void test_rest_goes_to_tightest_gpc(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");
	struct tpcset gpc = topology_gpc(gpu, 3), chosen;
	char used[TPCSET_TEXT];
	unsigned int first = tpcset_next(&gpc, 0);

	(void)state;
	snprintf(used, sizeof used, "%u", first);
	chosen = parse(choose(gpu, used, 2, STRATEGY_PACKED));
	assert_true(tpcset_is_subset(&chosen, &gpc));
}

/* Of two GPCs in use, the one with less room is taken, whatever its number. */
static void test_rest_prefers_fuller_gpc(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");

	(void)state;
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

static void test_fragments_as_last_resort(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");

	(void)state;
	/* One TPC of each GPC is free. */
	assert_string_equal(choose(gpu, "8-65", 8, STRATEGY_PACKED), "0-7");
	assert_string_equal(choose(gpu, "8-65", 8, STRATEGY_DISTRIBUTED), "0-7");
	assert_string_equal(choose(gpu, "8-65", 9, STRATEGY_PACKED), "");
}

static void test_distributed_is_even(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");

	(void)state;
	for (unsigned int count = 1; count <= 56; count++) {
		struct tpcset set = parse(choose(gpu, "", count, STRATEGY_DISTRIBUTED));
		unsigned int least = TPCSET_MAX, most = 0;

		for (unsigned int gpc = 0; gpc < 8; gpc++) {
			struct tpcset members = topology_gpc(gpu, gpc), both = tpcset_and(&set, &members);
			unsigned int taken = tpcset_count(&both);

			least = taken < least ? taken : least;
			most = taken > most ? taken : most;
		}
		assert_in_range(most - least, 0, 1);
	}
}

/* Clusters have room in a virtual GPC; singletons are taken when that is used up. */
static void test_singletons_last(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");
	struct tpcset gpc = topology_gpc(gpu, 1), all = topology_all(gpu), others = tpcset_without(&all, &gpc);
	char used[TPCSET_TEXT];

	(void)state;
	assert_string_equal(choose(gpu, tpcset_format_list(&others, used), 4, STRATEGY_PACKED), "0,8,16,24");
}

/* All TPCs of one GPU are taken in chunks, until none is left: none is taken twice. */
static void test_every_tpc_is_found(void **state)
{
	static const char *const names[] = {"h200", "turing", "ada", "hopper-synthetic", "blackwell"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
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

static void test_a_gpu_whose_gpcs_are_unknown(void **state)
{
	struct topology gpu = *share_read(&list, "h200");

	(void)state;
	for (unsigned int tpc = 0; tpc < gpu.tpc_count; tpc++)
		gpu.tpcs[tpc].gpc = gpu.tpcs[tpc].virtual_gpc = TOPOLOGY_UNKNOWN;
	struct tpcset set = parse(choose(&gpu, "0-7", 30, STRATEGY_PACKED));

	assert_int_equal(tpcset_count(&set), 30);
}

static void test_too_few_are_free(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");
	struct tpcset set, used = parse("0-41");
	struct error error;

	(void)state;
	assert_int_equal(select_tpcs(&set, gpu, &used, 25, STRATEGY_PACKED, &error), -1);
	assert_string_equal(error.reason, "25 TPCs: of this GPU's 66 only 24 are free: 42-65");
	used = topology_all(gpu);
	assert_int_equal(select_tpcs(&set, gpu, &used, 1, STRATEGY_PACKED, &error), -1);
	assert_string_equal(error.reason, "1 TPC: none of this GPU's 66 is free; see nvtaskset -l");
}

static void test_numbers_and_shares(void **state)
{
	static const struct {
		const char *text;
		unsigned int count; /* 0: refused */
		const char *reason;
	} cases[] = {
		{"1", 1, NULL},
		{"66", 66, NULL},
		{"57%", 38, NULL},
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

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		unsigned int count = 0;
		struct error error;
		int result = select_parse_count(&count, cases[i].text, gpu, &error);

		assert_int_equal(result, cases[i].count ? 0 : -1);
		if (result == 0)
			assert_int_equal(count, cases[i].count);
		else
			assert_string_equal(error.reason, cases[i].reason);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_gpc_if_count_matches),
		cmocka_unit_test(test_whole_gpcs_first),
		cmocka_unit_test(test_rest_goes_to_tightest_gpc),
		cmocka_unit_test(test_rest_prefers_fuller_gpc),
		cmocka_unit_test(test_fragments_as_last_resort),
		cmocka_unit_test(test_distributed_is_even),
		cmocka_unit_test(test_singletons_last),
		cmocka_unit_test(test_every_tpc_is_found),
		cmocka_unit_test(test_a_gpu_whose_gpcs_are_unknown),
		cmocka_unit_test(test_too_few_are_free),
		cmocka_unit_test(test_numbers_and_shares),
	};

	return cmocka_run_group_tests_name("select_tpcs", tests, NULL, NULL);
}
