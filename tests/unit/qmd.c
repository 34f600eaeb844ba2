/* Launch descriptors of every version: which bits change, which stay, and which descriptors stay unchanged. */
#include "../cases.h"
#include "gpu/qmd.h"
#include "qmd_headers.h"

#define QMD_BYTES 512

union descriptor {
	uint8_t bytes[QMD_BYTES];
	uint32_t words[QMD_BYTES / 4];
};

/* --- the published headers -------------------------------------------------------------------------- */

/* The header of each class of compute objects, and a compute capability with the class. The first class belongs to 3.0,
 * which has no family. */
static const struct class {
	unsigned int major, minor;
	const char *header;
} classes[] = {
	{3, 5, "a0c0"}, {3, 5, "a1c0"}, {5, 0, "b0c0"}, {5, 2, "b1c0"},
	{6, 0, "c0c0"}, {6, 1, "c1c0"}, {7, 0, "c3c0"}, {7, 2, "c4c0"},
	{7, 5, "c5c0"}, {8, 0, "c6c0"}, {8, 6, "c7c0"}, {8, 9, "c9c0"},
	{9, 0, "cbc0"}, {10, 0, "cdc0"}, {12, 0, "cec0"},
};

/* A version of the descriptor, and a GPU. */
struct generation {
	unsigned int major, minor;
	const char *header, *name;
	unsigned int version_byte, version;
	unsigned int mask_byte, mask_words;
	unsigned int upper_byte; /* 0xffff: none */
	unsigned int valid_byte; /* of the dword whose bit 31 makes the mask count; 0xffff: none */
};

/* A slot: the first bit of each field. */
struct slot {
	const struct generation *generation;
	unsigned int slot;
	unsigned int enable, size, membar, reduction_enable, operation, format, trap, payload_64;
	unsigned int address, address_bits, payload;
};

static struct generation generations[40];
static struct slot slots[40];
static size_t generation_count, slot_count;

/* A field in a version of a header; or NULL. */
static const struct header_field *find_field(const char *header, const char *version, const char *name)
{
	const struct header_field *found = NULL;

	for (size_t i = 0; i < COUNT_OF(header_fields) && !found; i++) {
		const struct header_field *field = &header_fields[i];

		if (strstr(field->headers, header) && strcmp(field->version, version) == 0 &&
		    strcmp(field->field, name) == 0)
			found = field;
	}
	return found;
}

static const struct header_field *field_of(const struct generation *generation, const char *name)
{
	const struct header_field *field = find_field(generation->header, generation->name, name);

	if (!field)
		fail_msg("cl%sqmd.h has no %s_%s", generation->header, generation->name, name);
	return field;
}

static unsigned int first_byte(const struct generation *generation, const char *name)
{
	const struct header_field *field = find_field(generation->header, generation->name, name);

	return field ? field->first / 8 : 0xffff;
}

/* The version is the major and the minor number, of four bits each. */
static void read_generation(const struct class *class, const struct header_field *major)
{
	struct generation *generation = &generations[generation_count++];
	bool is_wide = find_field(class->header, major->version, "TPC_DISABLE_MASK");
	unsigned int high, low;

	assert_true(generation_count <= COUNT_OF(generations));
	assert_int_equal(sscanf(major->version, "QMDV%2x_%2x", &high, &low), 2);
	*generation = (struct generation){
		.major = class->major, .minor = class->minor, .header = class->header, .name = major->version,
	};
	generation->version_byte = major->first / 8;
	generation->version = high << 4 | low;
	generation->mask_byte = first_byte(generation, is_wide ? "TPC_DISABLE_MASK" : "SM_DISABLE_MASK_LOWER");
	generation->mask_words = is_wide ? 4 : 2;
	generation->upper_byte = first_byte(generation, "TPC_DISABLE_MASK_UPPER");
	generation->valid_byte = is_wide ? first_byte(generation, "TPC_DISABLE_MASK_VALID") / 4 * 4 : 0xffff;
	assert_int_equal(is_wide ? field_of(generation, "TPC_DISABLE_MASK_VALID")->first % 32 : 31, 31);
	assert_int_equal(field_of(generation, is_wide ? "QMD_MINOR_VERSION" : "QMD_VERSION")->first, major->first - 4);
	assert_true(is_wide || field_of(generation, "SM_DISABLE_MASK_UPPER")->first / 8 == generation->mask_byte + 4);
}

