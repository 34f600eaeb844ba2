#include "qmd.h"

#include <stdbool.h>
#include <stddef.h>

/* Positions are in 32-bit words from the start of the descriptor, unless called a byte. */
struct qmd_family {
	uint8_t first_compute_major;
	uint8_t last_compute_major;
	uint8_t version_byte;  /* where the version stands: major in the high half, minor in the low */
	uint8_t first_version; /* the versions whose mask is where we say */
	uint8_t last_version;
	uint8_t mask_word;
	uint8_t mask_words;
	uint8_t valid_word; /* whose bit 31 says that the mask counts; NO_VALID_BIT where it always does */
};

#define NO_VALID_BIT 0xff
#define VALID_BIT (UINT32_C(1) << 31)

static const struct qmd_family families[] = {
	/* Kepler to Ada: versions 1.6 to 3.0, SM_DISABLE_MASK_LOWER and _UPPER. */
	{3, 8, 72, 0x16, 0x30, 84 / 4, 2, NO_VALID_BIT},
	/* Hopper: version 4.0, TPC_DISABLE_MASK; measured on an H200. Version 4.1 keeps these four words
	 * where they are and has more elsewhere, for TPCs beyond bit 127. */
	{9, 9, 72, 0x40, 0x41, 304 / 4, 4, 0},
	/* Blackwell: version 5.0. Version 5.1 is published without the place of its mask. */
	{10, 12, 58, 0x50, 0x50, 280 / 4, 4, 16 / 4},
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
	return family->mask_words * 32u;
}

static bool has_known_version(const struct qmd_family *family, const void *qmd)
{
	uint8_t version = ((const uint8_t *)qmd)[family->version_byte];

	return version >= family->first_version && version <= family->last_version;
}

enum qmd_outcome qmd_disable(const struct qmd_family *family, void *qmd,
                             const uint32_t disable[QMD_MASK_WORDS])
{
	uint32_t *words = qmd;
	uint32_t *mask = words + family->mask_word;
	bool has_valid_bit = family->valid_word != NO_VALID_BIT;
	bool nothing_left = true;

	if (!has_known_version(family, qmd))
		return QMD_UNKNOWN_VERSION;
	bool theirs_counts = !has_valid_bit || words[family->valid_word] & VALID_BIT;

	for (unsigned int word = 0; word < family->mask_words; word++) {
		if (!theirs_counts)
			mask[word] = 0;
		nothing_left = nothing_left && (mask[word] | disable[word]) == UINT32_MAX;
	}
	for (unsigned int word = 0; word < family->mask_words; word++)
		mask[word] = nothing_left ? disable[word] : mask[word] | disable[word];
	if (has_valid_bit)
		words[family->valid_word] |= VALID_BIT;
	return nothing_left ? QMD_OVERRULED : QMD_NARROWED;
}
