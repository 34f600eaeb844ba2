/* Sets of TPCs, GPCs and mask bits of a GPU; bus ids. */
#include "gpu/topology/topology.h"
#include "share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct topology_list list;

static void assert_list(const struct tpcset *set, const char *expected)
{
	char text[TPCSET_TEXT];

	assert_string_equal(tpcset_format_list(set, text), expected);
}

/* docs/facts.md, "Mask bits": P = 8, S = 9. */
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
	const struct topology *gpu = share_read(&list, "h200");
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
	const struct topology *gpu = share_read(&list, "h200");
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

/* TPC 65 has bit 83, which such a mask does not have. */
static void test_disable_mask_narrower_than_the_gpu(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");
	struct tpcset all = topology_all(gpu);
	uint64_t words[2] = {0, 42};

	(void)state;
	topology_disable_mask(gpu, &all, words, 64);
	assert_true(words[0] == UINT64_C(0x201008040201f0));
	assert_true(words[1] == 42);
}

static void test_virtual_gpcs_are_unknown_before_hopper(void **state)
{
	const struct topology *gpu = share_read(&list, "ada");

	(void)state;
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		assert_int_equal(gpu->tpcs[tpc].virtual_gpc, TOPOLOGY_UNKNOWN);
		assert_int_equal(gpu->tpcs[tpc].mask_bit, tpc);
	}
}

/* Wrong topologies that a driver could report; the reader of files refuses most of them itself. */
static void test_validate(void **state)
{
	const struct topology *good = share_read(&list, "h200");
	struct topology gpu = *good;
	struct error error = {.reason = ""};

	(void)state;
	assert_int_equal(topology_validate(&gpu, NULL), 0);
#define assert_refused(change, expected)                                 \
	do {                                                             \
		gpu = *good;                                             \
		change;                                                  \
		assert_int_equal(topology_validate(&gpu, &error), -1);   \
		assert_string_equal(error.reason, expected);             \
	} while (0)
	assert_refused(gpu.pci.bus = 256, "PCI bus: 256, must be 0-255");
	assert_refused(gpu.pci.device = 32, "PCI device: 32, must be 0-31");
	assert_refused(gpu.compute_minor = 10, "compute capability, behind the point: 10, must be 0-9");
	assert_refused(gpu.tpc_count = TPCSET_MAX + 1, "TPCs: 257, must be 1-256");
	assert_refused(gpu.tpc_limit = TPCSET_MAX + 1, "room for TPCs in a GPC: 257, must be 1-256");
	assert_refused(gpu.tpcs[7].mask_bit = 256, "TPC 7: mask bit 256 is beyond 255");
	assert_refused(memset(gpu.name, 'x', sizeof gpu.name), "name: longer than 63 characters");
	assert_refused(memset(gpu.uuid, 'x', sizeof gpu.uuid), "UUID: longer than 47 characters");
	assert_refused(strcpy(gpu.name, " x"), "name: a space in front");
	assert_refused(strcpy(gpu.name, "x\ny"), "name: a control character");
	assert_refused(strcpy(gpu.uuid, "GPU 1"), "UUID: a space in it");
#undef assert_refused
}

/* A copy at the end of a page, before unreadable memory. */
static char *guarded(const char *text)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = strlen(text) + 1;
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	return memcpy(pages + page - size, text, size);
}

static void test_bus_ids_cut_anywhere(void **state)
{
	static const char whole[] = "00000000:3b:00.0";
	struct pci_address pci;

	(void)state;
	for (size_t length = 0; length < sizeof whole; length++) {
		char text[sizeof whole] = "";

		memcpy(text, whole, length);
		assert_int_equal(pci_address_parse(&pci, guarded(text), NULL),
		                 length == sizeof whole - 1 ? 0 : -1);
	}
}

static void test_bus_ids_in_order(void **state)
{
	static const char *const rising[] = {"00:00.0", "00:1f.0", "01:00.0", "ff:00.0", "1:00:00.0",
	                                     "ffffffff:ff:1f.0"};
	const size_t count = sizeof rising / sizeof rising[0];

	(void)state;
	for (size_t i = 0; i < count * count; i++) {
		struct pci_address a, b;

		assert_int_equal(pci_address_parse(&a, rising[i / count], NULL), 0);
		assert_int_equal(pci_address_parse(&b, rising[i % count], NULL), 0);
		assert_int_equal(pci_address_compare(a, b),
		                 (i / count > i % count) - (i / count < i % count));
		assert_int_equal(pci_address_equal(a, b), i / count == i % count);
	}
}

static void test_bus_ids(void **state)
{
	static const char *const good[] = {"0000:3b:00.0", "3b:00.0", "00000000:3B:00.0"};
	static const char *const bad[] = {"",         "3b",        "3b:00",      "3b:00.1",
	                                  "3b:20.0",  "x:3b:00.0", "3b:00.0 ",   "123456789:3b:00.0",
	                                  ":3b:00.0", "3b::00.0",  "0000:3b:00", "000:3bb:0.0"};
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
		cmocka_unit_test(test_disable_mask_narrower_than_the_gpu),
		cmocka_unit_test(test_virtual_gpcs_are_unknown_before_hopper),
		cmocka_unit_test(test_validate),
		cmocka_unit_test(test_bus_ids),
		cmocka_unit_test(test_bus_ids_cut_anywhere),
		cmocka_unit_test(test_bus_ids_in_order),
	};

	return cmocka_run_group_tests_name("topology_model", tests, NULL, NULL);
}