/* Hopper's 3.0 is too narrow. */
static void read_class(const struct class *class)
{
	for (size_t i = 0; i < COUNT_OF(header_fields); i++) {
		const struct header_field *field = &header_fields[i];

		if (strcmp(field->field, "QMD_MAJOR_VERSION") == 0 && strstr(field->headers, class->header) &&
		    !(class->major == 9 && strcmp(field->version, "QMDV03_00") == 0))
			read_generation(class, field);
	}
}

/* Of a slot or a bank: `format` has a place for the number, or the field has a step. */
static unsigned int first_bit(const struct generation *generation, const char *format, unsigned int number,
                              const char *part)
{
	char name[64];

	snprintf(name, sizeof name, format, number, part);
	return field_of(generation, name)->first + field_of(generation, name)->step * number;
}

static void read_slot(const struct generation *generation, unsigned int number)
{
	bool is_old = generation->version == 0x30;
	const char *control = is_old ? "RELEASE%u_%s" : "RELEASE_%2$s";
	const char *memory = is_old ? "RELEASE%u_%s" : "RELEASE_SEMAPHORE%u_%s";
	char upper[64];
	struct slot slot = {.generation = generation, .slot = number};

	snprintf(upper, sizeof upper, memory, number, is_old ? "ADDRESS_UPPER" : "ADDR_UPPER");
	slot.enable = first_bit(generation, control, number, "ENABLE");
	slot.size = first_bit(generation, control, number, "STRUCTURE_SIZE");
	slot.membar = first_bit(generation, control, number, "MEMBAR_TYPE");
	slot.reduction_enable = first_bit(generation, control, number, "REDUCTION_ENABLE");
	slot.operation = first_bit(generation, control, number, "REDUCTION_OP");
	slot.format = first_bit(generation, control, number, "REDUCTION_FORMAT");
	slot.trap = first_bit(generation, control, number, "TRAP_TYPE");
	slot.payload_64 = first_bit(generation, control, number, "PAYLOAD64B");
	slot.address = first_bit(generation, memory, number, is_old ? "ADDRESS_LOWER" : "ADDR_LOWER");
	slot.address_bits = field_of(generation, upper)->last - slot.address + 1;
	slot.payload = first_bit(generation, memory, number, "PAYLOAD_LOWER");
	assert_int_equal(first_bit(generation, memory, number, "PAYLOAD_UPPER"), slot.payload + 32);
	assert_true(slot_count < COUNT_OF(slots));
	slots[slot_count++] = slot;
}

static bool has_slots(const struct generation *generation)
{
	return generation->version >= 0x30 && !(generation->major == 8 && generation->minor < 6);
}

FIXTURE(read_headers)
{
	for (size_t i = 0; i < COUNT_OF(classes); i++)
		read_class(&classes[i]);
	for (size_t i = 0; i < generation_count; i++) {
		for (unsigned int slot = 0; slot < QMD_SLOTS && has_slots(&generations[i]); slot++)
			read_slot(&generations[i], slot);
	}
	assert_true(generation_count > COUNT_OF(classes) && slot_count > 0);
}

static const struct qmd_family *family_of(const struct generation *generation)
{
	return qmd_family_for(generation->major, generation->minor);
}

/* --- descriptors ------------------------------------------------------------------------------------- */

static void set_bits(union descriptor *descriptor, unsigned int first, unsigned int count, uint64_t value)
{
	for (unsigned int i = 0; i < count; i++) {
		uint32_t bit = UINT32_C(1) << (first + i) % 32, *word = &descriptor->words[(first + i) / 32];

		*word = value >> i & 1 ? *word | bit : *word & ~bit;
	}
}

static void set_field(union descriptor *descriptor, const struct generation *generation, const char *name,
                      uint64_t value)
{
	const struct header_field *field = field_of(generation, name);

	set_bits(descriptor, field->first, field->last - field->first + 1, value);
}

static void set_version(union descriptor *descriptor, const struct generation *generation)
{
	descriptor->bytes[generation->version_byte] = (uint8_t)generation->version;
}

static union descriptor make(const struct generation *generation)
{
	union descriptor descriptor = {.bytes = {0}};

	set_version(&descriptor, generation);
	return descriptor;
}

