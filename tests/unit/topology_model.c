/* Sets of TPCs, GPCs and mask bits of a GPU; bus ids. */
#include "../cases.h"
#include "gpu/topology/topology.h"
#include "share.h"

static struct topology_list list;

/* facts.md, "Mask bits": P = 8, S = 9. */
TEST(rule_of_mask_bits)
{
	struct topology hopper = {.compute_major = 9, .gpc_limit = 8, .tpc_limit = 9};
	struct topology ada = {.compute_major = 8, .compute_minor = 9, .gpc_limit = 12, .tpc_limit = 6};

	assert_each(topology_mask_bit(&hopper, 0, 0, 0), 0, topology_mask_bit(&hopper, 1, 1, 0), 9);
	assert_each(topology_mask_bit(&hopper, 61, 7, 8), 71, topology_mask_bit(&hopper, 62, 11, 0), 75);
	assert_each(topology_mask_bit(&hopper, 65, 19, 3), 83, topology_mask_bit(&ada, 17, 3, 2), 17);
}

TEST(disable_mask_of_the_h200)
{
	const struct topology *gpu = share_read(&list, "h200");
	struct tpcset set = {{0}};
	uint64_t words[TOPOLOGY_MASK_BITS / 64];

	tpcset_add_range(&set, 0, 1);
	tpcset_add(&set, 65);
	topology_disable_mask(gpu, &set, words, TOPOLOGY_MASK_BITS);
	assert_each(words[0], 0xfffffffffffffdfe, words[1], 0xfffffffffff7ffff, words[2], UINT64_MAX, words[3], UINT64_MAX);
}

TEST(virtual_gpcs_are_unknown_before_hopper)
{
	const struct topology *gpu = share_read(&list, "ada");

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		assert_each(gpu->tpcs[tpc].virtual_gpc, TOPOLOGY_UNKNOWN, gpu->tpcs[tpc].mask_bit, tpc);
}

/* Wrong topologies that a driver could report; the reader of files refuses most of them itself. */
TEST(validate)
{
	const struct topology *good = share_read(&list, "h200");
	struct topology gpu = *good;
	struct error error;

	assert_int_equal(topology_validate(&gpu, NULL), 0);
#define assert_refused(change, expected) (gpu = *good, change, assert_error(topology_validate(&gpu, &error), expected))
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

TEST(bus_ids_in_order)
{
	static const char *const rising[] = {"00:00.0", "00:1f.0", "01:00.0", "ff:00.0", "1:00:00.0", "ffffffff:ff:1f.0"};
	const size_t count = COUNT_OF(rising);

	for (size_t i = 0; i < count * count; i++) {
		struct pci_address a, b;

		assert_int_equal(pci_address_parse(&a, rising[i / count], NULL), 0);
		assert_int_equal(pci_address_parse(&b, rising[i % count], NULL), 0);
		assert_int_equal(pci_address_compare(a, b), (i / count > i % count) - (i / count < i % count));
		assert_int_equal(pci_address_equal(a, b), i / count == i % count);
	}
}

TEST(bus_ids)
{
	static const char *const good[] = {"0000:3b:00.0", "3b:00.0", "00000000:3B:00.0"};
	static const char *const bad[] = {"", "3b", "3b:00", "3b:00.1", "3b:20.0", "x:3b:00.0", "3b:00.0 ", "123456789:3b:00.0",
	                                  ":3b:00.0", "3b::00.0", "0000:3b:00", "000:3bb:0.0"};
	struct pci_address pci;
	struct error error;
	char text[PCI_ADDRESS_TEXT];

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		assert_int_equal(pci_address_parse(&pci, good[i], NULL), 0);
		assert_string_equal(pci_address_format(pci, text), "0000:3b:00.0");
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_error_has(pci_address_parse(&pci, bad[i], &error), "not a bus id");
}

RUN_TESTS(NULL, NULL)
