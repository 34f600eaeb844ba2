/* Sets of TPCs, GPCs and mask bits of a GPU; bus ids. */
#include "topology/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static struct topology_list list;

static const struct topology *read_gpu(const char *path)
{
	struct error error = {.reason = ""};
	FILE *file = fopen(path, "r");

	if (!file || topology_read(&list, file, path, &error) < 0)
		fail_msg("%s: %s", path, error.reason);
	fclose(file);
	return &list.gpus[0];
}

static void assert_list(const struct tpcset *set, const char *expected)
{
	char text[TPCSET_TEXT];

	assert_string_equal(tpcset_format_list(set, text), expected);
}

/* FACTS 4: P = 8, S = 9. */
static void test_rule_of_mask_bits(void **state)
{
	struct topology hopper = {.compute_major = 9, .gpc_limit = 8, .tpc_limit = 9};
	struct topology ada = {.compute_major = 8, .compute_minor = 9, .gpc_limit = 12, .tpc_limit = 6};

	(void)state;
	assert_int_equal(topology_mask_bit(&hopper, 0, 0, 0), 0);
	assert_int_equal(topology_mask_bit(&hopper, 1, 1, 0), 9);
	assert_int_equal(topology_mask_bit(&hopper, 61, 7, 8), 71);
	assert_int_equal(topology_mask_bit(&hopper, 62, 11, 0), 75);
	assert_int_equal(topology_mask_bit(&hopper, 65, 19, 3), 83);
	assert_int_equal(topology_mask_bit(&ada, 17, 3, 2), 17);
}

static void test_gpcs_of_the_h200(void **state)
{
	const struct topology *gpu = read_gpu("share/topologies/h200.txt");
	struct tpcset set = topology_gpc(gpu, 1);

	(void)state;
	assert_list(&set, "0,8,16,24,62-65");
	set = topology_virtual_gpc(gpu, 0);
	assert_list(&set, "0,8,16,24");
	set = topology_virtual_gpc(gpu, 11);
	assert_list(&set, "62");
	set = topology_gpc(gpu, 8);
	assert_list(&set, "");
	set = topology_gpc(gpu, TOPOLOGY_UNKNOWN);
	assert_list(&set, "");
	set = topology_all(gpu);
	assert_list(&set, "0-65");
}

static void test_disable_mask_of_the_h200(void **state)
{
	const struct topology *gpu = read_gpu("share/topologies/h200.txt");
	struct tpcset set = {{0}};
	uint64_t words[TOPOLOGY_MASK_BITS / 64];

	(void)state;
	tpcset_add(&set, 0);
	tpcset_add(&set, 1);
	tpcset_add(&set, 65);
	topology_disable_mask(gpu, &set, words, TOPOLOGY_MASK_BITS);
	assert_true(words[0] == UINT64_C(0xfffffffffffffdfe));
	assert_true(words[1] == UINT64_C(0xfffffffffff7ffff));
	assert_true(words[2] == UINT64_MAX && words[3] == UINT64_MAX);
}

static void test_virtual_gpcs_are_unknown_before_hopper(void **state)
{
	const struct topology *gpu = read_gpu("share/topologies/ada.txt");

	(void)state;
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		assert_int_equal(gpu->tpcs[tpc].virtual_gpc, TOPOLOGY_UNKNOWN);
		assert_int_equal(gpu->tpcs[tpc].mask_bit, tpc);
	}
}

static void test_bus_ids(void **state)
{
	static const char *const good[] = {"0000:3b:00.0", "3b:00.0", "00000000:3B:00.0"};
	static const char *const bad[] = {"",           "3b",        "3b:00",          "3b:00.1", "3b:20.0",
	                                  "x:3b:00.0",  "3b:00.0 ",  "123456789:3b:00.0", ":3b:00.0", "3b::00.0",
	                                  "0000:3b:00", "000:3bb:0.0"};
	struct pci_address pci;
	char text[PCI_ADDRESS_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(pci_address_parse(&pci, good[i], NULL), 0);
		assert_string_equal(pci_address_format(pci, text), "0000:3b:00.0");
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct error error = {.reason = ""};

		assert_int_equal(pci_address_parse(&pci, bad[i], &error), -1);
		assert_non_null(strstr(error.reason, "not a bus id"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rule_of_mask_bits),
		cmocka_unit_test(test_gpcs_of_the_h200),
		cmocka_unit_test(test_disable_mask_of_the_h200),
		cmocka_unit_test(test_virtual_gpcs_are_unknown_before_hopper),
		cmocka_unit_test(test_bus_ids),
	};

	return cmocka_run_group_tests_name("topology_model", tests, NULL, NULL);
}
