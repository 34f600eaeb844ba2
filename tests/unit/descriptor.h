/* Launch descriptors with a mask and a timestamp, for commands of a driver. */
#ifndef TESTS_DESCRIPTOR_H
#define TESTS_DESCRIPTOR_H

#include "../cases.h"
#include "driver/gpus.h"
#include "driver/releases.h"
#include "gpu/qmd.h"

#define DESCRIPTOR_MASK 304        /* the byte with the mask */
#define DESCRIPTOR_CELLS 0x20000000 /* where the timestamps of a descriptor reach */

/* Memory for timestamps. */
static inline volatile uint64_t *descriptor_cells(size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	void *cells = mmap((void *)DESCRIPTOR_CELLS, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

	assert_ptr_equal(cells, DESCRIPTOR_CELLS);
	return cells;
}

/* The timestamp goes to `cell`, with the number. The bits of absent TPCs are set. */
static inline void descriptor_make(uint32_t *qmd, const struct gpu *gpu, struct releases *releases,
                                   const volatile uint64_t *cell, uint64_t number, const struct qmd_mask *disable)
{
	struct qmd_mask all_bits = *disable;

	memset(qmd, (int)some_below(256), QMD_SIZE);
	((unsigned char *)qmd)[72] = 0x40;
	memset((unsigned char *)qmd + DESCRIPTOR_MASK - 48, 0, 48); /* the release slots are free */
	memset((unsigned char *)qmd + 40, 0, 8);
	assert_true(qmd_release_prepare(&releases->stamping, gpu->family, QMD_STAMPING_SLOT, QMD_STAMPS,
	                                (uintptr_t)cell, number));
	for (unsigned int i = 0; i < COUNT_OF(all_bits.words); i++)
		all_bits.words[i] |= ~gpu->present.words[i];
	qmd_write(gpu->family, qmd, &(struct qmd_change){.disable = &all_bits, .is_exact = true}, NULL);
	assert_int_equal(qmd_release(&releases->stamping, qmd), QMD_RELEASES);
}

#endif
