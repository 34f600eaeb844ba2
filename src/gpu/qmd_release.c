#include "qmd.h"

#include "qmd_layout.h"

#include <stddef.h>

_Static_assert(sizeof((struct qmd_release_layout *)NULL)->control == QMD_SLOTS * sizeof(uint16_t), "of each slot");

enum structure_size {
	FOUR_WORDS = 0,
	TWO_WORDS = 2
};

/* From this bit on, so many bits, which lie in two words. */
static struct qmd_bits bits_at(unsigned int position, unsigned int count, uint64_t value)
{
	unsigned int shift = position % 32;

	return (struct qmd_bits){.keep = QMD_KEEP(shift, count), .value = value << shift, .word = position / 32};
}

static uint64_t control_of(const struct qmd_release_layout *layout, enum qmd_release_kind kind)
{
	uint64_t control = UINT64_C(1) << layout->enable | UINT64_C(1) << layout->payload_64;

	if (kind == QMD_ADDS)
		control |= UINT64_C(1) << layout->reduction_enable | (uint64_t)TWO_WORDS << layout->structure_size;
	else
		control |= (uint64_t)FOUR_WORDS << layout->structure_size;
	return control;
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
		.control = bits_at(layout->control[slot], QMD_CONTROL_BITS, control_of(layout, kind)),
		.address = bits_at(layout->address[slot], layout->address_bits, address),
		.payload = value,
	};
	return true;
}

static inline void store_bits(uint32_t *at, const struct qmd_bits *bits, uint64_t value)
{
	qmd_store(at, (qmd_load(at) & bits->keep) | value);
}

static inline enum qmd_release_outcome look(const struct qmd_release *release, const void *qmd)
{
	uint8_t version = ((const uint8_t *)qmd)[release->version_byte];
	enum qmd_release_outcome outcome = QMD_NO_RELEASE_SLOTS;

	if (version >= release->first_version && version <= release->last_version)
		outcome = qmd_load((const uint32_t *)qmd + release->control.word) & release->enable ? QMD_SLOT_USED : QMD_RELEASES;
	return outcome;
}

enum qmd_release_outcome qmd_release_look(const struct qmd_release *release, const void *qmd)
{
	return look(release, qmd);
}

__attribute__((hot)) enum qmd_release_outcome qmd_release(const struct qmd_release *release, void *qmd)
{
	uint32_t *control = (uint32_t *)qmd + release->control.word;
	uint32_t *address = (uint32_t *)qmd + release->address.word;
	enum qmd_release_outcome outcome = look(release, qmd);

	if (outcome == QMD_RELEASES) {
		store_bits(control, &release->control, release->control.value);
		store_bits(address, &release->address, release->address.value);
		qmd_store(address + 2, release->payload);
	}
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
		address = qmd_load((const uint32_t *)qmd + layout->address[slot] / 32) & ~QMD_KEEP(0, layout->address_bits);
	return address;
}

struct qmd_saved_slot qmd_save_slot(const struct qmd_release *release, const void *qmd)
{
	const uint32_t *words = qmd;

	return (struct qmd_saved_slot){
		.control = qmd_load(words + release->control.word) & ~release->control.keep,
		.address = qmd_load(words + release->address.word) & ~release->address.keep,
		.payload = qmd_load(words + release->address.word + 2),
	};
}

void qmd_restore_slot(const struct qmd_release *release, void *qmd, const struct qmd_saved_slot *saved)
{
	uint32_t *control = (uint32_t *)qmd + release->control.word;
	uint32_t *address = (uint32_t *)qmd + release->address.word;

	store_bits(control, &release->control, saved->control);
	store_bits(address, &release->address, saved->address);
	qmd_store(address + 2, saved->payload);
}
