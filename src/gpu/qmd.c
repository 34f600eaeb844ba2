#include "qmd.h"

#include <stddef.h>
#include <string.h>

/* --- layouts ------------------------------------------------------------------------------------- */

/* Positions are in 32-bit words from the start of the descriptor, except for version_byte. */
struct qmd_layout {
	uint8_t version_byte;  /* the version: major in the high half, minor in the low */
	uint8_t first_version; /* the versions with this layout */
	uint8_t last_version;
	uint8_t mask_word;
	uint8_t mask_words; /* 2 or 4 */
	uint8_t valid_word; /* its bit 31 says that the mask is valid; NONE if the mask always is */
	uint8_t cluster_word;     /* GPC_CGA_WIDTH, _HEIGHT and _DEPTH in its bytes; NONE before clusters */
	uint8_t cooperative_word; /* GPU_CGA_WIDTH and _HEIGHT, _DEPTH in the next; NONE before clusters */
	uint8_t grid_word;        /* CTA_RASTER_WIDTH */
	uint8_t threads_word;     /* CTA_THREAD_DIMENSION0 and 1, 2 in the next */
	uint8_t shared_word;      /* the word of SHARED_MEMORY_SIZE, */
	uint8_t shared_low;       /* from this bit on, */
	uint8_t shared_bits;      /* of so many bits, */
	uint8_t shared_shift;     /* in units of 1 << shared_shift bytes */
	uint8_t banks_word;       /* CONSTANT_BUFFER_VALID(0) and the next ones, of four bits each; 0 where that was not measured */
};

/*
 * Releases. Positions are in bits, as the headers count them. A slot is in two places: its address and, 64 bits after
 * it, its payload; and its control, which is the same few fields in all versions, in another order. Those that are not
 * named here are 0 in our releases: RED_ADD, UNSIGNED, no trap and no membar.
 */
struct qmd_release_layout {
	uint8_t first_version, last_version;
	uint8_t address_bits;
	uint16_t address[QMD_SLOTS]; /* ADDRESS_LOWER, of each slot */
	uint16_t control[QMD_SLOTS]; /* its first bit; from there on: */
	uint8_t enable;
	uint8_t structure_size; /* two bits */
	uint8_t reduction_enable;
	uint8_t payload_64;
};

#define CONTROL_BITS 13

/* The other bits of two words: all but `count` of them, from this one on. */
#define KEEP(first, count) (~(((UINT64_C(1) << (count)) - 1) << (first)))

/* Descriptors are aligned to 4 bytes, and their masks too. */
static inline uint64_t load(const uint32_t *words)
{
	uint64_t value;

	memcpy(&value, words, sizeof value);
	return value;
}

static inline void store(uint32_t *words, uint64_t value)
{
	memcpy(words, &value, sizeof value);
}

#define NONE 0xff
#define CLUSTER_BITS UINT32_C(0x003f3f3f)
#define VALID_BIT (UINT32_C(1) << 31)

/* Kepler to Ada: versions 1.6 to 3.0, SM_DISABLE_MASK_LOWER and _UPPER. */
static const struct qmd_layout kepler_to_ada = {
	.version_byte = 72,
	.first_version = 0x16,
	.last_version = 0x30,
	.mask_word = 84 / 4,
	.mask_words = 2,
	.grid_word = 384 / 32,
	.valid_word = NONE,
	.cluster_word = NONE,
	.cooperative_word = NONE,
};

/* Hopper: version 4.0, TPC_DISABLE_MASK; measured on an H200. Version 4.1 keeps these four words, and has more
 * elsewhere, for TPCs beyond bit 127. */
static const struct qmd_layout hopper = {
	.version_byte = 72,
	.first_version = 0x40,
	.last_version = 0x41,
	.mask_word = 304 / 4,
	.mask_words = 4,
	.valid_word = 0,
	.cluster_word = 268 / 4,
	.cooperative_word = 276 / 4,
	.grid_word = 1024 / 32,
	.threads_word = 144 / 4,
	.shared_word = 72 / 4,
	.shared_low = 8,
	.shared_bits = 18,
	.shared_shift = 0,
	.banks_word = 416 / 32,
};

