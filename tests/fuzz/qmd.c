/*
 * Any bytes as a launch descriptor: narrowing changes only the mask and its valid bit, never leaves a descriptor
 * without an enabled TPC, can be undone exactly, and does not change descriptors of unknown versions.
 *
 * The positions of the fields are written again, from NVIDIA's published headers and not from src/gpu/qmd.c.
 */
#include "fuzz.h"

#include "gpu/qmd.h"

#include <string.h>

#define QMD_BYTES_MAX 384

static const struct generation {
	unsigned int compute_major;
	unsigned int bytes; /* of a descriptor */
	unsigned int version_byte, first_version, last_version;
	unsigned int mask_byte, mask_bytes;
	unsigned int valid_byte; /* the one whose bit 7 makes the mask take effect; 0 if it always does */
} generations[] = {
	{8, 256, 72, 0x16, 0x30, 84, 8, 0},
	{9, 384, 72, 0x40, 0x41, 304, 16, 3},
	{12, 384, 58, 0x50, 0x50, 280, 16, 19},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct input {
	const struct generation *generation;
	const struct qmd_family *family;
	struct qmd_mask disable;
	uint8_t *qmd; /* in a block of exactly its size, so that a sanitizer sees accesses beyond it */
};

/* --- what a descriptor says ------------------------------------------------------------------------------- */

static bool is_known(const struct input *input, const uint8_t *qmd)
{
	uint8_t version = qmd[input->generation->version_byte];

	return version >= input->generation->first_version && version <= input->generation->last_version;
}

static bool mask_counts(const struct input *input, const uint8_t *qmd)
{
	return !input->generation->valid_byte || qmd[input->generation->valid_byte] & 0x80;
}

/* The part of the mask that the generation has; the rest is all ones, since no TPC has a bit there. */
static struct qmd_mask mask_of(const struct input *input, const uint8_t *qmd)
{
	struct qmd_mask mask = {{UINT64_MAX, UINT64_MAX}};

	memcpy(&mask, qmd + input->generation->mask_byte, input->generation->mask_bytes);
	return mask;
}

static bool is_all_disabled(const struct qmd_mask *mask)
{
	return (mask->words[0] & mask->words[1]) == UINT64_MAX;
}

static bool is_mask(const struct input *input, unsigned int byte)
{
	return byte >= input->generation->mask_byte &&
	       byte < input->generation->mask_byte + input->generation->mask_bytes;
}

/* --- what must hold ------------------------------------------------------------------------------------------ */

static void check_nothing_else_changed(const struct input *input, const uint8_t *before)
{
	for (unsigned int byte = 0; byte < input->generation->bytes; byte++) {
		bool is_valid = input->generation->valid_byte && byte == input->generation->valid_byte;

		must(is_mask(input, byte) || (input->qmd[byte] | (is_valid ? 0x80 : 0)) ==
		                                     (before[byte] | (is_valid ? 0x80 : 0)));
	}
}

/* The driver's mask and ours together, or only ours if both leave nothing. */
static void check_mask(const struct input *input, const uint8_t *before, enum qmd_outcome outcome)
{
	struct qmd_mask wanted = input->disable, now = mask_of(input, input->qmd);
	struct qmd_mask theirs = mask_of(input, before);

	if (input->generation->mask_bytes == 8)
		wanted.words[1] = UINT64_MAX;
	if (mask_counts(input, before)) {
		struct qmd_mask both = {{wanted.words[0] | theirs.words[0], wanted.words[1] | theirs.words[1]}};

		must((outcome == QMD_OVERRULED) == is_all_disabled(&both));
		wanted = outcome == QMD_OVERRULED ? wanted : both;
	} else {
		must(outcome == QMD_NARROWED);
	}
	must(memcmp(&now, &wanted, sizeof now) == 0);
	must(mask_counts(input, input->qmd));
	must(!is_all_disabled(&now));
}

static void check_restored(const struct input *input, const uint8_t *before, const struct qmd_saved *saved)
{
	qmd_restore(input->family, input->qmd, saved);
	must(memcmp(input->qmd, before, input->generation->bytes) == 0);
}

static void check_narrowed(const struct input *input, enum qmd_outcome outcome, const uint8_t *before,
                           const struct qmd_saved *saved)
{
	must(outcome == QMD_NARROWED || outcome == QMD_OVERRULED);
	check_nothing_else_changed(input, before);
	check_mask(input, before, outcome);
	check_restored(input, before, saved);
}

/* Ours alone. */
static void check_set(const struct input *input, const uint8_t *before, const struct qmd_saved *saved)
{
	struct qmd_mask wanted = input->disable, now;

	if (input->generation->mask_bytes == 8)
		wanted.words[1] = UINT64_MAX;
	qmd_set_mask(input->family, input->qmd, &input->disable);
	now = mask_of(input, input->qmd);
	check_nothing_else_changed(input, before);
	must(memcmp(&now, &wanted, sizeof now) == 0);
	must(mask_counts(input, input->qmd));
	check_restored(input, before, saved);
}

/* Clusters and cooperative grids are detected before anything is changed. */
static void check_known(const struct input *input, const uint8_t *before)
{
	struct qmd_saved saved = qmd_save(input->family, input->qmd);
	struct qmd_shape shape = qmd_shape_of(input->family, input->qmd);
	enum qmd_outcome outcome = qmd_disable(input->family, input->qmd, &input->disable);

	must(shape.cluster >= 1);
	must(outcome == QMD_MUST_FIT || (shape.cluster == 1 && shape.cooperative == 0));
	if (outcome == QMD_MUST_FIT)
		must(memcmp(input->qmd, before, input->generation->bytes) == 0);
	else
		check_narrowed(input, outcome, before, &saved);
	check_set(input, before, &saved);
}

static void check(const struct input *input)
{
	uint8_t before[QMD_BYTES_MAX];

	memcpy(before, input->qmd, input->generation->bytes);
	must(qmd_is_known(input->family, input->qmd) == is_known(input, input->qmd));
	if (is_known(input, input->qmd)) {
		check_known(input, before);
	} else {
		must(qmd_disable(input->family, input->qmd, &input->disable) == QMD_UNKNOWN_VERSION);
		must(memcmp(input->qmd, before, input->generation->bytes) == 0);
	}
}

/* --- from bytes ------------------------------------------------------------------------------------------------- */

/* A partition has a present TPC: some bit of our mask is not set. */
static bool has_partition(const struct input *input)
{
	struct qmd_mask mask = input->disable;

	if (input->generation->mask_bytes == 8)
		mask.words[1] = UINT64_MAX;
	return !is_all_disabled(&mask);
}

/* The first byte chooses the generation, the next 16 are our mask, the others the descriptor, padded with zeros. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input;

	if (size < 1 + sizeof input.disable)
		return 0;
	input.generation = &generations[data[0] % COUNT(generations)];
	input.family = qmd_family_for(input.generation->compute_major, 0);
	memcpy(&input.disable, data + 1, sizeof input.disable);
	data += 1 + sizeof input.disable;
	size -= 1 + sizeof input.disable;
	if (size > input.generation->bytes)
		size = input.generation->bytes;
	input.qmd = calloc(1, input.generation->bytes);
	must(input.family && input.qmd);
	memcpy(input.qmd, data, size);
	if (has_partition(&input))
		check(&input);
	free(input.qmd);
	return 0;
}
