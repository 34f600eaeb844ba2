/*
 * Any bytes as a launch descriptor: narrowing changes only the mask and its valid bit, never leaves a descriptor
 * without an enabled TPC, can be undone exactly, and does not change descriptors of unknown versions. A release changes
 * only its slot, and only if that is free, and can be undone exactly.
 *
 * The positions of the fields are written again, from NVIDIA's published headers and not from src/gpu/qmd.c.
 */
#include "fuzz.h"

#include "gpu/qmd.h"

#include <string.h>

#define QMD_BYTES_MAX 384

struct generation {
	unsigned int compute_major, compute_minor;
	unsigned int bytes; /* of a descriptor */
	unsigned int version_byte, first_version, last_version;
	unsigned int mask_byte, mask_bytes;
	unsigned int upper_byte; /* of 16 more, where no TPC is enabled; or 0 */
	unsigned int valid_byte; /* bit 7 there makes the mask take effect; 0 if the mask always does */
	unsigned int first_with_releases; /* up to the last version */
	const struct generation *otherwise; /* for other versions */
	unsigned int address_bit[QMD_SLOTS], address_bits, control_bit[QMD_SLOTS], enable_bit[QMD_SLOTS];
};

static const struct generation version_4_1 = {
	12, 0, 384, 72, 0x41, 0x41, 304, 16, 336, 3, 0x41, NULL, {640, 768, 896}, 57, {320, 336, 352}, {320, 336, 352},
};