/* Blackwell: version 5.0. For version 5.1 the position of the mask is not published. */
static const struct qmd_layout blackwell = {
	.version_byte = 58,
	.first_version = 0x50,
	.last_version = 0x50,
	.mask_word = 280 / 4,
	.mask_words = 4,
	.valid_word = 16 / 4,
	.cluster_word = 256 / 4,
	.cooperative_word = 264 / 4,
	.grid_word = 1248 / 32,
	.threads_word = 136 / 4,
	.shared_word = 144 / 4,
	.shared_low = 0,
	.shared_bits = 11,
	.shared_shift = 7,
};

/* Version 3.0: the control is in the upper word of the address. Versions up to 2.4 have two slots, for 32-bit numbers.
 * So has, by its header, 3.0 of compute capability 8.0: it has a bit for 64-bit payloads, but its formats for a
 * reduction are called UNSIGNED_32 and SIGNED_32. From 8.6 on they are UNSIGNED and SIGNED. */
static const struct qmd_release_layout ampere_and_ada_releases = {
	.first_version = 0x30,
	.last_version = 0x30,
	.address_bits = 32 + 8,
	.address = {768, 896, 1664},
	.control = {819, 947, 1715},
	.enable = 823 - 819,
	.structure_size = 830 - 819,
	.reduction_enable = 826 - 819,
	.payload_64 = 829 - 819,
};

/* Measured on an H100 and an H200. */
static const struct qmd_release_layout hopper_releases = {
	.first_version = 0x40,
	.last_version = 0x41,
	.address_bits = 32 + 25,
	.address = {640, 768, 896},
	.control = {320, 336, 352},
	.enable = 320 - 320,
	.structure_size = 321 - 320,
	.reduction_enable = 324 - 320,
	.payload_64 = 332 - 320,
};

static const struct qmd_release_layout blackwell_releases = {
	.first_version = 0x50,
	.last_version = 0x50,
	.address_bits = 32 + 25,
	.address = {480, 768, 896},
	.control = {288, 304, 320},
	.enable = 288 - 288,
	.structure_size = 289 - 288,
	.reduction_enable = 292 - 288,
	.payload_64 = 300 - 288,
};

/* --- restricting ---------------------------------------------------------------------------------- */

static bool has_known_version(const struct qmd_layout *layout, const void *qmd)
{
	uint8_t version = ((const uint8_t *)qmd)[layout->version_byte];

	return version >= layout->first_version && version <= layout->last_version;
}

/* A mask that is not valid has no meaning. */
static bool mask_counts(const struct qmd_layout *layout, const uint32_t *words)
{
	return layout->valid_word == NONE || words[layout->valid_word] & VALID_BIT;
}

static bool must_fit(const struct qmd_layout *layout, const uint32_t *words)
{
	return layout->cluster_word != NONE &&
	       ((words[layout->cluster_word] & CLUSTER_BITS) | words[layout->cooperative_word]) != 0;
}

bool qmd_shows_must_fit(const struct qmd_family *family)
{
	return family->layout->cluster_word != NONE;
}

bool qmd_must_fit(const struct qmd_family *family, const void *qmd)
{
	return must_fit(family->layout, qmd);
}

static inline __attribute__((always_inline)) void store_mask(const struct qmd_layout *layout, uint32_t *words, uint64_t low,
                                                             uint64_t high)
{
	store(words + layout->mask_word, low);
	if (layout->mask_words == 4)
		store(words + layout->mask_word + 2, high);
	if (layout->valid_word != NONE)
		words[layout->valid_word] |= VALID_BIT;
}