/* The upper part enables no TPC. */
static void set_mask(union descriptor *descriptor, const struct generation *generation, uint32_t word)
{
	for (unsigned int i = 0; i < generation->mask_words; i++)
		descriptor->words[generation->mask_byte / 4 + i] = word;
	if (generation->upper_byte != 0xffff)
		memset(&descriptor->bytes[generation->upper_byte], 0xff, 16);
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

	for (size_t i = 0; i < COUNT_OF(rows) * generation_count; i++) {
		const struct generation *generation = &generations[i % generation_count];
		const struct qmd_family *family = family_of(generation);
		union descriptor descriptor = make(generation), expected = descriptor, alone = descriptor, before;
		size_t row = i / generation_count;
		struct qmd_mask disable = all_words(rows[row].disable);

		ROW("%s, GPU %u.%u, %s", rows[row].what, generation->major, generation->minor, generation->name);
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
	for (size_t g = 0; g < generation_count; g++) {
		const struct generation *generation = &generations[g];
		const struct qmd_family *family = family_of(generation);
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
	               {9, 0, 72, 0x30}, {9, 0, 72, 0x3f}, {9, 0, 72, 0x41}, {9, 0, 72, 0x50}, {9, 0, 58, 0x40},
	               {9, 0, 58, 0x50}, {10, 0, 58, 0x40}, {10, 0, 58, 0x41}, {10, 0, 58, 0x4f}, {10, 0, 58, 0x51},
	               {10, 0, 72, 0x30}, {10, 0, 72, 0x40}, {10, 0, 72, 0x42}, {12, 0, 72, 0x50}};

	for (size_t i = 0; i < COUNT_OF(unknown); i++) {
		const struct qmd_family *family = qmd_family_for(unknown[i].major, unknown[i].minor);
		union descriptor descriptor = {.bytes = {0}}, before;
		struct qmd_mask disable = all_words(UINT32_MAX - 1);

		descriptor.bytes[unknown[i].byte] = (uint8_t)unknown[i].version;
		before = descriptor;
		assert_false(qmd_is_known(family, &descriptor));
		assert_int_equal(qmd_is_narrow(family, &descriptor),
		                 unknown[i].major == 9 && unknown[i].version == 0x30);
		assert_int_equal(qmd_disable(family, &descriptor, &disable, NULL), QMD_UNKNOWN_VERSION);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

/* A descriptor of 5.0 may hold anything at byte 72. A GB10's holds 0 there. */
TEST(the_version_at_byte_58_goes_first)
{
	const struct qmd_mask disable = all_words(0xfffffff0);
	union descriptor descriptor = {.bytes = {[58] = 0x50, [72] = 0x41}}, expected;

	for (size_t i = 0; i < generation_count; i++) {
		if (generations[i].version != 0x50)
			continue;
		expected = descriptor;
		set_mask(&expected, &generations[i], 0xfffffff0);
		assert_int_equal(qmd_disable(family_of(&generations[i]), &descriptor, &disable, NULL), QMD_NARROWED);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

static void check_must_fit(const struct generation *generation)
{
	const struct qmd_family *family = family_of(generation);
	const struct qmd_mask disable = all_words(0x000000f0);
	union descriptor cluster = make(generation), cooperative = cluster, before;
	struct qmd_shape shape;

	set_field(&cluster, generation, "GPC_CGA_WIDTH", 4);
	set_field(&cluster, generation, "GPC_CGA_HEIGHT", 2);
	set_field(&cluster, generation, "GPC_CGA_DEPTH", 1);
	before = cluster;
	assert_int_equal(qmd_disable(family, &cluster, &disable, NULL), QMD_MUST_FIT);
	assert_true(qmd_must_fit(family, &cluster));
	assert_memory_equal(&cluster, &before, sizeof cluster);
	assert_each(qmd_shape_of(family, &cluster).cluster, 8, qmd_shape_of(family, &cluster).cooperative, 0);
	set_field(&cooperative, generation, "GPU_CGA_WIDTH", 5);
	set_field(&cooperative, generation, "GPU_CGA_HEIGHT", 3);
	set_field(&cooperative, generation, "GPU_CGA_DEPTH", 2);
	set_field(&cooperative, generation, "CTA_THREAD_DIMENSION0", 32);
	set_field(&cooperative, generation, "CTA_THREAD_DIMENSION1", 4);
	set_field(&cooperative, generation, "CTA_THREAD_DIMENSION2", 1);
	assert_int_equal(qmd_disable(family, &cooperative, &disable, NULL), QMD_MUST_FIT);
	shape = qmd_shape_of(family, &cooperative);
	assert_each(shape.cooperative, 30, shape.threads, 128, shape.cluster, 1);
	set_field(&cooperative, generation, "CTA_THREAD_DIMENSION0", 16);
	set_field(&cooperative, generation, "CTA_THREAD_DIMENSION1", 1);
	set_field(&cooperative, generation, "CTA_THREAD_DIMENSION2", 64);
	assert_int_equal(qmd_shape_of(family, &cooperative).threads, 1024);
	/* A grid of clusters is counted in clusters. */
	set_field(&cooperative, generation, "GPC_CGA_WIDTH", 4);
	set_field(&cooperative, generation, "GPC_CGA_HEIGHT", 1);
	set_field(&cooperative, generation, "GPC_CGA_DEPTH", 1);
	assert_int_equal(qmd_shape_of(family, &cooperative).cooperative, 120);
}

/* SHARED_MEMORY_SIZE and the fields around it. */
static void check_shared_memory(const struct generation *generation)
{
	bool is_shifted = generation->version == 0x50;
	const char *name = is_shifted ? "SHARED_MEMORY_SIZE_SHIFTED7" : "SHARED_MEMORY_SIZE";
	const struct header_field *field = field_of(generation, name);
	unsigned int largest = (1u << (field->last - field->first + 1)) - 1;
	union descriptor descriptor;

	memset(&descriptor, 0xff, sizeof descriptor);
	set_version(&descriptor, generation);
	assert_int_equal(qmd_shape_of(family_of(generation), &descriptor).shared_bytes,
	                 largest << (is_shifted ? 7 : 0));
	set_field(&descriptor, generation, name, 0);
	assert_int_equal(qmd_shape_of(family_of(generation), &descriptor).shared_bytes, 0);
}

TEST(launches_that_must_fit)
{
	for (size_t i = 0; i < generation_count; i++) {
		ROW("GPU %u.%u, %s", generations[i].major, generations[i].minor, generations[i].name);
		assert_int_equal(qmd_shows_must_fit(family_of(&generations[i])), generations[i].major >= 9);
		if (generations[i].major < 9)
			continue;
		check_must_fit(&generations[i]);
		check_shared_memory(&generations[i]);
	}
}

/* --- releases --------------------------------------------------------------------------------------- */

#define ADDRESS UINT64_C(0x123456789ab0)
#define VALUE UINT64_C(0xfedcba9876543210)

static uint64_t address_for(const struct slot *slot)
{
	return ADDRESS & ((UINT64_C(1) << slot->address_bits) - 1);
}

/* Every other bit of the descriptor is as in `pattern`. */
static union descriptor make_with_slot(const struct slot *slot, uint8_t pattern)
{
	union descriptor descriptor;

	memset(&descriptor, pattern, sizeof descriptor);
	set_version(&descriptor, slot->generation);
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

	const struct qmd_family *family = family_of(slot->generation);

	assert_true(qmd_release_prepare(&release, family, slot->slot, kind, address_for(slot), VALUE));
	return release;
}

/* Whatever the descriptor holds elsewhere, and whatever an unused slot holds; and it can be written again as it was. */
TEST(release_lands_where_the_version_has_it)
{
	static const uint8_t patterns[] = {0, 0xff, 0x5a};

	for (size_t i = 0; i < slot_count * COUNT_OF(patterns) * 2; i++) {
		const struct slot *slot = &slots[i % slot_count];
		enum qmd_release_kind kind = i / slot_count % 2 ? QMD_STAMPS : QMD_ADDS;
		struct qmd_release release = prepare(slot, kind);
		union descriptor descriptor = make_with_slot(slot, patterns[i / slot_count / 2]);
		union descriptor expected = descriptor, before = descriptor;
		struct qmd_saved_slot saved = qmd_save_slot(&release, &descriptor);

		set_release(&expected, slot, kind);
		assert_non_null(qmd_release_look(&release, &descriptor));
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
		assert_int_equal(qmd_release(&release, &descriptor), QMD_RELEASES);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
		qmd_restore_slot(&release, &descriptor, &saved);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

TEST(used_slots_are_left_alone)
{
	for (size_t i = 0; i < slot_count; i++) {
		const struct slot *slot = &slots[i];
		const struct qmd_family *family = family_of(slot->generation);
		union descriptor descriptor = make_with_slot(slot, 0xff), before;
		struct qmd_release release = prepare(slot, QMD_ADDS);

		assert_false(qmd_slot_is_used(family, &descriptor, slot->slot));
		for (unsigned int other = 0; other < QMD_SLOTS; other++)
			assert_int_equal(qmd_slot_is_used(family, &descriptor, other), other != slot->slot);
		set_bits(&descriptor, slot->enable, 1, 1);
		before = descriptor;
		assert_true(qmd_slot_is_used(family, &descriptor, slot->slot));
		assert_int_equal(qmd_release(&release, &descriptor), QMD_SLOT_USED);
		assert_null(qmd_release_look(&release, &descriptor));
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
	}
}

static void assert_grid(const struct qmd_place *place, const union descriptor *descriptor, unsigned int width,
                        unsigned int height, unsigned int depth)
{
	struct qmd_grid grid = qmd_grid_of(place, descriptor);

	assert_each(grid.width, width, grid.height, height, grid.depth, depth);
}

static void set_sizes(union descriptor *descriptor, const struct generation *generation, const char *format,
                      const unsigned int sizes[3])
{
	static const char *const names[] = {"WIDTH", "HEIGHT", "DEPTH"};
	char name[32];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, format, names[i]);
		set_field(descriptor, generation, name, sizes[i]);
	}
}

/* A descriptor of a cooperative launch has the grid elsewhere, and a descriptor of clusters counts clusters. */
TEST(grids)
{
	for (size_t i = 0; i < slot_count; i++) {
		const struct generation *generation = slots[i].generation;
		bool has_clusters = generation->version >= 0x40;
		struct qmd_release release = prepare(&slots[i], QMD_STAMPS);
		union descriptor descriptor = make_with_slot(&slots[i], 0);
		const struct qmd_place *place = qmd_release_look(&release, &descriptor);

		ROW("%s", generation->name);
		set_sizes(&descriptor, generation, has_clusters ? "GRID_%s" : "CTA_RASTER_%s",
		          (const unsigned int[]){INT32_MAX, 65535, 65534});
		assert_grid(place, &descriptor, INT32_MAX, 65535, 65534);
		if (!has_clusters)
			continue;
		set_sizes(&descriptor, generation, "GPU_CGA_%s", (const unsigned int[]){300, 20, 7});
		assert_grid(place, &descriptor, 300, 20, 7);
		set_sizes(&descriptor, generation, "GPC_CGA_%s", (const unsigned int[]){4, 2, 3});
		assert_grid(place, &descriptor, 1200, 40, 21);
		set_sizes(&descriptor, generation, "GPU_CGA_%s", (const unsigned int[]){0, 0, 0});
		set_sizes(&descriptor, generation, "GRID_%s", (const unsigned int[]){5, 6, 7});
		assert_grid(place, &descriptor, 20, 12, 21);
	}
}

/* Of slot 0; 0 without a release there. */
TEST(the_drivers_release)
{
	for (size_t i = 0; i + 1 < slot_count; i++) {
		const struct slot *first = &slots[i];
		union descriptor empty = make_with_slot(first, 0), descriptor = make_with_slot(first, 0xff);

		if (first->slot != 0)
			continue;
		struct qmd_release release = prepare(&slots[i + 1], QMD_STAMPS);
		const struct qmd_place *place = qmd_release_look(&release, &empty);

		set_bits(&descriptor, first->address, first->address_bits, address_for(first));
		assert_int_equal(qmd_drivers_address(place, &descriptor), 0);
		set_bits(&descriptor, first->enable, 1, 1);
		assert_int_equal(qmd_drivers_address(place, &descriptor), address_for(first));
	}
}

/* All at once: the mask and both releases, of which the second has an address and a value of its own. What was written is restored,
 * and what was not, stays: a slot that is used, and one that somebody else has used since. */
TEST(all_of_it)
{
	const struct qmd_mask disable = all_words(0xfffffff0);

	for (size_t i = 0; i < slot_count; i++) {
		const struct slot *slot = &slots[i];
		const struct qmd_family *family = family_of(slot->generation);
		union descriptor descriptor = make_with_slot(slot, 0), expected = descriptor, before = descriptor;
		bool counts = slot->slot == QMD_COUNTING_SLOT;
		struct qmd_release release = prepare(slot, counts ? QMD_ADDS : QMD_STAMPS), elsewhere = release;
		struct qmd_saved saved;

		elsewhere.address = 0x1000;
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
		qmd_restore(&descriptor, &saved);
		assert_memory_equal(&descriptor, &before, sizeof descriptor);
		set_bits(&descriptor, slot->enable, 1, 1);
		before = descriptor;
		outcomes = qmd_write(family, &descriptor, &change, &saved);
		assert_int_equal(outcomes.counting, counts ? QMD_SLOT_USED : QMD_NO_RELEASE_SLOTS);
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
	for (size_t i = 0; i < generation_count; i++) {
		struct generation generation = generations[i];
		unsigned int version = generation.version;

		if (family_of(&generation) != family)
			continue;
		union descriptor descriptor = make(&generation), expected = descriptor;

		set_mask(&expected, &generation, 0xfffffff0);
		assert_int_equal(qmd_disable(family, &descriptor, &disable, &release),
		                 version == 0x30 ? QMD_NARROWED : QMD_SLOT_LEFT);
		if (version != 0x30)
			assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

TEST(kernels_without_blocks)
{
	for (size_t i = 0; i < generation_count; i++) {
		const struct generation *generation = &generations[i];
		const char *width = generation->major >= 9 ? "GRID_WIDTH" : "CTA_RASTER_WIDTH";
		union descriptor descriptor;

		ROW("GPU %u.%u, %s", generation->major, generation->minor, generation->name);
		memset(&descriptor, 0xff, sizeof descriptor);
		set_version(&descriptor, generation);
		assert_false(qmd_has_no_blocks(family_of(generation), &descriptor));
		set_field(&descriptor, generation, width, 0);
		assert_true(qmd_has_no_blocks(family_of(generation), &descriptor));
		set_field(&descriptor, generation, width, UINT32_C(1) << 31);
		assert_false(qmd_has_no_blocks(family_of(generation), &descriptor));
	}
}

/* Of bank 5, for the next node's parameters. */
static void set_bank(union descriptor *descriptor, const struct generation *generation, unsigned int valid,
                     unsigned int prefetch, unsigned int invalidate)
{
	set_bits(descriptor, first_bit(generation, "CONSTANT_BUFFER_%2$s", 5, "VALID"), 1, valid);
	set_bits(descriptor, first_bit(generation, "CONSTANT_BUFFER_%2$s", 5, "PREFETCH"), 2, prefetch);
	set_bits(descriptor, first_bit(generation, "CONSTANT_BUFFER_%2$s", 5, "INVALIDATE"), 1, invalidate);
}

/* Only where the bank is fetched behind the kernel (POST, 2), and no longer valid. */
TEST(fetching_ahead)
{
	static const struct {
		unsigned int valid, prefetch, invalidate, expected;
	} rows[] = {
		{0, 2, 0, 1}, /* as the driver leaves it */
		{1, 2, 0, 1}, {0, 0, 0, 0}, {0, 1, 0, 0}, {0, 3, 0, 0}, {0, 2, 1, 0},
	};

	for (size_t i = 0; i < COUNT_OF(rows) * generation_count; i++) {
		const struct generation *generation = &generations[i % generation_count];
		size_t row = i / generation_count;
		union descriptor descriptor = make(generation), expected;

		if (generation->major < 9)
			continue;
		ROW("%s: %u, %u, %u", generation->name, rows[row].valid, rows[row].prefetch, rows[row].invalidate);
		set_bank(&descriptor, generation, rows[row].valid, rows[row].prefetch, rows[row].invalidate);
		expected = descriptor;
		set_bank(&expected, generation, rows[row].expected, rows[row].prefetch, rows[row].invalidate);
		qmd_write(family_of(generation), &descriptor, &(struct qmd_change){.fetches_ahead = true}, NULL);
		assert_memory_equal(&descriptor, &expected, sizeof descriptor);
	}
}

TEST(writing_an_unknown_version)
{
	union descriptor descriptor = {.bytes = {[72] = 0x42}}, expected;

	descriptor.words[13] = 0x10400011;
	expected = descriptor;
	const struct qmd_mask disable = all_words(1);
	const struct qmd_change change = {.fetches_ahead = true, .disable = &disable, .is_exact = true};

	assert_int_equal(qmd_write(qmd_family_for(9, 0), &descriptor, &change, NULL).mask, QMD_UNKNOWN_VERSION);
	assert_memory_equal(&descriptor, &expected, sizeof descriptor);
}

RUN_TESTS_IN(read_headers, NULL, NULL, NULL)
