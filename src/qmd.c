#include "qmd.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Positions are in 32-bit words from the start of the descriptor, unless called a byte. */
struct layout {
	uint8_t version_byte;  /* where the version stands: major in the high half, minor in the low */
	uint8_t first_version; /* the versions whose mask is where we say */
	uint8_t last_version;
	uint8_t mask_word;
	uint8_t mask_words; /* 2 or 4 */
	uint8_t valid_word; /* whose bit 31 says that the mask counts; NO_VALID_BIT where it always does */
};

#define NO_VALID_BIT 0xff
#define VALID_BIT (UINT32_C(1) << 31)

/* Kepler to Ada: versions 1.6 to 3.0, SM_DISABLE_MASK_LOWER and _UPPER. */
static const struct layout kepler_to_ada = {72, 0x16, 0x30, 84 / 4, 2, NO_VALID_BIT};

/* Hopper: version 4.0, TPC_DISABLE_MASK; measured on an H200. Version 4.1 keeps these four words where they are and
 * has more elsewhere, for TPCs beyond bit 127. */
static const struct layout hopper = {72, 0x40, 0x41, 304 / 4, 4, 0};

/* Blackwell: version 5.0. Version 5.1 is published without the place of its mask. */
static const struct layout blackwell = {58, 0x50, 0x50, 280 / 4, 4, 16 / 4};

/* --- narrowing ------------------------------------------------------------------------------------ */

/* Descriptors are aligned to 4 bytes, and their masks too. */
static uint64_t load64(const uint32_t *words)
{
	uint64_t value;

	memcpy(&value, words, sizeof value);
	return value;
}

static void store64(uint32_t *words, uint64_t value)
{
	memcpy(words, &value, sizeof value);
}

static bool has_known_version(const struct layout *layout, const void *qmd)
{
	uint8_t version = ((const uint8_t *)qmd)[layout->version_byte];

	return version >= layout->first_version && version <= layout->last_version;
}

/* Part of every launch: made once for each layout, with all that depends on it known to the compiler. */
static inline __attribute__((always_inline)) enum qmd_outcome
disable_in(const struct layout *layout, void *qmd, const struct qmd_mask *disable)
{
	uint32_t *words = qmd, *mask = words + layout->mask_word;
	bool is_wide = layout->mask_words == 4;
	bool has_valid_bit = layout->valid_word != NO_VALID_BIT;
	enum qmd_outcome outcome = QMD_NARROWED;

	if (!has_known_version(layout, qmd))
		return QMD_UNKNOWN_VERSION;
	/* What stands in a mask that does not count is no mask. */
	bool theirs_counts = !has_valid_bit || words[layout->valid_word] & VALID_BIT;
	uint64_t low = disable->words[0], high = disable->words[1];

	if (theirs_counts) {
		low |= load64(mask);
		high |= is_wide ? load64(mask + 2) : 0;
		if ((is_wide ? low & high : low) == UINT64_MAX) {
			low = disable->words[0];
			high = disable->words[1];
			outcome = QMD_OVERRULED;
		}
	}
	store64(mask, low);
	if (is_wide)
		store64(mask + 2, high);
	if (has_valid_bit)
		words[layout->valid_word] |= VALID_BIT;
	return outcome;
}

static enum qmd_outcome disable_in_kepler_to_ada(void *qmd, const struct qmd_mask *disable)
{
	return disable_in(&kepler_to_ada, qmd, disable);
}

static enum qmd_outcome disable_in_hopper(void *qmd, const struct qmd_mask *disable)
{
	return disable_in(&hopper, qmd, disable);
}

static enum qmd_outcome disable_in_blackwell(void *qmd, const struct qmd_mask *disable)
{
	return disable_in(&blackwell, qmd, disable);
}

/* --- families ------------------------------------------------------------------------------------- */

struct qmd_family {
	uint8_t first_compute_major;
	uint8_t last_compute_major;
	const struct layout *layout;
	enum qmd_outcome (*disable)(void *qmd, const struct qmd_mask *disable);
};

static const struct qmd_family families[] = {
	{3, 8, &kepler_to_ada, disable_in_kepler_to_ada},
	{9, 9, &hopper, disable_in_hopper},
	{10, 12, &blackwell, disable_in_blackwell},
};

const struct qmd_family *qmd_family_for(unsigned int compute_major, unsigned int compute_minor)
{
	const struct qmd_family *found = NULL;

	/* Kepler's first chips, 3.0, have version 0.6, which has no mask. */
	if (compute_major == 3 && compute_minor < 5)
		return NULL;
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
		if (compute_major >= families[i].first_compute_major &&
		    compute_major <= families[i].last_compute_major)
			found = &families[i];
	}
	return found;
}

unsigned int qmd_mask_bits(const struct qmd_family *family)
{
	return family->layout->mask_words * 32u;
}

enum qmd_outcome qmd_disable(const struct qmd_family *family, void *qmd, const struct qmd_mask *disable)
{
	return family->disable(qmd, disable);
}