/* Writes a slot, whose words keep other bits. */
static inline __attribute__((always_inline)) void store_slot(uint32_t *control, uint64_t keep_control, uint32_t *address,
                                                             uint64_t keep_address, struct qmd_saved_slot slot)
{
	store(control, (load(control) & keep_control) | slot.control);
	store(address, (load(address) & keep_address) | slot.address);
	store(address + 2, slot.payload);
}

static inline struct qmd_saved_slot written_by(const struct qmd_release *release)
{
	return (struct qmd_saved_slot){release->control.value, release->address.value, release->payload};
}

/* What qmd_release does. False if it cannot. */
static inline __attribute__((always_inline)) bool write_release(const struct qmd_layout *layout,
                                                                const struct qmd_release_layout *slots, uint32_t *words,
                                                                const struct qmd_release *release)
{
	uint32_t *control = words + slots->control[QMD_COUNTING_SLOT] / 32;
	uint32_t *address = words + slots->address[QMD_COUNTING_SLOT] / 32;
	uint64_t enable = UINT64_C(1) << (slots->control[QMD_COUNTING_SLOT] % 32 + slots->enable);
	uint8_t version = ((const uint8_t *)words)[layout->version_byte];
	bool has_slot = layout->first_version >= slots->first_version || version >= slots->first_version;
	bool done = has_slot && !(load(control) & enable);

	if (done)
		store_slot(control, KEEP(slots->control[QMD_COUNTING_SLOT] % 32, CONTROL_BITS), address, KEEP(0, slots->address_bits),
		           written_by(release));
	return done;
}

/* Runs in every launch. It is compiled once for each layout, so that the compiler knows the layout's constants. `slots` is
 * NULL if there are none. */
static inline __attribute__((always_inline)) enum qmd_outcome
disable_in(const struct qmd_layout *layout, const struct qmd_release_layout *slots, void *qmd, const struct qmd_mask *disable,
           const struct qmd_release *release)
{
	uint32_t *words = qmd, *mask = words + layout->mask_word;
	bool is_wide = layout->mask_words == 4;
	enum qmd_outcome outcome = QMD_NARROWED;

	if (!has_known_version(layout, qmd))
		return QMD_UNKNOWN_VERSION;
	if (must_fit(layout, words))
		return QMD_MUST_FIT;
	uint64_t low = disable->words[0], high = disable->words[1];

	if (mask_counts(layout, words)) {
		low |= load(mask);
		high |= is_wide ? load(mask + 2) : 0;
		if ((is_wide ? low & high : low) == UINT64_MAX) {
			low = disable->words[0];
			high = disable->words[1];
			outcome = QMD_OVERRULED;
		}
	}
	store_mask(layout, words, low, high);
	if (release && outcome == QMD_NARROWED && !(slots && write_release(layout, slots, words, release)))
		outcome = QMD_SLOT_LEFT;
	return outcome;
}

#define DISABLE_IN(name, layout, slots)                                                                                  \
	static __attribute__((hot)) enum qmd_outcome disable_in_##name(void *qmd, const struct qmd_mask *disable,       \
	                                                               const struct qmd_release *release)              \
	{                                                                                                               \
		return disable_in(layout, slots, qmd, disable, release);                                                \
	}

DISABLE_IN(kepler_to_ampere, &kepler_to_ada, NULL)
DISABLE_IN(ampere_and_ada, &kepler_to_ada, &ampere_and_ada_releases)
DISABLE_IN(hopper, &hopper, &hopper_releases)
DISABLE_IN(blackwell, &blackwell, &blackwell_releases)

/* --- families ------------------------------------------------------------------------------------- */

#define COMPUTE(major, minor) ((major) << 8 | (minor))
#define LAST_OF(major) COMPUTE(major, 0xff)

/* Compute capability 3.0 has version 0.6, which has no mask. */
static const struct qmd_family families[] = {
	{COMPUTE(3, 5), COMPUTE(8, 5), &kepler_to_ada, disable_in_kepler_to_ampere, NULL},
	{COMPUTE(8, 6), LAST_OF(8), &kepler_to_ada, disable_in_ampere_and_ada, &ampere_and_ada_releases},
	{COMPUTE(9, 0), LAST_OF(9), &hopper, disable_in_hopper, &hopper_releases},
	{COMPUTE(10, 0), LAST_OF(12), &blackwell, disable_in_blackwell, &blackwell_releases},
};

