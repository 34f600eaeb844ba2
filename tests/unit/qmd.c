/* Launch descriptors of every version: which bits change, which stay, and which descriptors stay unchanged. */
#include "../cases.h"
#include "gpu/qmd.h"

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

static union descriptor make(const struct generation *generation)
{
	union descriptor descriptor = {.bytes = {0}};

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

enum former { NONE, VALID, NOT_VALID };

/* What becomes of the mask that the driver has written, the former one, and that it can be written again as it was. */
TEST(masks)
{
	static const struct {
		const char *what;
		enum former former;
		uint32_t mask, disable;
		int result;
		uint32_t expected;
	} rows[] = {
		{"there was none", NONE, 0, 0xfffffff0, QMD_NARROWED, 0xfffffff0},
		{"the driver's is kept", VALID, 0x0000ff00, 0x000000f0, QMD_NARROWED, 0x0000fff0},
		{"without its valid bit it does not count", NOT_VALID, 0xdeadbeef, 0x000000f0, QMD_NARROWED, 0x000000f0},
		{"both would leave nothing, and the kernel would hang", VALID, 0xffff0000, 0x0000ffff, QMD_OVERRULED, 0x0000ffff},
	};

	for (size_t i = 0; i < COUNT_OF(rows) * COUNT_OF(generations); i++) {
		const struct generation *generation = &generations[i % COUNT_OF(generations)];
		const struct qmd_family *family = qmd_family_for(generation->major, generation->minor);
		union descriptor descriptor = make(generation), expected = descriptor, alone = descriptor, before;
		size_t row = i / COUNT_OF(generations);
		struct qmd_mask disable = all_words(rows[row].disable);

		ROW("%s, GPU %u.%u", rows[row].what, generation->major, generation->minor);
		if (rows[row].former == NOT_VALID && generation->valid_byte == 0xffff)
			continue;
		if (rows[row].former == VALID)
			set_mask(&descriptor, generation, rows[row].mask);
		else
			descriptor.words[generation->mask_byte / 4] = rows[row].mask;
		set_mask(&expected, generation, rows[row].expected);
		set_mask(&alone, generation, rows[row].disable);
		before = descriptor;
		assert_non_null(family);
		assert_int_equal(qmd_mask_bits(family), generation->mask_words * 32);
		assert_true(qmd_is_known(family, &descriptor));
		struct qmd_change change = {.disable = &disable};
		struct qmd_saved saved;

		assert_int_equal(qmd_write(family, &descriptor, &change, &saved).mask, rows[row].result);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		qmd_restore(&descriptor, &saved);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
		assert_int_equal(qmd_disable(family, &descriptor, &disable, NULL), rows[row].result);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		/* To this, the former one does not matter. */
		change.is_exact = true;
		assert_int_equal(qmd_write(family, &descriptor, &change, NULL).mask, QMD_NARROWED);
		assert_memory_equal(&descriptor, &alone, sizeof descriptor);
	}
}

/* Only bits beyond the first 64 are left. */
TEST(masks_overlap_beyond_64_bits)
{
	for (size_t g = 0; g < COUNT_OF(generations); g++) {
		const struct generation *generation = &generations[g];
		const struct qmd_family *family = qmd_family_for(generation->major, generation->minor);
		union descriptor descriptor = make(generation), expected = descriptor;
		struct qmd_mask disable = {{UINT64_C(0x00000000ffffffff), 0}};

		if (generation->mask_words < 4)
			continue;
		set_mask(&descriptor, generation, 0);
		descriptor.words[generation->mask_byte / 4 + 1] = 0xffffffff;
		set_mask(&expected, generation, 0);
		memset(&expected.bytes[generation->mask_byte], 0xff, 8);
		assert_int_equal(qmd_disable(family, &descriptor, &disable, NULL), QMD_NARROWED);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

TEST(unknown_versions_are_not_touched)
{
	static const struct {
		unsigned int major, minor, byte, version;
	} unknown[] = {{7, 5, 72, 0x06}, {7, 5, 72, 0x15}, {8, 9, 72, 0x31}, {8, 9, 72, 0x40}, {8, 9, 72, 0x00},
	               {9, 0, 72, 0x30}, {9, 0, 72, 0x3f}, {9, 0, 72, 0x42}, {9, 0, 72, 0x50}, {9, 0, 58, 0x40},
	               {10, 0, 58, 0x40}, {10, 0, 58, 0x4f}, {10, 0, 58, 0x51}, {12, 0, 72, 0x50}};

	for (size_t i = 0; i < COUNT_OF(unknown); i++) {
		const struct qmd_family *family = qmd_family_for(unknown[i].major, unknown[i].minor);
		union descriptor descriptor = {.bytes = {0}}, before;
		struct qmd_mask disable = all_words(UINT32_MAX - 1);

		descriptor.bytes[unknown[i].byte] = (uint8_t)unknown[i].version;
		before = descriptor;
		assert_int_equal(qmd_disable(family, &descriptor, &disable, NULL), QMD_UNKNOWN_VERSION);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

/* The positions of clusters and cooperative grids in the published headers. */
TEST(launches_that_must_fit)
{
	static const struct {
		unsigned int major, version_byte, version, cluster_byte, cooperative_byte, threads_byte;
	} layouts[] = {{9, 72, 0x40, 268, 276, 144}, {10, 58, 0x50, 256, 264, 136}};

	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		const struct qmd_family *family = qmd_family_for(layouts[i].major, 0);
		const struct qmd_mask disable = all_words(0x000000f0);
		union descriptor cluster = {.bytes = {0}}, cooperative, before;
		uint8_t *sizes = &cooperative.bytes[layouts[i].cluster_byte];
		uint32_t *grid = &cooperative.words[layouts[i].cooperative_byte / 4];
		uint32_t *threads = &cooperative.words[layouts[i].threads_byte / 4];

		cluster.bytes[layouts[i].version_byte] = (uint8_t)layouts[i].version;
		cooperative = cluster;
		memcpy(&cluster.bytes[layouts[i].cluster_byte], (uint8_t[]){4, 2, 1}, 3);
		before = cluster;
		assert_int_equal(qmd_disable(family, &cluster, &disable, NULL), QMD_MUST_FIT);
		assert_memory_equal(&cluster, &before, sizeof cluster);
		assert_each(qmd_shape_of(family, &cluster).cluster, 8, qmd_shape_of(family, &cluster).cooperative, 0);
		grid[0] = 3 << 16 | 5;
		grid[1] = 2;
		threads[0] = 4 << 16 | 32;
		threads[1] = 1;
		assert_int_equal(qmd_disable(family, &cooperative, &disable, NULL), QMD_MUST_FIT);
		struct qmd_shape shape = qmd_shape_of(family, &cooperative);

		assert_each(shape.cooperative, 30, shape.threads, 128, shape.cluster, 1);
		threads[0] = 1 << 16 | 16;
		threads[1] = 64;
		assert_int_equal(qmd_shape_of(family, &cooperative).threads, 1024);
		/* A grid of clusters is counted in clusters. */
		memcpy(sizes, (uint8_t[]){4, 1, 1}, 3);
		assert_int_equal(qmd_shape_of(family, &cooperative).cooperative, 120);
	}
}

/* SHARED_MEMORY_SIZE and the fields around it, as in the published headers. */
TEST(shared_memory)
{
	static const struct {
		unsigned int major, byte, low, bits, unit;
	} layouts[] = {{9, 72, 8, 18, 1}, {10, 144, 0, 11, 128}};

	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		const struct qmd_family *family = qmd_family_for(layouts[i].major, 0);
		uint32_t largest = (UINT32_C(1) << layouts[i].bits) - 1;
		union descriptor descriptor = {.bytes = {0}};

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

	const struct qmd_family *family = qmd_family_for(slot->major, slot->minor);

	assert_true(qmd_release_prepare(&release, family, slot->slot, kind, address_for(slot), VALUE));
	return release;
}

/* Whatever the descriptor holds elsewhere, and whatever an unused slot holds; and it can be written again as it was. */
TEST(release_lands_where_the_version_has_it)
{
	static const uint8_t patterns[] = {0, 0xff, 0x5a};

	for (size_t i = 0; i < COUNT_OF(slots) * COUNT_OF(patterns) * 2; i++) {
		const struct slot *slot = &slots[i % COUNT_OF(slots)];
		enum qmd_release_kind kind = i / COUNT_OF(slots) % 2 ? QMD_STAMPS : QMD_ADDS;
		struct qmd_release release = prepare(slot, kind);
		union descriptor descriptor = make_with_slot(slot, patterns[i / COUNT_OF(slots) / 2]);
		union descriptor expected = descriptor, before = descriptor;
		struct qmd_saved_slot saved = qmd_save_slot(&release, &descriptor);

		set_release(&expected, slot, kind);
		assert_int_equal(qmd_release_look(&release, &descriptor), QMD_RELEASES);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
		assert_int_equal(qmd_release(&release, &descriptor), QMD_RELEASES);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		qmd_restore_slot(&release, &descriptor, &saved);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

TEST(used_slots_are_left_alone)
{
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
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

/* All at once: the mask and both releases, of which the second has an address and a value of its own. What was written is restored,
 * and what was not, stays: a slot that is used, and one that somebody else has used since. */
TEST(all_of_it)
{
	const struct qmd_mask disable = all_words(0xfffffff0);

	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		const struct slot *slot = &slots[i];
		const struct qmd_family *family = qmd_family_for(slot->major, slot->minor);
		union descriptor descriptor = make_with_slot(slot, 0), expected = descriptor, before = descriptor;
		bool counts = slot->slot == QMD_COUNTING_SLOT;
		struct qmd_release release = prepare(slot, counts ? QMD_ADDS : QMD_STAMPS), elsewhere = release;
		struct qmd_saved saved;

		elsewhere.address.value = 0x1000;
		elsewhere.payload = 1;
		const struct qmd_change change = {
			.disable = &disable, .counting = counts ? &release : NULL, .stamping = counts ? NULL : &elsewhere,
			.timestamp_at = address_for(slot), .timestamp = VALUE,
		};

		assert_int_equal(qmd_disable(family, &expected, &disable, NULL), QMD_NARROWED);
		set_release(&expected, slot, counts ? QMD_ADDS : QMD_STAMPS);
		struct qmd_outcomes outcomes = qmd_write(family, &descriptor, &change, &saved);

		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		assert_int_equal(outcomes.counting, counts ? QMD_RELEASES : QMD_NO_RELEASE_SLOTS);
		assert_int_equal(outcomes.stamping, counts ? QMD_NO_RELEASE_SLOTS : QMD_RELEASES);
		qmd_restore(&descriptor, &saved);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
		set_bits(&descriptor, slot->enable, 1, 1);
		before = descriptor;
		outcomes = qmd_write(family, &descriptor, &change, &saved);
		assert_int_equal(counts ? outcomes.counting : outcomes.stamping, QMD_SLOT_USED);
		qmd_restore(&descriptor, &saved);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
		qmd_write(family, &descriptor, &(struct qmd_change){.disable = NULL}, &saved);
		set_bits(&descriptor, slot->address, 8, 0x55);
		before = descriptor;
		qmd_restore(&descriptor, &saved);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

TEST(mask_of_a_version_without_the_slot)
{
	const struct qmd_mask disable = all_words(0xfffffff0);
	const struct qmd_family *family = qmd_family_for(8, 9);
	struct qmd_release release;

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
TEST(kernels_without_blocks)
{
	static const struct {
		unsigned int major, minor, bit;
	} grids[] = {{7, 5, 384}, {8, 9, 384}, {9, 0, 1024}, {10, 0, 1248}, {12, 0, 1248}};

	for (size_t i = 0; i < COUNT_OF(grids); i++) {
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

/* Only a bank for the next node's parameters, which is no longer valid. */
TEST(fetching_ahead)
{
	static const struct {
		unsigned int major;
		uint32_t banks, expected;
	} rows[] = {
		{9, 0x10400011, 0x10500011}, /* as the driver leaves it, and as it was */
		{9, 0x10500011, 0x10500011}, {9, 0x10000011, 0x10000011}, {9, 0x10200011, 0x10200011}, {9, 0x10c00011, 0x10c00011},
		{8, 0x10400011, 0x10400011}, {10, 0x10400011, 0x10400011},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		ROW("%u.0: %08x", rows[i].major, rows[i].banks);
		for (size_t k = 0; k < COUNT_OF(generations); k++) {
			if (generations[k].major != rows[i].major)
				continue;
			union descriptor descriptor = make(&generations[k]), expected;

			descriptor.words[13] = rows[i].banks;
			expected = descriptor;
			expected.words[13] = rows[i].expected;
			qmd_write(qmd_family_for(generations[k].major, generations[k].minor), &descriptor,
			          &(struct qmd_change){.fetches_ahead = true}, NULL);
			assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		}
	}
}

TEST(fetching_ahead_of_an_unknown_version)
{
	union descriptor descriptor = {.bytes = {[72] = 0x42}}, expected;

	descriptor.words[13] = 0x10400011;
	expected = descriptor;
	qmd_write(qmd_family_for(9, 0), &descriptor, &(struct qmd_change){.fetches_ahead = true}, NULL);
	assert_memory_equal(&descriptor, &expected, sizeof descriptor);
}

RUN_TESTS(NULL, NULL)
