/* Launch descriptors of every version: which bits change, which stay, and which descriptors stay unchanged. */
#include "gpu/qmd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define QMD_BYTES 512

union descriptor {
	uint8_t bytes[QMD_BYTES];
	uint32_t words[QMD_BYTES / 4];
};

/* A descriptor of each generation, as the published headers lay it out. */
struct generation {
	unsigned int major, minor;
	unsigned int version_byte, version;
	unsigned int mask_byte, mask_words;
	unsigned int valid_byte; /* of the dword whose bit 31 makes the mask count; 0xffff: none */
};

static const struct generation generations[] = {
	{3, 5, 72, 0x17, 84, 2, 0xffff}, {5, 2, 72, 0x17, 84, 2, 0xffff}, {6, 0, 72, 0x20, 84, 2, 0xffff},
	{7, 0, 72, 0x22, 84, 2, 0xffff}, {7, 5, 72, 0x23, 84, 2, 0xffff}, {8, 0, 72, 0x30, 84, 2, 0xffff},
	{8, 9, 72, 0x30, 84, 2, 0xffff}, {9, 0, 72, 0x40, 304, 4, 0},     {10, 0, 58, 0x50, 280, 4, 16},
	{12, 0, 58, 0x50, 280, 4, 16},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static union descriptor make(const struct generation *generation)
{
	union descriptor descriptor;

	memset(&descriptor, 0, sizeof descriptor);
	descriptor.bytes[generation->version_byte] = (uint8_t)generation->version;
	return descriptor;
}

static void set_mask(union descriptor *descriptor, const struct generation *generation, uint32_t word)
{
	for (unsigned int i = 0; i < generation->mask_words; i++)
		descriptor->words[generation->mask_byte / 4 + i] = word;
	if (generation->valid_byte != 0xffff)
		descriptor->words[generation->valid_byte / 4] |= UINT32_C(1) << 31;
}

static struct qmd_mask all_words(uint32_t word)
{
	uint64_t both = (uint64_t)word << 32 | word;

	return (struct qmd_mask){{both, both}};
}

static void test_mask_lands_where_the_version_has_it(void **state)
{
	(void)state;
	for (size_t g = 0; g < COUNT(generations); g++) {
		const struct generation *generation = &generations[g];
		const struct qmd_family *family = qmd_family_for(generation->major, generation->minor);
		union descriptor descriptor = make(generation), expected = descriptor;

		struct qmd_mask disable = all_words(0xfffffff0);
		assert_non_null(family);
		assert_int_equal(qmd_mask_bits(family), generation->mask_words * 32);
		assert_int_equal(qmd_disable(family, &descriptor, &disable, NULL), QMD_NARROWED);
		set_mask(&expected, generation, 0xfffffff0);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

static void test_drivers_mask_is_kept(void **state)
{
	(void)state;
	for (size_t g = 0; g < COUNT(generations); g++) {
		const struct generation *generation = &generations[g];
		union descriptor descriptor = make(generation), expected = descriptor;

		set_mask(&descriptor, generation, 0x0000ff00);
		struct qmd_mask disable = all_words(0x000000f0);
		assert_int_equal(qmd_disable(qmd_family_for(generation->major, generation->minor), &descriptor,
		                             &disable, NULL),
		                 QMD_NARROWED);
		set_mask(&expected, generation, 0x0000fff0);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

static void test_mask_without_valid_bit_does_not_count(void **state)
{
	(void)state;
	for (size_t g = 0; g < COUNT(generations); g++) {
		const struct generation *generation = &generations[g];
		union descriptor descriptor = make(generation), expected = descriptor;

		if (generation->valid_byte == 0xffff)
			continue;
		descriptor.words[generation->mask_byte / 4] = 0xdeadbeef;
		struct qmd_mask disable = all_words(0x000000f0);
		assert_int_equal(qmd_disable(qmd_family_for(generation->major, generation->minor), &descriptor,
		                             &disable, NULL),
		                 QMD_NARROWED);
		set_mask(&expected, generation, 0x000000f0);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

/* Both masks together would leave nothing, and the kernel would hang. */
static void test_disjoint_masks(void **state)
{
	(void)state;
	for (size_t g = 0; g < COUNT(generations); g++) {
		const struct generation *generation = &generations[g];
		union descriptor descriptor = make(generation), expected = descriptor;

		set_mask(&descriptor, generation, 0xffff0000);
		struct qmd_mask disable = all_words(0x0000ffff);
		assert_int_equal(qmd_disable(qmd_family_for(generation->major, generation->minor), &descriptor,
		                             &disable, NULL),
		                 QMD_OVERRULED);
		set_mask(&expected, generation, 0x0000ffff);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

/* Only bits beyond the first 64 are left. */
static void test_masks_overlap_beyond_64_bits(void **state)
{
	(void)state;
	for (size_t g = 0; g < COUNT(generations); g++) {
		const struct generation *generation = &generations[g];
		union descriptor descriptor = make(generation), expected = descriptor;
		struct qmd_mask disable = {{UINT64_C(0x00000000ffffffff), 0}};

		if (generation->mask_words < 4)
			continue;
		set_mask(&descriptor, generation, 0);
		descriptor.words[generation->mask_byte / 4 + 1] = 0xffffffff;
		set_mask(&expected, generation, 0);
		memset(&expected.bytes[generation->mask_byte], 0xff, 8);
		assert_int_equal(qmd_disable(qmd_family_for(generation->major, generation->minor), &descriptor,
		                             &disable, NULL),
		                 QMD_NARROWED);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

/* The former mask does not matter. */
static void test_set_mask_ignores_former_mask(void **state)
{
	(void)state;
	for (size_t g = 0; g < COUNT(generations); g++) {
		const struct generation *generation = &generations[g];
		union descriptor descriptor = make(generation), expected = descriptor;
		struct qmd_mask disable = all_words(0x000000f0);

		set_mask(&descriptor, generation, 0xffff0000);
		qmd_set_mask(qmd_family_for(generation->major, generation->minor), &descriptor, &disable);
		set_mask(&expected, generation, 0x000000f0);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		descriptor = make(generation);
		qmd_set_mask(qmd_family_for(generation->major, generation->minor), &descriptor, &disable);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

static void test_unknown_versions_are_not_touched(void **state)
{
	static const struct {
		unsigned int major, minor, byte, version;
	} unknown[] = {{7, 5, 72, 0x06}, {7, 5, 72, 0x15}, {8, 9, 72, 0x31}, {8, 9, 72, 0x40}, {8, 9, 72, 0x00},
	               {9, 0, 72, 0x30}, {9, 0, 72, 0x3f}, {9, 0, 72, 0x42}, {9, 0, 72, 0x50}, {9, 0, 58, 0x40},
	               {10, 0, 58, 0x40}, {10, 0, 58, 0x4f}, {10, 0, 58, 0x51}, {12, 0, 72, 0x50}};

	(void)state;
	for (size_t i = 0; i < COUNT(unknown); i++) {
		union descriptor descriptor, before;

		memset(&descriptor, 0, sizeof descriptor);
		descriptor.bytes[unknown[i].byte] = (uint8_t)unknown[i].version;
		before = descriptor;
		struct qmd_mask disable = all_words(UINT32_MAX - 1);
		assert_int_equal(
			qmd_disable(qmd_family_for(unknown[i].major, unknown[i].minor), &descriptor, &disable, NULL),
			QMD_UNKNOWN_VERSION);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

/* A graph's descriptor is uploaded again: it must be as the driver wrote it. */
static void test_restored_as_it_was(void **state)
{
	(void)state;
	for (size_t g = 0; g < COUNT(generations); g++) {
		for (unsigned int own = 0; own < 2; own++) {
			const struct generation *generation = &generations[g];
			const struct qmd_family *family = qmd_family_for(generation->major, generation->minor);
			union descriptor descriptor = make(generation), before;
			struct qmd_mask disable = all_words(0x000000f0);

			if (own)
				set_mask(&descriptor, generation, 0x0000ff00);
			before = descriptor;
			struct qmd_saved saved = qmd_save(family, &descriptor);

			assert_true(qmd_is_known(family, &descriptor));
			assert_int_equal(qmd_disable(family, &descriptor, &disable, NULL), QMD_NARROWED);
			qmd_restore(family, &descriptor, &saved);
			assert_memory_equal(&descriptor, &before, sizeof descriptor);
		}
	}
}

/* The positions of clusters and cooperative grids in the published headers. */
static void test_launches_that_must_fit(void **state)
{
	static const struct {
		unsigned int major, version_byte, version, cluster_byte, cooperative_byte, threads_byte;
	} layouts[] = {{9, 72, 0x40, 268, 276, 144}, {10, 58, 0x50, 256, 264, 136}};

	(void)state;
	for (size_t i = 0; i < COUNT(layouts); i++) {
		const struct qmd_family *family = qmd_family_for(layouts[i].major, 0);
		struct qmd_mask disable = all_words(0x000000f0);
		union descriptor cluster, cooperative, before;

		memset(&cluster, 0, sizeof cluster);
		cluster.bytes[layouts[i].version_byte] = (uint8_t)layouts[i].version;
		cooperative = cluster;
		cluster.bytes[layouts[i].cluster_byte] = 4;
		cluster.bytes[layouts[i].cluster_byte + 1] = 2;
		cluster.bytes[layouts[i].cluster_byte + 2] = 1;
		before = cluster;
		assert_int_equal(qmd_disable(family, &cluster, &disable, NULL), QMD_MUST_FIT);
		assert_memory_equal(&cluster, &before, sizeof cluster);
		assert_int_equal(qmd_shape_of(family, &cluster).cluster, 8);
		assert_int_equal(qmd_shape_of(family, &cluster).cooperative, 0);

		cooperative.words[layouts[i].cooperative_byte / 4] = 3 << 16 | 5;
		cooperative.words[layouts[i].cooperative_byte / 4 + 1] = 2;
		cooperative.words[layouts[i].threads_byte / 4] = 4 << 16 | 32;
		cooperative.words[layouts[i].threads_byte / 4 + 1] = 1;
		assert_int_equal(qmd_disable(family, &cooperative, &disable, NULL), QMD_MUST_FIT);
		assert_int_equal(qmd_shape_of(family, &cooperative).cooperative, 30);
		assert_int_equal(qmd_shape_of(family, &cooperative).threads, 128);
		assert_int_equal(qmd_shape_of(family, &cooperative).cluster, 1);

		/* A grid of clusters is counted in clusters. */
		cooperative.bytes[layouts[i].cluster_byte] = 4;
		cooperative.bytes[layouts[i].cluster_byte + 1] = cooperative.bytes[layouts[i].cluster_byte + 2] = 1;
		assert_int_equal(qmd_shape_of(family, &cooperative).cooperative, 120);
	}
}

/* SHARED_MEMORY_SIZE and the fields around it, as in the published headers. */
static void test_shared_memory(void **state)
{
	static const struct {
		unsigned int major, byte, low, bits, unit;
	} layouts[] = {{9, 72, 8, 18, 1}, {10, 144, 0, 11, 128}};

	(void)state;
	for (size_t i = 0; i < COUNT(layouts); i++) {
		const struct qmd_family *family = qmd_family_for(layouts[i].major, 0);
		uint32_t largest = (UINT32_C(1) << layouts[i].bits) - 1;
		union descriptor descriptor;

		memset(&descriptor, 0, sizeof descriptor);
		descriptor.words[layouts[i].byte / 4] = ~(largest << layouts[i].low);
		assert_int_equal(qmd_shape_of(family, &descriptor).shared_bytes, 0);
		descriptor.words[layouts[i].byte / 4] = UINT32_MAX;
		assert_int_equal(qmd_shape_of(family, &descriptor).shared_bytes, largest * layouts[i].unit);
	}
}

/* --- releases --------------------------------------------------------------------------------------- */

/* A slot in the published headers: the first bit of each field. */
struct slot {
	unsigned int major, minor, version_byte, version, slot;
	unsigned int enable, size, membar, reduction_enable, operation, format, trap, payload_64;
	unsigned int address, address_bits, payload;
};

static const struct slot slots[] = {
	/* QMDV03_00 in clc7c0qmd.h, clc9c0qmd.h */
	{8, 6, 72, 0x30, 0, 823, 830, 819, 826, 820, 824, 827, 829, 768, 40, 832},
	{8, 6, 72, 0x30, 1, 951, 958, 947, 954, 948, 952, 955, 957, 896, 40, 960},
	{8, 9, 72, 0x30, 2, 1719, 1726, 1715, 1722, 1716, 1720, 1723, 1725, 1664, 40, 1728},
	/* QMDV04_00 in clcbc0qmd.h, QMDV04_01 in clcdc0qmd.h */
	{9, 0, 72, 0x40, 0, 320, 321, 323, 324, 325, 328, 330, 332, 640, 57, 704},
	{9, 0, 72, 0x40, 1, 336, 337, 339, 340, 341, 344, 346, 348, 768, 57, 832},
	{9, 0, 72, 0x40, 2, 352, 353, 355, 356, 357, 360, 362, 364, 896, 57, 960},
	{9, 0, 72, 0x41, 2, 352, 353, 355, 356, 357, 360, 362, 364, 896, 57, 960},
	/* QMDV05_00 in clcdc0qmd.h, clcec0qmd.h */
	{10, 0, 58, 0x50, 0, 288, 289, 291, 292, 293, 296, 298, 300, 480, 57, 544},
	{10, 0, 58, 0x50, 1, 304, 305, 307, 308, 309, 312, 314, 316, 768, 57, 832},
	{12, 0, 58, 0x50, 2, 320, 321, 323, 324, 325, 328, 330, 332, 896, 57, 960},
};

#define ADDRESS UINT64_C(0x123456789ab0)
#define VALUE UINT64_C(0xfedcba9876543210)

static uint64_t address_for(const struct slot *slot)
{
	return ADDRESS & ((UINT64_C(1) << slot->address_bits) - 1);
}

static void set_bits(union descriptor *descriptor, unsigned int first, unsigned int count, uint64_t value)
{
	for (unsigned int i = 0; i < count; i++) {
		uint32_t bit = UINT32_C(1) << (first + i) % 32, *word = &descriptor->words[(first + i) / 32];

		*word = value >> i & 1 ? *word | bit : *word & ~bit;
	}
}

/* Every other bit of the descriptor is as in `pattern`. */
static union descriptor make_with_slot(const struct slot *slot, uint8_t pattern)
{
	union descriptor descriptor;

	memset(&descriptor, pattern, sizeof descriptor);
	descriptor.bytes[slot->version_byte] = (uint8_t)slot->version;
	set_bits(&descriptor, slot->enable, 1, 0);
	return descriptor;
}

static void set_release(union descriptor *descriptor, const struct slot *slot, enum qmd_release_kind kind)
{
	set_bits(descriptor, slot->enable, 1, 1);
	set_bits(descriptor, slot->size, 2, kind == QMD_ADDS ? 2 : 0);
	set_bits(descriptor, slot->membar, 1, 0);
	set_bits(descriptor, slot->reduction_enable, 1, kind == QMD_ADDS);
	set_bits(descriptor, slot->operation, 3, 0);
	set_bits(descriptor, slot->format, 2, 0);
	set_bits(descriptor, slot->trap, 2, 0);
	set_bits(descriptor, slot->payload_64, 1, 1);
	set_bits(descriptor, slot->address, slot->address_bits, address_for(slot));
	set_bits(descriptor, slot->payload, 64, VALUE);
}

static struct qmd_release prepare(const struct slot *slot, enum qmd_release_kind kind)
{
	struct qmd_release release;

	assert_true(qmd_release_prepare(&release, qmd_family_for(slot->major, slot->minor), slot->slot, kind,
	                                address_for(slot), VALUE));
	return release;
}

/* Whatever the descriptor holds elsewhere, and whatever an unused slot holds. */
static void test_release_lands_where_the_version_has_it(void **state)
{
	static const uint8_t patterns[] = {0, 0xff, 0x5a};

	(void)state;
	for (size_t i = 0; i < COUNT(slots) * COUNT(patterns) * 2; i++) {
		const struct slot *slot = &slots[i % COUNT(slots)];
		enum qmd_release_kind kind = i / COUNT(slots) % 2 ? QMD_STAMPS : QMD_ADDS;
		struct qmd_release release = prepare(slot, kind);
		union descriptor descriptor = make_with_slot(slot, patterns[i / COUNT(slots) / 2]);
		union descriptor expected = descriptor;

		set_release(&expected, slot, kind);
		assert_int_equal(qmd_release(&release, &descriptor), QMD_RELEASES);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

static void test_used_slots_are_left_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(slots); i++) {
		const struct slot *slot = &slots[i];
		const struct qmd_family *family = qmd_family_for(slot->major, slot->minor);
		union descriptor descriptor = make_with_slot(slot, 0xff), before;
		struct qmd_release release = prepare(slot, QMD_ADDS);

		assert_false(qmd_slot_is_used(family, &descriptor, slot->slot));
		for (unsigned int other = 0; other < QMD_SLOTS; other++)
			assert_int_equal(qmd_slot_is_used(family, &descriptor, other), other != slot->slot);
		set_bits(&descriptor, slot->enable, 1, 1);
		before = descriptor;
		assert_true(qmd_slot_is_used(family, &descriptor, slot->slot));
		assert_int_equal(qmd_release(&release, &descriptor), QMD_SLOT_USED);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

static void test_slot_restored_as_it_was(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(slots); i++) {
		union descriptor descriptor = make_with_slot(&slots[i], 0xa5), before = descriptor;
		struct qmd_release release = prepare(&slots[i], QMD_ADDS);
		struct qmd_saved_slot saved = qmd_save_slot(&release, &descriptor);

		assert_int_equal(qmd_release(&release, &descriptor), QMD_RELEASES);
		qmd_restore_slot(&release, &descriptor, &saved);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

/* The mask and the release are written at once, or the mask alone. */
static void test_mask_and_release(void **state)
{
	const struct qmd_mask disable = all_words(0xfffffff0);
	unsigned int tried = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(slots); i++) {
		const struct slot *slot = &slots[i];
		const struct qmd_family *family = qmd_family_for(slot->major, slot->minor);
		union descriptor descriptor = make_with_slot(slot, 0), expected = descriptor;
		struct qmd_release release = prepare(slot, QMD_ADDS);

		if (slot->slot != QMD_COUNTING_SLOT)
			continue;
		assert_int_equal(qmd_disable(family, &expected, &disable, NULL), QMD_NARROWED);
		set_release(&expected, slot, QMD_ADDS);
		assert_int_equal(qmd_disable(family, &descriptor, &disable, &release), QMD_NARROWED);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		/* Now the slot is used. */
		assert_int_equal(qmd_disable(family, &descriptor, &disable, &release), QMD_SLOT_LEFT);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		tried++;
	}
	assert_int_equal(tried, 4);
}

static void test_mask_of_a_version_without_the_slot(void **state)
{
	const struct qmd_mask disable = all_words(0xfffffff0);
	const struct qmd_family *family = qmd_family_for(8, 9);
	struct qmd_release release;

	(void)state;
	assert_true(qmd_release_prepare(&release, family, QMD_COUNTING_SLOT, QMD_ADDS, 0x1000, 1));
	for (unsigned int version = 0x16; version <= 0x30; version++) {
		const struct generation generation = {8, 9, 72, version, 84, 2, 0xffff};
		union descriptor descriptor = make(&generation), expected = descriptor;

		set_mask(&expected, &generation, 0xfffffff0);
		assert_int_equal(qmd_disable(family, &descriptor, &disable, &release),
		                 version == 0x30 ? QMD_NARROWED : QMD_SLOT_LEFT);
		if (version != 0x30)
			assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

/* CTA_RASTER_WIDTH in the headers. */
static void test_kernels_without_blocks(void **state)
{
	static const struct {
		unsigned int major, minor, bit;
	} grids[] = {{7, 5, 384}, {8, 9, 384}, {9, 0, 1024}, {10, 0, 1248}, {12, 0, 1248}};

	(void)state;
	for (size_t i = 0; i < COUNT(grids); i++) {
		const struct qmd_family *family = qmd_family_for(grids[i].major, grids[i].minor);
		union descriptor descriptor;

		memset(&descriptor, 0xff, sizeof descriptor);
		assert_false(qmd_has_no_blocks(family, &descriptor));
		set_bits(&descriptor, grids[i].bit, 32, 0);
		assert_true(qmd_has_no_blocks(family, &descriptor));
		set_bits(&descriptor, grids[i].bit, 32, UINT32_C(1) << 31);
		assert_false(qmd_has_no_blocks(family, &descriptor));
	}
}

/* Versions before 3.0 add 32 bits only, and a GPU's descriptors may have a version of another GPU. */
static void test_versions_without_releases(void **state)
{
	static const struct {
		unsigned int major, minor, byte, version;
	} without[] = {{8, 6, 72, 0x22}, {8, 6, 72, 0x24}, {8, 9, 72, 0x2f}, {8, 9, 72, 0x31}, {8, 9, 72, 0x40},
	               {9, 0, 72, 0x30}, {9, 0, 72, 0x3f}, {9, 0, 72, 0x42}, {9, 0, 58, 0x40}, {10, 0, 58, 0x51},
	               {10, 0, 58, 0x4f}, {12, 0, 72, 0x50}};

	(void)state;
	for (size_t i = 0; i < COUNT(without); i++) {
		const struct qmd_family *family = qmd_family_for(without[i].major, without[i].minor);

		for (unsigned int slot = 0; slot < QMD_SLOTS; slot++) {
			union descriptor descriptor, before;
			struct qmd_release release;

			memset(&descriptor, 0xff, sizeof descriptor);
			descriptor.bytes[without[i].byte] = (uint8_t)without[i].version;
			before = descriptor;
			assert_false(qmd_slot_is_used(family, &descriptor, slot));
			assert_true(qmd_release_prepare(&release, family, slot, QMD_ADDS, 0x1000, 1));
			assert_int_equal(qmd_release(&release, &descriptor), QMD_NO_RELEASE_SLOTS);
			assert_memory_equal(&descriptor, &before, sizeof descriptor);
		}
	}
}

static void test_gpus_without_releases(void **state)
{
	static const unsigned int without[][2] = {{3, 5}, {3, 7}, {5, 2}, {6, 1}, {7, 0}, {7, 5}, {8, 0}};
	struct qmd_release release;
	union descriptor descriptor;

	(void)state;
	memset(&descriptor, 0xff, sizeof descriptor);
	descriptor.bytes[72] = 0x30;
	for (size_t i = 0; i < COUNT(without); i++) {
		const struct qmd_family *family = qmd_family_for(without[i][0], without[i][1]);

		assert_int_equal(qmd_release_reach(family), 0);
		assert_false(qmd_release_prepare(&release, family, 0, QMD_ADDS, 0x1000, 1));
		assert_false(qmd_slot_is_used(family, &descriptor, 0));
	}
}

/* An address of more bits would reach into the fields after it, or be another one. */
static void test_addresses_out_of_reach(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(slots); i++) {
		const struct qmd_family *family = qmd_family_for(slots[i].major, slots[i].minor);
		uint64_t reach = qmd_release_reach(family);
		struct qmd_release release;

		assert_true(reach == UINT64_C(1) << slots[i].address_bits);
		assert_true(qmd_release_prepare(&release, family, slots[i].slot, QMD_ADDS, reach - 8, 1));
		assert_false(qmd_release_prepare(&release, family, slots[i].slot, QMD_ADDS, reach, 1));
	}
}

static void test_gpus_without_a_family(void **state)
{
	(void)state;
	assert_null(qmd_family_for(2, 1));
	assert_null(qmd_family_for(3, 0));
	assert_null(qmd_family_for(3, 2));
	assert_null(qmd_family_for(13, 0));
	assert_null(qmd_family_for(0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mask_lands_where_the_version_has_it),
		cmocka_unit_test(test_drivers_mask_is_kept),
		cmocka_unit_test(test_mask_without_valid_bit_does_not_count),
		cmocka_unit_test(test_disjoint_masks),
		cmocka_unit_test(test_masks_overlap_beyond_64_bits),
		cmocka_unit_test(test_set_mask_ignores_former_mask),
		cmocka_unit_test(test_unknown_versions_are_not_touched),
		cmocka_unit_test(test_restored_as_it_was),
		cmocka_unit_test(test_launches_that_must_fit),
		cmocka_unit_test(test_shared_memory),
		cmocka_unit_test(test_release_lands_where_the_version_has_it),
		cmocka_unit_test(test_used_slots_are_left_alone),
		cmocka_unit_test(test_slot_restored_as_it_was),
		cmocka_unit_test(test_mask_and_release),
		cmocka_unit_test(test_mask_of_a_version_without_the_slot),
		cmocka_unit_test(test_kernels_without_blocks),
		cmocka_unit_test(test_versions_without_releases),
		cmocka_unit_test(test_gpus_without_releases),
		cmocka_unit_test(test_addresses_out_of_reach),
		cmocka_unit_test(test_gpus_without_a_family),
	};

	return cmocka_run_group_tests_name("qmd", tests, NULL, NULL);
}
