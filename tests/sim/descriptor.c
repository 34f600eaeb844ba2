#include "descriptor.h"

#include "context.h"
#include "faults.h"
#include "launch.h"
#include "scheduler.h"

#include <string.h>

/* --- positions of fields ---------------------------------------------------------------------------- */

/* A field; `bits` is 0 if a version has no such field. */
struct field {
	uint16_t low;
	uint16_t bits;
};

/* As the headers write them: highest bit, lowest bit. */
#define FIELD(high, low) ((struct field){(low), (high) - (low) + 1})
#define BIT(number) FIELD(number, number)

struct slot {
	struct field enable;
	struct field size;
	struct field reduction_enable;
	struct field operation;
	struct field format;
	struct field payload_64;
	struct field address;
	struct field payload;
};

/* The three slots of a version; what has no name here stays 0. */
static const struct slot slots_of_ampere[DESCRIPTOR_SLOTS] = {
	{BIT(823), FIELD(831, 830), BIT(826), FIELD(822, 820), FIELD(825, 824), BIT(829), FIELD(807, 768), FIELD(895, 832)},
	{BIT(951), FIELD(959, 958), BIT(954), FIELD(950, 948), FIELD(953, 952), BIT(957), FIELD(935, 896), FIELD(1023, 960)},
	{BIT(1719), FIELD(1727, 1726), BIT(1722), FIELD(1718, 1716), FIELD(1721, 1720), BIT(1725), FIELD(1703, 1664),
	 FIELD(1791, 1728)},
};

static const struct slot slots_of_hopper[DESCRIPTOR_SLOTS] = {
	{BIT(320), FIELD(322, 321), BIT(324), FIELD(327, 325), FIELD(329, 328), BIT(332), FIELD(696, 640), FIELD(767, 704)},
	{BIT(336), FIELD(338, 337), BIT(340), FIELD(343, 341), FIELD(345, 344), BIT(348), FIELD(824, 768), FIELD(895, 832)},
	{BIT(352), FIELD(354, 353), BIT(356), FIELD(359, 357), FIELD(361, 360), BIT(364), FIELD(952, 896), FIELD(1023, 960)},
};

static const struct slot slots_of_blackwell[DESCRIPTOR_SLOTS] = {
	{BIT(288), FIELD(290, 289), BIT(292), FIELD(295, 293), FIELD(297, 296), BIT(300), FIELD(536, 480), FIELD(607, 544)},
	{BIT(304), FIELD(306, 305), BIT(308), FIELD(311, 309), FIELD(313, 312), BIT(316), FIELD(824, 768), FIELD(895, 832)},
	{BIT(320), FIELD(322, 321), BIT(324), FIELD(327, 325), FIELD(329, 328), BIT(332), FIELD(952, 896), FIELD(1023, 960)},
};

struct format {
	unsigned int compute; /* ten times major, plus minor: this one and those up to the next row */
	uint8_t version_value;
	struct field version;
	struct field grid[3];
	struct field block[3];
	struct field registers;
	struct field shared;
	unsigned int shared_unit; /* bytes */
	struct field cluster[3];
	struct field cooperative[3];
	struct field mask_valid;
	struct field mask;
	struct field next; /* of a graph's node: VALID and PREFETCH of the bank that the next node's parameters are in */
	const struct slot *slots; /* NULL where they do not add 64-bit numbers */
};

/* Versions 1.7 to 3.0 differ only in the depth of the grid, in the registers and in the slots. */
#define FORMAT_BEFORE_HOPPER(first_compute, number, depth, register_count, its_slots)                                              \
	{                                                                                                                          \
		.compute = (first_compute), .version_value = (number), .version = FIELD(583, 576), .registers = register_count,    \
		.grid = {FIELD(415, 384), FIELD(431, 416), depth},                                                                 \
		.block = {FIELD(607, 592), FIELD(623, 608), FIELD(639, 624)},                                                      \
		.shared = FIELD(561, 544), .shared_unit = 1, .mask = FIELD(735, 672), .slots = its_slots,                          \
	}

