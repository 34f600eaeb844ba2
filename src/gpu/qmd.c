#include "qmd.h"

#include <stddef.h>
#include <string.h>

/* --- layouts ------------------------------------------------------------------------------------- */

/* Positions are in 32-bit words from the start of the descriptor, except for version_byte. */
struct qmd_layout {
	uint8_t version_byte;  /* the byte of the version: major in the high half, minor in the low half */
	uint8_t first_version; /* the versions with this layout */
	uint8_t last_version;
	uint8_t mask_word;
	uint8_t mask_words; /* 2 or 4 */
	uint8_t upper_word; /* four more words of the mask, from bit QMD_MASK_BITS on; or 0 */
	uint8_t valid_word; /* bit 31: the mask is valid; NONE if the mask always is */
	uint8_t cluster_word;     /* bytes GPC_CGA_WIDTH, _HEIGHT and _DEPTH; NONE before clusters */
	uint8_t cooperative_word; /* GPU_CGA_WIDTH and _HEIGHT, then _DEPTH; NONE before clusters */
	uint8_t grid_word;        /* CTA_RASTER_WIDTH, GRID_WIDTH, then HEIGHT, then DEPTH where there are slots */
	uint8_t threads_word;     /* CTA_THREAD_DIMENSION0 and 1, then 2 */
	uint8_t shared_word;      /* the word of SHARED_MEMORY_SIZE */
	uint8_t shared_low;       /* the first bit of SHARED_MEMORY_SIZE */
	uint8_t shared_bits;      /* the number of bits */
	uint8_t shared_shift;     /* in units of 1 << shared_shift bytes */
	uint8_t banks_word;       /* CONSTANT_BUFFER_VALID(0) and following, of four bits each; 0 before Hopper */
	const struct qmd_release_layout *releases; /* NULL without usable slots */
};

/*
 * Releases. Positions are in bits, as in the headers. A slot has two parts: the address with the payload 64 bits
 * behind; and the control, with the same few fields in all versions, in different orders. Fields without a name here
 * are 0 in our releases: RED_ADD, UNSIGNED, no trap and no membar.
 */
struct qmd_release_layout {
	uint8_t address_bits;
	uint16_t address[QMD_SLOTS]; /* ADDRESS_LOWER, of each slot */
	uint16_t control[QMD_SLOTS]; /* the first bit of the control, for the positions below */
	uint8_t enable;
	uint8_t structure_size; /* two bits */
	uint8_t reduction_enable;
	uint8_t payload_64;
};

#define CONTROL_BITS 13

/* A mask of all bits except `count` bits from `first` on. */
#define KEEP(first, count) (~(((UINT64_C(1) << (count)) - 1) << (first)))

/* Descriptors and masks are aligned to 4 bytes. */
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

/* Version 3.0: the control is in the upper word of the address. Versions up to 2.4 have two slots, for 32-bit numbers.
 * By its header, 3.0 of compute capability 8.0 has the same: there is a bit for 64-bit payloads, but the formats for a
 * reduction are called UNSIGNED_32 and SIGNED_32. From 8.6 on, the names are UNSIGNED and SIGNED. */
static const struct qmd_release_layout ampere_and_ada_releases = {
	.address_bits = 32 + 8,
	.address = {768, 896, 1664},
	.control = {819, 947, 1715},
	.enable = 823 - 819,
	.structure_size = 830 - 819,
	.reduction_enable = 826 - 819,
	.payload_64 = 829 - 819,
};

/* Versions 4.0, measured on an H100 and an H200, and 4.1. */
static const struct qmd_release_layout hopper_releases = {
	.address_bits = 32 + 25,
	.address = {640, 768, 896},
	.control = {320, 336, 352},
	.enable = 320 - 320,
	.structure_size = 321 - 320,
	.reduction_enable = 324 - 320,
	.payload_64 = 332 - 320,
};

/* Version 5.0. */
static const struct qmd_release_layout blackwell_releases = {
	.address_bits = 32 + 25,
	.address = {480, 768, 896},
	.control = {288, 304, 320},
	.enable = 288 - 288,
	.structure_size = 289 - 288,
	.reduction_enable = 292 - 288,
	.payload_64 = 300 - 288,
};

#define KEPLER_TO_ADA												\
	.version_byte = 72, .mask_word = 84 / 4, .mask_words = 2, .grid_word = 384 / 32, .valid_word = NONE,	\
	.cluster_word = NONE, .cooperative_word = NONE

