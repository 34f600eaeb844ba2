/*
 * Where each version of the launch descriptor keeps what we need: qmd.c fills these tables in, and reads masks and shapes by
 * them; qmd_release.c reads and writes releases by them. Nobody else includes this.
 */
#ifndef NVTASKSET_QMD_LAYOUT_H
#define NVTASKSET_QMD_LAYOUT_H

#include <stdint.h>
#include <string.h>

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
};

/*
 * Releases. Positions are in bits, as the headers count them. A slot is in two places: its address and, 64 bits after
 * it, its payload; and its control, which is the same few fields in all versions, in another order. Those that are not
 * named here are 0 in our releases: RED_ADD, UNSIGNED, no trap and no membar.
 */
struct qmd_release_layout {
	uint8_t first_version, last_version;
	uint8_t address_bits;
	uint16_t address[3]; /* ADDRESS_LOWER, of each slot */
	uint16_t control[3]; /* its first bit; from there on: */
	uint8_t enable;
	uint8_t structure_size; /* two bits */
	uint8_t reduction_enable;
	uint8_t payload_64;
};

#define QMD_CONTROL_BITS 13

/* The other bits of two words: all but `count` of them, from this one on. */
#define QMD_KEEP(first, count) (~(((UINT64_C(1) << (count)) - 1) << (first)))

/* Descriptors are aligned to 4 bytes, and their masks too. */
static inline uint64_t qmd_load(const uint32_t *words)
{
	uint64_t value;

	memcpy(&value, words, sizeof value);
	return value;
}

static inline void qmd_store(uint32_t *words, uint64_t value)
{
	memcpy(words, &value, sizeof value);
}

#endif