const struct qmd_family *qmd_family_for(unsigned int compute_major, unsigned int compute_minor)
{
	unsigned int compute = COMPUTE(compute_major, compute_minor);
	const struct qmd_family *found = NULL;

	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
		if (compute >= families[i].first_compute && compute <= families[i].last_compute)
			found = &families[i];
	}
	return found;
}

unsigned int qmd_mask_bits(const struct qmd_family *family)
{
	return family->layout->mask_words * 32u;
}

static void save_mask(const struct qmd_family *family, const void *qmd, struct qmd_saved *saved)
{
	const struct qmd_layout *layout = family->layout;
	const uint32_t *words = qmd;

	saved->family = family;
	saved->is_valid = mask_counts(layout, words);
	saved->mask.words[0] = load(words + layout->mask_word);
	saved->mask.words[1] = layout->mask_words == 4 ? load(words + layout->mask_word + 2) : 0;
}

struct qmd_mask qmd_own_mask(const struct qmd_family *family, const void *qmd)
{
	struct qmd_saved saved;

	save_mask(family, qmd, &saved);
	return saved.is_valid ? saved.mask : (struct qmd_mask){{0}};
}

bool qmd_is_known(const struct qmd_family *family, const void *qmd)
{
	return has_known_version(family->layout, qmd);
}

struct qmd_mask_place qmd_mask_place(const struct qmd_family *family)
{
	const struct qmd_layout *layout = family->layout;
	bool is_always_valid = layout->valid_word == NONE;

	return (struct qmd_mask_place){
		.first = layout->mask_word, .words = layout->mask_words,
		.control = is_always_valid ? 0 : layout->valid_word, .valid = is_always_valid ? 0 : VALID_BIT,
	};
}

bool qmd_has_no_blocks(const struct qmd_family *family, const void *qmd)
{
	return ((const uint32_t *)qmd)[family->layout->grid_word] == 0;
}

/* --- shapes ------------------------------------------------------------------------------------------ */

static unsigned int cluster_of(const struct qmd_layout *layout, const uint32_t *words)
{
	uint32_t sizes = layout->cluster_word != NONE ? words[layout->cluster_word] & CLUSTER_BITS : 0;
	unsigned int blocks = (sizes & 0xff) * (sizes >> 8 & 0xff) * (sizes >> 16 & 0xff);

	return blocks > 0 ? blocks : 1;
}

/* The product of two 16-bit sizes in one word and one in the next. */
static unsigned int product_at(const uint32_t *words)
{
	return (words[0] & 0xffff) * (words[0] >> 16) * (words[1] & 0xffff);
}

struct qmd_shape qmd_shape_of(const struct qmd_family *family, const void *qmd)
{
	const struct qmd_layout *layout = family->layout;
	const uint32_t *words = qmd;
	struct qmd_shape shape = {.cluster = cluster_of(layout, words)};

	if (layout->cooperative_word != NONE) {
		uint32_t shared = words[layout->shared_word] >> layout->shared_low;

		/* The size is in clusters, if the launch has clusters (hardware.md). */
		shape.cooperative = product_at(words + layout->cooperative_word) * shape.cluster;
		shape.threads = (words[layout->threads_word] & 0xffff) * (words[layout->threads_word] >> 16) *
		                (words[layout->threads_word + 1] & 0xff);
		shape.shared_bytes = (shared & ((UINT32_C(1) << layout->shared_bits) - 1)) << layout->shared_shift;
	}
	return shape;
}

/* --- releases --------------------------------------------------------------------------------------- */

enum structure_size {
	FOUR_WORDS = 0,
	TWO_WORDS = 2
};