static const struct generation generations[] = {
	{8, 9, 256, 72, 0x16, 0x30, 84, 8, 0, 0, 0x30, NULL, {768, 896, 1664}, 40, {819, 947, 1715}, {823, 951, 1719}},
	{9, 0, 384, 72, 0x40, 0x40, 304, 16, 0, 3, 0x40, NULL, {640, 768, 896}, 57, {320, 336, 352}, {320, 336, 352}},
	{12, 0, 384, 58, 0x50, 0x50, 280, 16, 0, 19, 0x50, &version_4_1, {480, 768, 896}, 57, {288, 304, 320},
	 {288, 304, 320}},
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

/* Our mask, where no TPC has a bit beyond the generation's. */
static struct qmd_mask own_mask(const struct input *input)
{
	uint64_t beyond = input->generation->mask_bytes == 8 ? UINT64_MAX : 0;

	return (struct qmd_mask){{input->disable.words[0], input->disable.words[1] | beyond}};
}

static bool is_all_disabled(struct qmd_mask mask)
{
	return (mask.words[0] & mask.words[1]) == UINT64_MAX;
}

static bool is_upper(const struct input *input, unsigned int byte)
{
	unsigned int first = input->generation->upper_byte;

	return first && byte >= first && byte < first + 16;
}

static bool is_mask(const struct input *input, unsigned int byte)
{
	return byte >= input->generation->mask_byte && byte < input->generation->mask_byte + input->generation->mask_bytes;
}

/* --- what must hold ------------------------------------------------------------------------------------------ */

static void check_nothing_else_changed(const struct input *input, const uint8_t *before)
{
	for (unsigned int byte = 0; byte < input->generation->bytes; byte++) {
		bool is_valid = input->generation->valid_byte && byte == input->generation->valid_byte;

		must(!is_upper(input, byte) || input->qmd[byte] == 0xff);
		must(is_mask(input, byte) || is_upper(input, byte) ||
		     ((input->qmd[byte] ^ before[byte]) & (is_valid ? 0x7f : 0xff)) == 0);
	}
}

/* The driver's mask and ours together, or only ours if both leave nothing. */
static void check_mask(const struct input *input, const uint8_t *before, enum qmd_outcome outcome)
{
	struct qmd_mask wanted = own_mask(input), now = mask_of(input, input->qmd), theirs = mask_of(input, before);

	if (mask_counts(input, before)) {
		struct qmd_mask both = {{wanted.words[0] | theirs.words[0], wanted.words[1] | theirs.words[1]}};

		must((outcome == QMD_OVERRULED) == is_all_disabled(both));
		wanted = outcome == QMD_OVERRULED ? wanted : both;
	} else {
		must(outcome == QMD_NARROWED);
	}
	must(memcmp(&now, &wanted, sizeof now) == 0);
	must(mask_counts(input, input->qmd));
	must(!is_all_disabled(now));
}

static void check_restored(const struct input *input, const uint8_t *before, const struct qmd_saved *saved)
{
	qmd_restore(input->qmd, saved);
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
static void check_exact(const struct input *input, const uint8_t *before)
{
	const struct qmd_change change = {.disable = &input->disable, .is_exact = true};
	struct qmd_mask wanted = own_mask(input), now;
	struct qmd_saved saved;

	qmd_write(input->family, input->qmd, &change, &saved);
	now = mask_of(input, input->qmd);
	check_nothing_else_changed(input, before);
	must(memcmp(&now, &wanted, sizeof now) == 0);
	must(mask_counts(input, input->qmd));
	check_restored(input, before, &saved);
}

static bool is_in(unsigned int bit, unsigned int first, unsigned int count)
{
	return bit >= first && bit < first + count;
}

static bool is_set(const uint8_t *qmd, unsigned int bit)
{
	return qmd[bit / 8] >> bit % 8 & 1;
}

static void check_only_slot_changed(const struct input *input, const uint8_t *before, unsigned int slot)
{
	const struct generation *generation = input->generation;

	for (unsigned int bit = 0; bit < generation->bytes * 8; bit++)
		must(is_set(input->qmd, bit) == is_set(before, bit) || is_in(bit, generation->control_bit[slot], 13) ||
		     is_in(bit, generation->address_bit[slot], generation->address_bits) ||
		     is_in(bit, generation->address_bit[slot] + 64, 64));
}

/* Our mask says which slot, address, value and kind. */
static void check_release(const struct input *input, const uint8_t *before)
{
	uint64_t address = input->disable.words[0], value = input->disable.words[1];
	unsigned int slot = (unsigned int)(address >> 60) % QMD_SLOTS;
	bool is_in_reach = (address & (UINT64_MAX >> 4)) >> input->generation->address_bits == 0;
	uint8_t version = before[input->generation->version_byte];
	bool has_slots = is_known(input, before) && version >= input->generation->first_with_releases;
	bool is_used = has_slots && is_set(before, input->generation->enable_bit[slot]);
	struct qmd_release release;

	must(qmd_slot_is_used(input->family, input->qmd, slot) == is_used);
	must(qmd_release_prepare(&release, input->family, slot, value % 2 ? QMD_ADDS : QMD_STAMPS,
	                         address & (UINT64_MAX >> 4), value) == is_in_reach);
	if (!is_in_reach)
		return;
	struct qmd_saved_slot saved = qmd_save_slot(&release, input->qmd);
	enum qmd_release_outcome outcome = qmd_release(&release, input->qmd);

	must(outcome == (is_used ? QMD_SLOT_USED : has_slots ? QMD_RELEASES : QMD_NO_RELEASE_SLOTS));
	if (outcome == QMD_RELEASES) {
		check_only_slot_changed(input, before, slot);
		must(qmd_slot_is_used(input->family, input->qmd, slot));
		qmd_restore_slot(&release, input->qmd, &saved);
	}
	must(memcmp(input->qmd, before, input->generation->bytes) == 0);
}

/* Clusters and cooperative grids are detected before anything is changed. */
static void check_known(const struct input *input, const uint8_t *before)
{
	const struct qmd_change change = {.disable = &input->disable};
	struct qmd_shape shape = qmd_shape_of(input->family, input->qmd);
	struct qmd_saved saved;
	enum qmd_outcome outcome = qmd_write(input->family, input->qmd, &change, &saved).mask;

	must(shape.cluster >= 1);
	must(outcome == QMD_MUST_FIT || (shape.cluster == 1 && shape.cooperative == 0));
	if (outcome == QMD_MUST_FIT)
		must(memcmp(input->qmd, before, input->generation->bytes) == 0);
	else
		check_narrowed(input, outcome, before, &saved);
	check_exact(input, before);
}

static void check(const struct input *input)
{
	uint8_t before[QMD_BYTES_MAX];

	memcpy(before, input->qmd, input->generation->bytes);
	must(qmd_is_known(input->family, input->qmd) == is_known(input, input->qmd));
	check_release(input, before);
	if (is_known(input, input->qmd)) {
		check_known(input, before);
	} else {
		must(qmd_disable(input->family, input->qmd, &input->disable, NULL) == QMD_UNKNOWN_VERSION);
		must(memcmp(input->qmd, before, input->generation->bytes) == 0);
	}
}

/* --- from bytes ------------------------------------------------------------------------------------------------- */

/* The first byte chooses the generation, the next 16 are our mask, the others the descriptor, padded with zeros. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input;

	if (size < 1 + sizeof input.disable)
		return 0;
	input.generation = &generations[data[0] % COUNT(generations)];
	input.family = qmd_family_for(input.generation->compute_major, input.generation->compute_minor);
	memcpy(&input.disable, data + 1, sizeof input.disable);
	data += 1 + sizeof input.disable;
	size -= 1 + sizeof input.disable;
	if (size > input.generation->bytes)
		size = input.generation->bytes;
	input.qmd = calloc(1, input.generation->bytes);
	must(input.family && input.qmd);
	memcpy(input.qmd, data, size);
	if (input.generation->otherwise && !is_known(&input, input.qmd))
		input.generation = input.generation->otherwise;
	/* A partition has a present TPC: some bit of our mask is not set. */
	if (!is_all_disabled(own_mask(&input)))
		check(&input);
	free(input.qmd);
	return 0;
}