/* SM_DISABLE_MASK_LOWER and _UPPER. Version 3.0 of compute capability 8.9 has eight more bits in _EXT_LOWER and
 * _EXT_UPPER. The TPCs of these bits are not published. */
static const struct qmd_layout kepler_to_ada = {KEPLER_TO_ADA, .first_version = 0x16, .last_version = 0x30};
static const struct qmd_layout ampere_and_ada = {
	KEPLER_TO_ADA, .first_version = 0x30, .last_version = 0x30, .releases = &ampere_and_ada_releases,
};

#define FROM_HOPPER_ON												\
	.version_byte = 72, .mask_word = 304 / 4, .mask_words = 4, .valid_word = 0, .cluster_word = 268 / 4,	\
	.cooperative_word = 276 / 4, .grid_word = 1024 / 32, .threads_word = 144 / 4, .shared_word = 72 / 4,	\
	.shared_low = 8, .shared_bits = 18, .shared_shift = 0, .banks_word = 416 / 32, .releases = &hopper_releases

/* TPC_DISABLE_MASK; measured on an H200. */
static const struct qmd_layout hopper = {FROM_HOPPER_ON, .first_version = 0x40, .last_version = 0x40};

/* Blackwell's headers have this version beside 5.0. The length of TPC_DISABLE_MASK_UPPER is not published. Four words,
 * since version 5.0 has room for eight words of mask in one piece. */
static const struct qmd_layout blackwell_4_1 = {
	FROM_HOPPER_ON, .first_version = 0x41, .last_version = 0x41, .upper_word = 2688 / 32,
};

/* For version 5.1 the position of the mask is not published. */
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
	.banks_word = 1856 / 32,
	.releases = &blackwell_releases,
};

/* --- restricting ---------------------------------------------------------------------------------- */

static bool has_known_version(const struct qmd_layout *layout, const void *qmd)
{
	uint8_t version = ((const uint8_t *)qmd)[layout->version_byte];

	return version >= layout->first_version && version <= layout->last_version;
}

static bool mask_counts(const struct qmd_layout *layout, const uint32_t *words)
{
	return layout->valid_word == NONE || words[layout->valid_word] & VALID_BIT;
}

static bool must_fit(const struct qmd_layout *layout, const uint32_t *words)
{
	return layout->cluster_word != NONE &&
	       ((words[layout->cluster_word] & CLUSTER_BITS) | words[layout->cooperative_word]) != 0;
}

/* Bits without a TPC on any GPU. */
static const struct qmd_mask no_tpcs = {{UINT64_MAX, UINT64_MAX}};

static inline void store_upper(const struct qmd_layout *layout, uint32_t *words, struct qmd_mask upper)
{
	store(words + layout->upper_word, upper.words[0]);
	store(words + layout->upper_word + 2, upper.words[1]);
}

static inline __attribute__((always_inline)) void store_mask(const struct qmd_layout *layout, uint32_t *words,
                                                             uint64_t low, uint64_t high)
{
	store(words + layout->mask_word, low);
	if (layout->mask_words == 4)
		store(words + layout->mask_word + 2, high);
	if (layout->upper_word != 0)
		store_upper(layout, words, no_tpcs);
	if (layout->valid_word != NONE)
		words[layout->valid_word] |= VALID_BIT;
}

static inline __attribute__((always_inline)) void store_slot(uint32_t *control, uint64_t keep_control,
                                                             uint32_t *address, uint64_t keep_address,
                                                             struct qmd_saved_slot slot)
{
	store(control, (load(control) & keep_control) | slot.control);
	store(address, (load(address) & keep_address) | slot.address);
	store(address + 2, slot.payload);
}

static inline struct qmd_saved_slot written_by(const struct qmd_release *release, const struct qmd_place *place)
{
	return (struct qmd_saved_slot){place->control, release->address, release->payload};
}

/* As qmd_release, for the family's layout `number`. */
static inline __attribute__((always_inline)) bool write_release(const struct qmd_layout *layout, unsigned int number,
                                                                uint32_t *words, const struct qmd_release *release)
{
	const struct qmd_release_layout *slots = layout->releases;
	uint32_t *control = words + slots->control[QMD_COUNTING_SLOT] / 32;
	uint32_t *address = words + slots->address[QMD_COUNTING_SLOT] / 32;
	uint64_t enable = UINT64_C(1) << (slots->control[QMD_COUNTING_SLOT] % 32 + slots->enable);
	bool done = !(load(control) & enable);

	if (done)
		store_slot(control, KEEP(slots->control[QMD_COUNTING_SLOT] % 32, CONTROL_BITS), address,
		           KEEP(0, slots->address_bits), written_by(release, &release->places[number]));
	return done;
}