/* From this bit on, so many bits, which lie in two words. */
static struct qmd_bits bits_at(unsigned int position, unsigned int count, uint64_t value)
{
	unsigned int shift = position % 32;

	return (struct qmd_bits){.keep = KEEP(shift, count), .value = value << shift, .word = position / 32};
}

static uint64_t control_of(const struct qmd_release_layout *layout, enum qmd_release_kind kind)
{
	uint64_t size = kind == QMD_ADDS ? TWO_WORDS : FOUR_WORDS, reduction = kind == QMD_ADDS;

	return UINT64_C(1) << layout->enable | UINT64_C(1) << layout->payload_64 | reduction << layout->reduction_enable |
	       size << layout->structure_size;
}

uint64_t qmd_release_reach(const struct qmd_family *family)
{
	return family->releases ? UINT64_C(1) << family->releases->address_bits : 0;
}

bool qmd_release_prepare(struct qmd_release *release, const struct qmd_family *family, unsigned int slot,
                         enum qmd_release_kind kind, uint64_t address, uint64_t value)
{
	const struct qmd_release_layout *layout = family->releases;

	if (address >= qmd_release_reach(family))
		return false;
	*release = (struct qmd_release){
		.version_byte = family->layout->version_byte,
		.first_version = layout->first_version,
		.last_version = layout->last_version,
		.enable = UINT64_C(1) << (layout->control[slot] % 32 + layout->enable),
		.control = bits_at(layout->control[slot], CONTROL_BITS, control_of(layout, kind)),
		.address = bits_at(layout->address[slot], layout->address_bits, address),
		.payload = value,
	};
	return true;
}

static inline enum qmd_release_outcome look(const struct qmd_release *release, const void *qmd)
{
	uint8_t version = ((const uint8_t *)qmd)[release->version_byte];
	enum qmd_release_outcome outcome = QMD_NO_RELEASE_SLOTS;

	if (version >= release->first_version && version <= release->last_version)
		outcome = load((const uint32_t *)qmd + release->control.word) & release->enable ? QMD_SLOT_USED : QMD_RELEASES;
	return outcome;
}

enum qmd_release_outcome qmd_release_look(const struct qmd_release *release, const void *qmd)
{
	return look(release, qmd);
}

/* A slot of a descriptor, as the release says where. */
static inline void store_at(const struct qmd_release *release, void *qmd, struct qmd_saved_slot slot)
{
	uint32_t *words = qmd;

	store_slot(words + release->control.word, release->control.keep, words + release->address.word, release->address.keep, slot);
}

__attribute__((hot)) enum qmd_release_outcome qmd_release(const struct qmd_release *release, void *qmd)
{
	enum qmd_release_outcome outcome = look(release, qmd);

	if (outcome == QMD_RELEASES)
		store_at(release, qmd, written_by(release));
	return outcome;
}

bool qmd_slot_is_used(const struct qmd_family *family, const void *qmd, unsigned int slot)
{
	const struct qmd_release_layout *layout = family->releases;
	uint8_t version = ((const uint8_t *)qmd)[family->layout->version_byte];
	const uint32_t *words = qmd;

	if (!layout || version < layout->first_version || version > layout->last_version)
		return false;
	unsigned int enable = layout->control[slot] + (unsigned int)layout->enable;

	return words[enable / 32] >> (enable % 32) & 1;
}

uint64_t qmd_slot_address(const struct qmd_family *family, const void *qmd, unsigned int slot)
{
	const struct qmd_release_layout *layout = family->releases;
	uint64_t address = 0;

	if (qmd_slot_is_used(family, qmd, slot))
		address = load((const uint32_t *)qmd + layout->address[slot] / 32) & ~KEEP(0, layout->address_bits);
	return address;
}

struct qmd_saved_slot qmd_save_slot(const struct qmd_release *release, const void *qmd)
{
	const uint32_t *words = qmd;

	return (struct qmd_saved_slot){
		.control = load(words + release->control.word) & ~release->control.keep,
		.address = load(words + release->address.word) & ~release->address.keep,
		.payload = load(words + release->address.word + 2),
	};
}

