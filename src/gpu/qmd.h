/*
 * The launch descriptor of a kernel (QMD, also TMD): the place of each needed field in each version.
 *
 * Only qmd.c knows bit positions. NVIDIA publishes the positions in open-gpu-doc, classes/compute/cl*qmd.h; facts.md,
 * "Launch descriptors", has the measurements. A set mask bit disables the TPC.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Version 4.1 has further bits, without a TPC on any GPU: each written mask sets all of them. */
#define QMD_MASK_BITS 128

/* A disable mask: TPC bit n is bit n % 64 of words[n / 64]. */
struct qmd_mask {
	uint64_t words[QMD_MASK_BITS / 64];
};

enum qmd_outcome {
	QMD_NARROWED,        /* now enabled: the TPCs that driver and we leave enabled; the release is written */
	QMD_SLOT_LEFT,       /* as QMD_NARROWED, but the release is not written: qmd_release says why */
	QMD_OVERRULED,       /* only our mask is in force: the driver's has no TPC of ours; no release is written */
	QMD_UNKNOWN_VERSION, /* not a version of this family; unchanged */
	QMD_MUST_FIT,        /* some blocks of the launch must run at once; unchanged, see struct qmd_change */
};

struct qmd_release;

typedef enum qmd_outcome qmd_disabler(void *qmd, const struct qmd_mask *disable, const struct qmd_release *release);

/* The needs of a launch whose blocks must run at once. Unknown before Hopper: older descriptors do not show cooperative
 * launches. */
struct qmd_shape {
	unsigned int cluster;      /* blocks of a cluster, which runs in a single virtual GPC; 1 without clusters */
	unsigned int cooperative;  /* blocks of a cooperative grid, all running at once; 0 for other launches */
	unsigned int threads;      /* of a block */
	unsigned int shared_bytes; /* shared memory of a block */
};

/* The descriptor versions of a generation of GPUs. */
#define QMD_LAYOUTS 2
struct qmd_family {
	unsigned int first_compute; /* 256 * major + minor */
	unsigned int last_compute;
	const struct qmd_layout *layouts[QMD_LAYOUTS]; /* the first with a descriptor's version counts; or NULL */
	const struct qmd_layout *narrow; /* also published, but with fewer mask bits than the GPUs need; or NULL */
	qmd_disabler *disable;           /* qmd_disable for this family */
};

/* The family of a GPU with the compute capability; NULL if the GPU is too old or too new. */
const struct qmd_family *qmd_family_for(unsigned int compute_major, unsigned int compute_minor);

/* The number of bits that a disable mask has in every version of the family. */
unsigned int qmd_mask_bits(const struct qmd_family *family);

/* Disables in `qmd` the TPCs of `disable`, besides the TPCs that the driver disabled: green contexts and cluster
 * launches come with a mask (facts.md, "Launch descriptors", last point). Bits of absent TPCs must be set in `disable`.
 * Never disables all TPCs: the kernel would hang (facts.md, "Launches that never finish"). `qmd` is 4-byte aligned.
 * Also writes `release` (below) into QMD_COUNTING_SLOT; NULL: no release. */
static inline enum qmd_outcome qmd_disable(const struct qmd_family *family, void *qmd, const struct qmd_mask *disable,
                                           const struct qmd_release *release)
{
	return family->disable(qmd, disable, release);
}

/* Whether the family's descriptors show launches whose blocks must run at once; whether a descriptor of a known version
 * is of such a launch. */
bool qmd_shows_must_fit(const struct qmd_family *family);
bool qmd_must_fit(const struct qmd_family *family, const void *qmd);

/* Whether the descriptor has a version of this family; or a published version with too few mask bits. */
bool qmd_is_known(const struct qmd_family *family, const void *qmd);
bool qmd_is_narrow(const struct qmd_family *family, const void *qmd);

/* Whether the kernel has no blocks: the driver has such kernels of its own in graphs (hardware.md, "Graphs"). The
 * version must be known. */
bool qmd_has_no_blocks(const struct qmd_family *family, const void *qmd);

/* The number of blocks in each direction. All 0: not known. */
struct qmd_grid {
	uint32_t width;
	uint16_t height, depth;
};

#define QMD_SIZE 384 /* of a descriptor, in bytes */

/* The place of the mask in descriptors of the same version, in words of 32 bits. */
struct qmd_mask_place {
	uint8_t first, words; /* 2 or 4; 0: unknown version */
	uint8_t control;      /* the word with the bits of a valid mask */
	uint32_t valid;       /* the bits; 0: a mask is always valid */
};
struct qmd_mask_place qmd_mask_place(const struct qmd_family *family, const void *qmd);

/* The descriptor's version must be the place's version. */
static inline bool qmd_mask_is_valid(const struct qmd_mask_place *place, const void *qmd)
{
	return place->words > 0 && (((const uint32_t *)qmd)[place->control] & place->valid) == place->valid;
}

/* The descriptor's version must be known. */
struct qmd_shape qmd_shape_of(const struct qmd_family *family, const void *qmd);
struct qmd_mask qmd_own_mask(const struct qmd_family *family, const void *qmd); /* the driver's mask */