/* Runs in every launch. Compiled for each layout: the compiler knows the layout's constants. */
static inline __attribute__((always_inline)) enum qmd_outcome
disable_in(const struct qmd_layout *layout, unsigned int number, void *qmd, const struct qmd_mask *disable,
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
	if (release && outcome == QMD_NARROWED && !(layout->releases && write_release(layout, number, words, release)))
		outcome = QMD_SLOT_LEFT;
	return outcome;
}

/* `second` is NULL for a family with a single layout. */
static inline __attribute__((always_inline)) enum qmd_outcome
disable_in_either(const struct qmd_layout *first, const struct qmd_layout *second, void *qmd,
                  const struct qmd_mask *disable, const struct qmd_release *release)
{
	enum qmd_outcome outcome = disable_in(first, 0, qmd, disable, release);

	if (second && outcome == QMD_UNKNOWN_VERSION)
		outcome = disable_in(second, 1, qmd, disable, release);
	return outcome;
}

#define DISABLE_IN(name, first, second)										\
	static __attribute__((hot)) enum qmd_outcome disable_in_##name(void *qmd, const struct qmd_mask *disable,\
	                                                               const struct qmd_release *release)	\
	{													\
		return disable_in_either(first, second, qmd, disable, release);					\
	}

DISABLE_IN(kepler_to_ampere, &kepler_to_ada, NULL)
DISABLE_IN(ampere_and_ada, &ampere_and_ada, &kepler_to_ada)
DISABLE_IN(hopper, &hopper, NULL)
DISABLE_IN(blackwell, &blackwell, &blackwell_4_1)

/* --- families ------------------------------------------------------------------------------------- */

#define COMPUTE(major, minor) ((major) << 8 | (minor))
#define LAST_OF(major) COMPUTE(major, 0xff)