/* The version for compute capability 9.0 was measured. For the others it is the newest one in the header of the generation. */
static const struct format formats[] = {
	FORMAT_BEFORE_HOPPER(30, 0x17, FIELD(447, 432), FIELD(1503, 1496), NULL),
	FORMAT_BEFORE_HOPPER(60, 0x21, FIELD(463, 448), FIELD(991, 984), NULL),
	FORMAT_BEFORE_HOPPER(70, 0x22, FIELD(463, 448), FIELD(656, 648), NULL),
	FORMAT_BEFORE_HOPPER(75, 0x23, FIELD(463, 448), FIELD(656, 648), NULL),
	FORMAT_BEFORE_HOPPER(80, 0x30, FIELD(463, 448), FIELD(656, 648), slots_of_ampere),
	{
		.compute = 90, .version_value = 0x40, .version = FIELD(583, 576), .registers = FIELD(1208, 1200),
		.grid = {FIELD(1055, 1024), FIELD(1071, 1056), FIELD(1103, 1088)},
		.block = {FIELD(1167, 1152), FIELD(1183, 1168), FIELD(1199, 1184)},
		.cluster = {FIELD(2149, 2144), FIELD(2157, 2152), FIELD(2165, 2160)},
		.cooperative = {FIELD(2223, 2208), FIELD(2239, 2224), FIELD(2255, 2240)},
		.shared = FIELD(601, 584), .shared_unit = 1, .mask_valid = BIT(31), .mask = FIELD(2559, 2432),
		.next = FIELD(438, 436), .slots = slots_of_hopper,
	},
	{
		.compute = 100, .version_value = 0x50, .version = FIELD(471, 464), .registers = FIELD(1136, 1128),
		.grid = {FIELD(1279, 1248), FIELD(1295, 1280), FIELD(1327, 1312)},
		.block = {FIELD(1103, 1088), FIELD(1119, 1104), FIELD(1127, 1120)},
		.cluster = {FIELD(2053, 2048), FIELD(2061, 2056), FIELD(2069, 2064)},
		.cooperative = {FIELD(2127, 2112), FIELD(2143, 2128), FIELD(2159, 2144)},
		.shared = FIELD(1162, 1152), .shared_unit = 128, .mask_valid = BIT(159), .mask = FIELD(2367, 2240),
		.next = FIELD(1878, 1876), .slots = slots_of_blackwell,
	},
};

#define BAD_VERSION 0x77
#define NARROW_VERSION 0x30

static const struct format *format_of(const struct topology *gpu)
{
	const struct format *found = &formats[0];

	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		if (formats[i].compute <= gpu->compute_major * 10u + gpu->compute_minor)
			found = &formats[i];
	}
	return found;
}

/* --- bits ------------------------------------------------------------------------------------------- */

static bool get_bit(const struct descriptor *descriptor, unsigned int bit)
{
	return descriptor->words[bit / 32] >> (bit % 32) & 1;
}

static void set_bit(struct descriptor *descriptor, unsigned int bit, bool on)
{
	if (on)
		descriptor->words[bit / 32] |= UINT32_C(1) << (bit % 32);
	else
		descriptor->words[bit / 32] &= ~(UINT32_C(1) << (bit % 32));
}

static void set_field(struct descriptor *descriptor, struct field field, uint64_t value)
{
	for (unsigned int bit = 0; bit < field.bits; bit++)
		set_bit(descriptor, field.low + bit, bit < 64 && value >> bit & 1);
}

static uint64_t get_field(const struct descriptor *descriptor, struct field field)
{
	uint64_t value = 0;

	for (unsigned int bit = 0; bit < field.bits; bit++)
		value |= (uint64_t)get_bit(descriptor, field.low + bit) << bit;
	return value;
}

static void set_dimensions(struct descriptor *descriptor, const struct field fields[3], struct dimensions dimensions)
{
	set_field(descriptor, fields[0], dimensions.x);
	set_field(descriptor, fields[1], dimensions.y);
	set_field(descriptor, fields[2], dimensions.z);
}

/* --- the driver's side ------------------------------------------------------------------------------ */

/* Bytes that hold the version in other descriptors, but not in this one. They must not be read as a version (facts.md, "Launch
 * descriptors"). A 4.0 descriptor was seen to hold 3, 4 and 0 at byte 58; a 5.0 one may hold anything at byte 72. */
static void write_misleading_bytes(struct descriptor *descriptor, const struct format *format)
{
	static const uint8_t seen[] = {3, 4, 0};
	static _Atomic unsigned int turn;

	if (format->version_value == 0x40)
		set_field(descriptor, FIELD(471, 464), seen[turn++ % sizeof seen]);
	else if (format->version_value == 0x50)
		set_field(descriptor, FIELD(583, 576), 0x41);
}