/* The blocks of a cluster, in a launch that must fit for its clusters alone; else 0. The version must be known. */
unsigned int qmd_cluster(const struct qmd_family *family, const void *qmd);

/*
 * Releases: the GPU's writes to memory at the end of a kernel (facts.md, "Releases"). A descriptor has a slot for each
 * release. The driver uses slot 0; CUPTI uses slot 1 while tracing kernels.
 */
#define QMD_SLOTS 3
#define QMD_STAMPING_SLOT 1
#define QMD_COUNTING_SLOT 2

enum qmd_release_kind {
	QMD_ADDS,   /* adds the value to the 64-bit number at the address */
	QMD_STAMPS, /* writes the value, and the time in ns on the GPU's clock into the next 8 bytes */
};

/* The place of a slot in some versions of a descriptor. Each word is the first of two words of 32 bits. */
struct qmd_place {
	uint8_t version_byte, first_version, last_version;
	uint8_t control_word, address_word; /* the payload is in the two words after the address */
	uint64_t enable;                    /* the control's bit for a slot in use */
	uint64_t control;                   /* the written control */
	uint64_t keep_control, keep_address; /* the words' other bits */
	const struct qmd_layout *layout;     /* of the versions; NULL: none */
};

/* A release, ready for writing into any number of descriptors. */
struct qmd_release {
	struct qmd_place places[QMD_LAYOUTS]; /* in the order of the family's layouts */
	uint64_t address, payload;
};

enum qmd_release_outcome {
	QMD_RELEASES,         /* written */
	QMD_SLOT_USED,        /* the slot has a release already; unchanged */
	QMD_NO_RELEASE_SLOTS, /* no version with the slot; unchanged */
};

/* A release can write to addresses below the result; 0 if the family has no usable slots. 64-bit additions are
 * published only from version 3.0 on, with addresses of 40 bits. */
uint64_t qmd_release_reach(const struct qmd_family *family);

/* False, with nothing prepared, if the family has no usable slots, or if the address is out of reach. The address is a
 * multiple of 8, or of 16 for QMD_STAMPS. */
bool qmd_release_prepare(struct qmd_release *release, const struct qmd_family *family, unsigned int slot,
                         enum qmd_release_kind kind, uint64_t address, uint64_t value);

/* Writes a prepared release. Runs in every launch. */
enum qmd_release_outcome qmd_release(const struct qmd_release *release, void *qmd);

/* The place where qmd_release would write; NULL if nothing would be written. Then qmd_stamp writes there the address
 * `at` and the value `number`. */
const struct qmd_place *qmd_release_look(const struct qmd_release *release, const void *qmd);
void qmd_stamp(const struct qmd_place *place, void *qmd, uint64_t at, uint64_t number);

/* The word of the descriptor with the release's address; 0 for versions without the slot. */
unsigned int qmd_release_word(const struct qmd_release *release, const void *qmd);

/* Whether the slot has a release of the driver or the program. False for versions without the slot. */
bool qmd_slot_is_used(const struct qmd_family *family, const void *qmd, unsigned int slot);

/* In a descriptor with the place: the address of the driver's own release, in slot 0, or 0; and the grid. */
uint64_t qmd_drivers_address(const struct qmd_place *place, const void *qmd);
struct qmd_grid qmd_grid_of(const struct qmd_place *place, const void *qmd);

/* The part of a descriptor that qmd_release changes. */
struct qmd_saved_slot {
	uint64_t control, address, payload;
};

struct qmd_saved_slot qmd_save_slot(const struct qmd_release *release, const void *qmd);
void qmd_restore_slot(const struct qmd_release *release, void *qmd, const struct qmd_saved_slot *saved);

/* --- all changes at once ------------------------------------------------------------------------------------------ */

/* The wanted changes of a descriptor. */
struct qmd_change {
	const struct qmd_mask *disable; /* NULL: the mask stays */
	bool is_exact;                  /* replaces the driver's mask: the caller knows where the launch fits */
	bool fetches_ahead; /* prefetches the next node's parameters again: once that node is disabled, nobody does */
	const struct qmd_release *counting, *stamping; /* for these slots; NULL: the slot stays */
	uint64_t timestamp_at, timestamp; /* replace the prepared address and value of `stamping` */
};

/* The former content of the written parts, except for fetching ahead. Graphs use descriptors again: the masks of all
 * partitions would add up, and our own release would occupy the slot. */
struct qmd_saved {
	const struct qmd_layout *layout; /* NULL: the mask was not written */
	struct qmd_mask mask, upper; /* `upper`: the further bits of version 4.1 */
	bool is_valid;
	const struct qmd_release *counting, *stamping; /* must exist until qmd_restore */
	struct qmd_saved_slot counting_slot, stamping_slot;
};

struct qmd_outcomes {
	enum qmd_outcome mask; /* QMD_NARROWED if no mask was wanted */
	enum qmd_release_outcome counting; /* QMD_NO_RELEASE_SLOTS if no release was wanted */
};

/* `saved` may be NULL. */
struct qmd_outcomes qmd_write(const struct qmd_family *family, void *qmd, const struct qmd_change *change,
                              struct qmd_saved *saved);
void qmd_restore(void *qmd, const struct qmd_saved *saved);