/* Compute capability 3.0 has version 0.6, which has no mask. */
static const struct qmd_family families[] = {
	{COMPUTE(3, 5), COMPUTE(8, 5), {&kepler_to_ada}, NULL, disable_in_kepler_to_ampere},
	{COMPUTE(8, 6), LAST_OF(8), {&ampere_and_ada, &kepler_to_ada}, NULL, disable_in_ampere_and_ada},
	{COMPUTE(9, 0), LAST_OF(9), {&hopper}, &ampere_and_ada, disable_in_hopper},
	{COMPUTE(10, 0), LAST_OF(12), {&blackwell, &blackwell_4_1}, NULL, disable_in_blackwell},
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

/* The family's first layout with the descriptor's version; or NULL. */
static inline const struct qmd_layout *layout_of(const struct qmd_family *family, const void *qmd)
{
	const struct qmd_layout *found = NULL;

	for (unsigned int i = 0; i < QMD_LAYOUTS && family->layouts[i] && !found; i++)
		found = has_known_version(family->layouts[i], qmd) ? family->layouts[i] : NULL;
	return found;
}

unsigned int qmd_mask_bits(const struct qmd_family *family)
{
	return family->layouts[0]->mask_words * 32u;
}

bool qmd_is_known(const struct qmd_family *family, const void *qmd)
{
	return layout_of(family, qmd);
}

bool qmd_is_narrow(const struct qmd_family *family, const void *qmd)
{
	return family->narrow && has_known_version(family->narrow, qmd);
}

bool qmd_shows_must_fit(const struct qmd_family *family)
{
	return family->layouts[0]->cluster_word != NONE;
}

bool qmd_must_fit(const struct qmd_family *family, const void *qmd)
{
	return must_fit(layout_of(family, qmd), qmd);
}

static struct qmd_mask mask_at(const uint32_t *words, unsigned int count)
{
	return (struct qmd_mask){{load(words), count == 4 ? load(words + 2) : 0}};
}

static void save_mask(const struct qmd_layout *layout, const uint32_t *words, struct qmd_saved *saved)
{
	saved->layout = layout;
	saved->is_valid = mask_counts(layout, words);
	saved->mask = mask_at(words + layout->mask_word, layout->mask_words);
	if (layout->upper_word != 0)
		saved->upper = mask_at(words + layout->upper_word, 4);
}

struct qmd_mask qmd_own_mask(const struct qmd_family *family, const void *qmd)
{
	struct qmd_saved saved;

	save_mask(layout_of(family, qmd), qmd, &saved);
	return saved.is_valid ? saved.mask : (struct qmd_mask){{0}};
}

struct qmd_mask_place qmd_mask_place(const struct qmd_family *family, const void *qmd)
{
	const struct qmd_layout *layout = layout_of(family, qmd);
	struct qmd_mask_place place = {.words = 0};

	if (layout) {
		bool is_always_valid = layout->valid_word == NONE;

		place.first = layout->mask_word;
		place.words = layout->mask_words;
		place.control = is_always_valid ? 0 : layout->valid_word;
		place.valid = is_always_valid ? 0 : VALID_BIT;
	}
	return place;
}

bool qmd_has_no_blocks(const struct qmd_family *family, const void *qmd)
{
	return ((const uint32_t *)qmd)[layout_of(family, qmd)->grid_word] == 0;
}

/* --- shapes ------------------------------------------------------------------------------------------ */

static unsigned int cluster_of(const struct qmd_layout *layout, const uint32_t *words)
{
	uint32_t sizes = layout->cluster_word != NONE ? words[layout->cluster_word] & CLUSTER_BITS : 0;
	unsigned int blocks = (sizes & 0xff) * (sizes >> 8 & 0xff) * (sizes >> 16 & 0xff);

	return blocks > 0 ? blocks : 1;
}

unsigned int qmd_cluster(const struct qmd_family *family, const void *qmd)
{
	const struct qmd_layout *layout = layout_of(family, qmd);
	const uint32_t *words = qmd;
	bool is_for_clusters = must_fit(layout, words) && words[layout->cooperative_word] == 0;

	return is_for_clusters ? cluster_of(layout, words) : 0;
}

/* The product of two 16-bit sizes in one word and one in the next. */
static unsigned int product_at(const uint32_t *words)
{
	return (words[0] & 0xffff) * (words[0] >> 16) * (words[1] & 0xffff);
}

struct qmd_shape qmd_shape_of(const struct qmd_family *family, const void *qmd)
{
	const struct qmd_layout *layout = layout_of(family, qmd);
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

/* A cooperative grid has a field of its own. A grid of clusters is counted in clusters (hardware.md). */
static struct qmd_grid grid_at_once(const struct qmd_layout *layout, const uint32_t *words, struct qmd_grid grid)
{
	const uint32_t *apart = words + layout->cooperative_word;
	uint32_t cluster = words[layout->cluster_word] & CLUSTER_BITS;

	if (apart[0] != 0)
		grid = (struct qmd_grid){apart[0] & 0xffff, (uint16_t)(apart[0] >> 16), (uint16_t)apart[1]};
	if (cluster != 0)
		grid = (struct qmd_grid){grid.width * (cluster & 0xff),
		                         (uint16_t)(grid.height * (cluster >> 8 & 0xff)),
		                         (uint16_t)(grid.depth * (cluster >> 16))};
	return grid;
}

struct qmd_grid qmd_grid_of(const struct qmd_place *place, const void *qmd)
{
	const uint32_t *words = qmd, *sizes = words + place->layout->grid_word;
	struct qmd_grid grid = {sizes[0], (uint16_t)sizes[1], (uint16_t)sizes[2]};

	return must_fit(place->layout, words) ? grid_at_once(place->layout, words, grid) : grid;
}

/* --- releases --------------------------------------------------------------------------------------- */

enum structure_size {
	FOUR_WORDS = 0,
	TWO_WORDS = 2
};

static uint64_t control_of(const struct qmd_release_layout *layout, enum qmd_release_kind kind)
{
	uint64_t size = kind == QMD_ADDS ? TWO_WORDS : FOUR_WORDS, reduction = kind == QMD_ADDS;

	return UINT64_C(1) << layout->enable | UINT64_C(1) << layout->payload_64 |
	       reduction << layout->reduction_enable | size << layout->structure_size;
}

static const struct qmd_place no_place = {.first_version = UINT8_MAX};

static struct qmd_place place_of(const struct qmd_layout *layout, unsigned int slot, enum qmd_release_kind kind)
{
	const struct qmd_release_layout *slots = layout->releases;
	unsigned int shift = slots->control[slot] % 32;

	return (struct qmd_place){
		.layout = layout,
		.version_byte = layout->version_byte,
		.first_version = layout->first_version,
		.last_version = layout->last_version,
		.control_word = (uint8_t)(slots->control[slot] / 32),
		.address_word = (uint8_t)(slots->address[slot] / 32),
		.enable = UINT64_C(1) << (shift + slots->enable),
		.control = control_of(slots, kind) << shift,
		.keep_control = KEEP(shift, CONTROL_BITS),
		.keep_address = KEEP(0, slots->address_bits),
	};
}

/* The first layout of a family has the widest addresses. */
uint64_t qmd_release_reach(const struct qmd_family *family)
{
	const struct qmd_release_layout *slots = family->layouts[0]->releases;

	return slots ? UINT64_C(1) << slots->address_bits : 0;
}

bool qmd_release_prepare(struct qmd_release *release, const struct qmd_family *family, unsigned int slot,
                         enum qmd_release_kind kind, uint64_t address, uint64_t value)
{
	if (address >= qmd_release_reach(family))
		return false;
	*release = (struct qmd_release){.address = address, .payload = value};
	for (unsigned int i = 0; i < QMD_LAYOUTS; i++) {
		const struct qmd_layout *layout = family->layouts[i];

		release->places[i] = layout && layout->releases ? place_of(layout, slot, kind) : no_place;
	}
	return true;
}

static inline const struct qmd_place *place_in(const struct qmd_release *release, const void *qmd)
{
	const struct qmd_place *found = NULL;

	for (unsigned int i = 0; i < QMD_LAYOUTS && !found; i++) {
		const struct qmd_place *place = &release->places[i];
		uint8_t version = ((const uint8_t *)qmd)[place->version_byte];

		found = version >= place->first_version && version <= place->last_version ? place : NULL;
	}
	return found;
}

static inline enum qmd_release_outcome look_at_slot(const struct qmd_place *place, const void *qmd)
{
	enum qmd_release_outcome outcome = QMD_NO_RELEASE_SLOTS;

	if (place)
		outcome = load((const uint32_t *)qmd + place->control_word) & place->enable ? QMD_SLOT_USED
		                                                                            : QMD_RELEASES;
	return outcome;
}

const struct qmd_place *qmd_release_look(const struct qmd_release *release, const void *qmd)
{
	const struct qmd_place *place = place_in(release, qmd);

	return look_at_slot(place, qmd) == QMD_RELEASES ? place : NULL;
}

static inline void store_at(const struct qmd_place *place, void *qmd, struct qmd_saved_slot slot)
{
	uint32_t *words = qmd;

	store_slot(words + place->control_word, place->keep_control, words + place->address_word, place->keep_address,
	           slot);
}

__attribute__((hot)) enum qmd_release_outcome qmd_release(const struct qmd_release *release, void *qmd)
{
	const struct qmd_place *place = place_in(release, qmd);
	enum qmd_release_outcome outcome = look_at_slot(place, qmd);

	if (outcome == QMD_RELEASES)
		store_at(place, qmd, written_by(release, place));
	return outcome;
}

void qmd_stamp(const struct qmd_place *place, void *qmd, uint64_t at, uint64_t number)
{
	store_at(place, qmd, (struct qmd_saved_slot){place->control, at, number});
}

static bool is_used(const struct qmd_release_layout *slots, const uint32_t *words, unsigned int slot)
{
	unsigned int enable = slots->control[slot] + (unsigned int)slots->enable;

	return words[enable / 32] >> (enable % 32) & 1;
}

bool qmd_slot_is_used(const struct qmd_family *family, const void *qmd, unsigned int slot)
{
	const struct qmd_layout *layout = layout_of(family, qmd);

	return layout && layout->releases && is_used(layout->releases, qmd, slot);
}

uint64_t qmd_drivers_address(const struct qmd_place *place, const void *qmd)
{
	const struct qmd_release_layout *slots = place->layout->releases;
	const uint32_t *words = qmd;

	return is_used(slots, words, 0) ? load(words + slots->address[0] / 32) & ~place->keep_address : 0;
}

struct qmd_saved_slot qmd_save_slot(const struct qmd_release *release, const void *qmd)
{
	const struct qmd_place *place = place_in(release, qmd);
	const uint32_t *words = qmd;
	struct qmd_saved_slot saved = {0};

	if (place)
		saved = (struct qmd_saved_slot){
			.control = load(words + place->control_word) & ~place->keep_control,
			.address = load(words + place->address_word) & ~place->keep_address,
			.payload = load(words + place->address_word + 2),
		};
	return saved;
}

void qmd_restore_slot(const struct qmd_release *release, void *qmd, const struct qmd_saved_slot *saved)
{
	const struct qmd_place *place = place_in(release, qmd);

	if (place)
		store_at(place, qmd, *saved);
}

unsigned int qmd_release_word(const struct qmd_release *release, const void *qmd)
{
	const struct qmd_place *place = place_in(release, qmd);

	return place ? place->address_word : 0;
}

/* --- fetching ahead ------------------------------------------------------------------------------------ */

/* A node of a graph fetches the next node's parameters ahead, by a bank of constants that is valid for this purpose
 * alone (facts.md, "CUDA graphs"). When the next node is disabled, the driver makes the bank invalid for good, and
 * changes nothing else. The bits: VALID, two of PREFETCH, and INVALIDATE. */
#define NEXT_BANK(bits) (UINT32_C(bits) << 4 * 5)
#define BANK_VALID 1
#define PREFETCH_POST 4

/* Makes the bank valid again. Other descriptors stay unchanged. Measured before Blackwell only. */
static void fetch_ahead(const struct qmd_layout *layout, uint32_t *words)
{
	uint32_t *banks = words + layout->banks_word;

	if (layout->banks_word != 0 && (*banks & NEXT_BANK(15)) == NEXT_BANK(PREFETCH_POST))
		*banks |= NEXT_BANK(BANK_VALID);
}

/* --- all changes at once ------------------------------------------------------------------------------------------ */

static enum qmd_outcome write_mask(const struct qmd_family *family, const struct qmd_layout *layout, void *qmd,
                                   const struct qmd_change *change)
{
	if (!change->is_exact)
		return qmd_disable(family, qmd, change->disable, NULL);
	store_mask(layout, qmd, change->disable->words[0], change->disable->words[1]);
	return QMD_NARROWED;
}

struct qmd_outcomes qmd_write(const struct qmd_family *family, void *qmd, const struct qmd_change *change,
                              struct qmd_saved *saved)
{
	struct qmd_outcomes outcomes = {QMD_NARROWED, QMD_NO_RELEASE_SLOTS};
	const struct qmd_layout *layout = change->disable || change->fetches_ahead ? layout_of(family, qmd) : NULL;
	struct qmd_saved unused;

	saved = saved ? saved : &unused; // cppcheck-suppress uninitvar
	*saved = (struct qmd_saved){.layout = NULL};
	if (change->disable && layout) {
		save_mask(layout, qmd, saved);
		outcomes.mask = write_mask(family, layout, qmd, change);
	} else if (change->disable) {
		outcomes.mask = QMD_UNKNOWN_VERSION;
	}
	if (change->fetches_ahead && layout)
		fetch_ahead(layout, qmd);
	if (change->counting) {
		saved->counting_slot = qmd_save_slot(change->counting, qmd);
		outcomes.counting = qmd_release(change->counting, qmd);
		saved->counting = outcomes.counting == QMD_RELEASES ? change->counting : NULL;
	}
	if (change->stamping) {
		const struct qmd_place *place = qmd_release_look(change->stamping, qmd);

		saved->stamping_slot = qmd_save_slot(change->stamping, qmd);
		saved->stamping = place ? change->stamping : NULL;
		if (place)
			qmd_stamp(place, qmd, change->timestamp_at, change->timestamp);
	}
	return outcomes;
}

void qmd_restore(void *qmd, const struct qmd_saved *saved)
{
	const struct qmd_layout *layout = saved->layout;
	uint32_t *words = qmd;

	if (layout)
		store_mask(layout, words, saved->mask.words[0], saved->mask.words[1]);
	if (layout && layout->upper_word != 0)
		store_upper(layout, words, saved->upper);
	if (layout && layout->valid_word != NONE && !saved->is_valid)
		words[layout->valid_word] &= ~VALID_BIT;
	if (saved->counting)
		qmd_restore_slot(saved->counting, qmd, &saved->counting_slot);
	if (saved->stamping)
		qmd_restore_slot(saved->stamping, qmd, &saved->stamping_slot);
}