void qmd_restore_slot(const struct qmd_release *release, void *qmd, const struct qmd_saved_slot *saved)
{
	store_at(release, qmd, *saved);
}

/* --- fetching ahead ------------------------------------------------------------------------------------ */

/* A node of a graph fetches the parameters of the next one ahead, by a bank of constants that is valid for this alone (facts.md, "CUDA
 * graphs"). The driver makes that bank invalid for good when the next node is disabled, and leaves all else of it. Its bits: VALID, two
 * of PREFETCH, and INVALIDATE. */
#define NEXT_BANK(bits) (UINT32_C(bits) << 4 * 5)
#define BANK_VALID 1
#define PREFETCH_POST 4

/* Makes it valid again. Descriptors of other kinds stay unchanged, and so do versions for which that was not measured. */
static void fetch_ahead(const struct qmd_family *family, void *qmd)
{
	const struct qmd_layout *layout = family->layout;
	uint32_t *banks = (uint32_t *)qmd + layout->banks_word;

	if (layout->banks_word != 0 && has_known_version(layout, qmd) && (*banks & NEXT_BANK(15)) == NEXT_BANK(PREFETCH_POST))
		*banks |= NEXT_BANK(BANK_VALID);
}

enum qmd_release_outcome qmd_stamp(const struct qmd_release *release, void *qmd, uint64_t at, uint64_t number)
{
	struct qmd_release stamping = *release;

	stamping.address.value = at;
	stamping.payload = number;
	return qmd_release(&stamping, qmd);
}

/* --- all of it ---------------------------------------------------------------------------------------- */

static enum qmd_outcome write_mask(const struct qmd_family *family, void *qmd, const struct qmd_change *change)
{
	if (!change->is_exact)
		return qmd_disable(family, qmd, change->disable, NULL);
	store_mask(family->layout, qmd, change->disable->words[0], change->disable->words[1]);
	return QMD_NARROWED;
}

struct qmd_outcomes qmd_write(const struct qmd_family *family, void *qmd, const struct qmd_change *change,
                              struct qmd_saved *saved)
{
	struct qmd_outcomes outcomes = {QMD_NARROWED, QMD_NO_RELEASE_SLOTS, QMD_NO_RELEASE_SLOTS};
	struct qmd_saved unused;

	saved = saved ? saved : &unused; // cppcheck-suppress uninitvar
	*saved = (struct qmd_saved){.family = NULL};
	if (change->disable) {
		save_mask(family, qmd, saved);
		outcomes.mask = write_mask(family, qmd, change);
	}
	if (change->fetches_ahead)
		fetch_ahead(family, qmd);
	if (change->counting) {
		saved->counting_slot = qmd_save_slot(change->counting, qmd);
		outcomes.counting = qmd_release(change->counting, qmd);
		saved->counting = outcomes.counting == QMD_RELEASES ? change->counting : NULL;
	}
	if (change->stamping) {
		saved->stamping_slot = qmd_save_slot(change->stamping, qmd);
		outcomes.stamping = qmd_stamp(change->stamping, qmd, change->timestamp_at, change->timestamp);
		saved->stamping = outcomes.stamping == QMD_RELEASES ? change->stamping : NULL;
	}
	return outcomes;
}

void qmd_restore(void *qmd, const struct qmd_saved *saved)
{
	const struct qmd_layout *layout = saved->family ? saved->family->layout : NULL;
	uint32_t *words = qmd;

	if (layout)
		store_mask(layout, words, saved->mask.words[0], saved->mask.words[1]);
	if (layout && layout->valid_word != NONE && !saved->is_valid)
		words[layout->valid_word] &= ~VALID_BIT;
	if (saved->counting)
		qmd_restore_slot(saved->counting, qmd, &saved->counting_slot);
	if (saved->stamping)
		qmd_restore_slot(saved->stamping, qmd, &saved->stamping_slot);
}