/* The bits of the mask's words up to the last word with a TPC's bit. After that a green context leaves 0
 * (facts.md, "Launch descriptors"). */
static unsigned int green_mask_bits(const struct format *format, const struct topology *gpu)
{
	unsigned int bits = 0;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		if (gpu->tpcs[tpc].mask_bit >= bits)
			bits = (gpu->tpcs[tpc].mask_bit / 32 + 1) * 32;
	}
	return bits < format->mask.bits ? bits : format->mask.bits;
}

static void disable(struct descriptor *descriptor, const struct format *format, unsigned int from, unsigned int to)
{
	for (unsigned int bit = from; bit < to; bit++)
		set_bit(descriptor, format->mask.low + bit, true);
	set_field(descriptor, format->mask_valid, 1);
}

static void write_green_mask(struct descriptor *descriptor, const struct format *format,
                             const struct topology *gpu, const struct tpcset *tpcs)
{
	disable(descriptor, format, 0, green_mask_bits(format, gpu));
	for (unsigned int tpc = tpcset_next(tpcs, 0); tpc < TPCSET_MAX; tpc = tpcset_next(tpcs, tpc + 1)) {
		if (gpu->tpcs[tpc].mask_bit < format->mask.bits)
			set_bit(descriptor, format->mask.low + gpu->tpcs[tpc].mask_bit, false);
	}
}

/* A singleton has no room for a cluster of more blocks than a TPC has SMs, so the driver disables singletons for it (facts.md,
 * "Launch descriptors": measured with 4). Their bits come after those of all GPCs (facts.md, "Mask bits"). */
static void write_cluster_mask(struct descriptor *descriptor, const struct format *format, const struct launch *launch)
{
	const struct topology *gpu = launch->context->gpu;

	if (launch_cluster_size(launch) > gpu->sms_per_tpc)
		disable(descriptor, format, (unsigned int)gpu->gpc_limit * gpu->tpc_limit, format->mask.bits);
}

/* Grids of clusters are counted in clusters (hardware.md). */
static struct dimensions grid_of(const struct launch *launch)
{
	struct dimensions grid = launch->grid;

	if (launch_cluster_size(launch) > 0) {
		grid.x /= launch->cluster.x;
		grid.y /= launch->cluster.y;
		grid.z /= launch->cluster.z;
	}
	return grid;
}

/* The grid of a cooperative launch is in a field of its own, and the usual one is 1 (facts.md, "Launch descriptors"). */
static void write_grid(struct descriptor *descriptor, const struct format *format, const struct launch *launch)
{
	static const struct dimensions one = {1, 1, 1};
	bool apart = launch->cooperative && format->cooperative[0].bits > 0;

	set_dimensions(descriptor, format->grid, apart ? one : grid_of(launch));
	if (apart)
		set_dimensions(descriptor, format->cooperative, grid_of(launch));
	set_dimensions(descriptor, format->cluster, launch->cluster);
}

static uint8_t version_of(const struct format *format)
{
	uint8_t version = format->version_value;

	if (fault(FAULT_BAD_QMD))
		version = BAD_VERSION;
	else if (fault(FAULT_NARROW_QMD))
		version = NARROW_VERSION;
	return version;
}

void descriptor_write(struct descriptor *descriptor, const struct launch *launch)
{
	const struct topology *gpu = launch->context->gpu;
	const struct format *format = format_of(gpu);

	memset(descriptor, 0, sizeof *descriptor);
	write_misleading_bytes(descriptor, format);
	set_field(descriptor, format->version, version_of(format));
	write_grid(descriptor, format, launch);
	set_dimensions(descriptor, format->block, launch->block);
	set_field(descriptor, format->registers, OCCUPANCY_REGISTERS_PER_THREAD);
	set_field(descriptor, format->shared, (launch->shared_bytes + format->shared_unit - 1) / format->shared_unit);
	if (launch->context->is_green)
		write_green_mask(descriptor, format, gpu, &launch->context->tpcs);
	if (launch_cluster_size(launch) > 0)
		write_cluster_mask(descriptor, format, launch);
}

#define NEXT_VALID 1
#define NEXT_POST 4

bool descriptor_has_next(const struct topology *gpu)
{
	return format_of(gpu)->next.bits > 0;
}

void descriptor_set_next(struct descriptor *descriptor, const struct topology *gpu, bool fetches_ahead)
{
	set_field(descriptor, format_of(gpu)->next, NEXT_POST | (fetches_ahead ? NEXT_VALID : 0));
}

/* The structure's sizes, in words. */
static const unsigned int sizes[] = {4, 1, 2};

bool descriptor_set_release(struct descriptor *descriptor, const struct topology *gpu, unsigned int slot,
                            const struct release *release)
{
	const struct format *format = format_of(gpu);

	if (!format->slots)
		return false;
	const struct slot *where = &format->slots[slot];

	for (unsigned int i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		if (sizes[i] == release->words)
			set_field(descriptor, where->size, i);
	}
	set_field(descriptor, where->enable, 1);
	set_field(descriptor, where->reduction_enable, release->reduces);
	set_field(descriptor, where->operation, release->operation);
	set_field(descriptor, where->payload_64, release->is_64_bit);
	set_field(descriptor, where->address, release->address);
	set_field(descriptor, where->payload, release->payload);
	return true;
}

void descriptor_rewrite(struct descriptor *descriptor, const struct launch *launch)
{
	const struct topology *gpu = launch->context->gpu;
	const struct descriptor before = *descriptor;
	struct release release;

	descriptor_write(descriptor, launch);
	for (unsigned int slot = 0; slot < DESCRIPTOR_SLOTS; slot++) {
		if (descriptor_release(&before, gpu, slot, &release))
			descriptor_set_release(descriptor, gpu, slot, &release);
	}
}

/* --- the hardware's side ---------------------------------------------------------------------------- */

static void clear_slot(struct descriptor *descriptor, const struct slot *slot)
{
	const struct field fields[] = {slot->enable, slot->size, slot->reduction_enable, slot->operation, slot->format,
	                               slot->payload_64, slot->address, slot->payload};

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		set_field(descriptor, fields[i], 0);
}

void descriptor_check_change(const struct descriptor *before, const struct descriptor *after, const struct topology *gpu)
{
	const struct format *format = format_of(gpu);
	const struct field may_change[] = {format->mask, format->mask_valid, format->next};
	struct descriptor a = *before, b = *after;

	for (unsigned int slot = 0; slot < DESCRIPTOR_SLOTS && format->slots; slot++) {
		clear_slot(&a, &format->slots[slot]);
		clear_slot(&b, &format->slots[slot]);
	}
	for (size_t i = 0; i < sizeof may_change / sizeof may_change[0]; i++) {
		set_field(&a, may_change[i], 0);
		set_field(&b, may_change[i], 0);
	}
	if (memcmp(a.words, b.words, sizeof a.words) != 0)
		fatal("a callback changed a launch descriptor outside its mask and its releases");
}

struct tpcset descriptor_enabled(const struct descriptor *descriptor, const struct topology *gpu)
{
	const struct format *format = format_of(gpu);
	struct tpcset enabled = topology_all(gpu);
	bool counts = format->mask_valid.bits == 0 || get_bit(descriptor, format->mask_valid.low);

	for (unsigned int tpc = 0; tpc < gpu->tpc_count && counts; tpc++) {
		unsigned int bit = gpu->tpcs[tpc].mask_bit;

		if (bit < format->mask.bits && get_bit(descriptor, format->mask.low + bit))
			tpcset_remove(&enabled, tpc);
	}
	return enabled;
}

bool descriptor_fetches_ahead(const struct descriptor *descriptor, const struct topology *gpu)
{
	return get_field(descriptor, format_of(gpu)->next) == (NEXT_POST | NEXT_VALID);
}

bool descriptor_release(const struct descriptor *descriptor, const struct topology *gpu, unsigned int slot, struct release *release)
{
	const struct format *format = format_of(gpu);

	if (!format->slots || !get_bit(descriptor, format->slots[slot].enable.low))
		return false;
	const struct slot *where = &format->slots[slot];
	uint64_t size = get_field(descriptor, where->size);

	if (size >= sizeof sizes / sizeof sizes[0] || get_field(descriptor, where->format) != 0)
		fatal("a release of a kind that the hardware does not have");
	*release = (struct release){
		.words = sizes[size], .reduces = get_bit(descriptor, where->reduction_enable.low),
		.operation = (unsigned int)get_field(descriptor, where->operation),
		.is_64_bit = get_bit(descriptor, where->payload_64.low), .address = get_field(descriptor, where->address),
		.payload = get_field(descriptor, where->payload),
	};
	return true;
}
