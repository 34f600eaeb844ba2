/*
 * Infers the topology of a GPU from observations of kernels. Launches nothing: the launcher
 * (tools/nvtaskset/measure/launcher.h) notes which SMs ran blocks.
 *
 * - The SMs on which nothing runs while a single mask bit is set are the TPC of the bit.
 * - SMs with a common cluster are in a common virtual GPC (facts.md, "Topology"). The virtual GPCs' numbers and the
 *   bits follow facts.md, "Mask bits", with the gpc_limit and tpc_limit (topology.h) that explain all observations.
 *
 * The chip's GPCs cannot be observed in this way, and there are no virtual GPCs before Hopper.
 */
#pragma once

#include "base/error.h"
#include "topology.h"

#define MEASURED_SMS_MAX (2 * TPCSET_MAX)

/* Observations of a GPU. Too large for the stack. */
struct measured {
	unsigned int sm_count;  /* from the driver */
	unsigned int bit_count; /* of the mask */
	bool ran[MEASURED_SMS_MAX];                             /* blocks ran there while no bit was set */
	bool ran_without[TOPOLOGY_MASK_BITS][MEASURED_SMS_MAX]; /* blocks ran there while only this bit was set */
	uint16_t cluster[MEASURED_SMS_MAX]; /* a forest of SMs that shared clusters; see measured_see_clusters */
};

/* Starts with no observations. -1 with the reason if a GPU of this size cannot be measured: on a GPU with a single TPC,
 * a launch with the TPC's bit set would never finish. */
int measured_start(struct measured *measured, const struct topology *gpu, unsigned int sm_count,
                   unsigned int bit_count, struct error *error);

/* Notes in `ran`, a member of `measured`, that `count` blocks ran on the SMs. -1 with the reason for an impossible
 * SM. */
int measured_see(const struct measured *measured, bool *ran, const uint32_t *sms, unsigned int count,
                 struct error *error);

/* Notes the same for clusters of `size` blocks, in turn; `count` is a multiple of `size`. */
int measured_see_clusters(struct measured *measured, unsigned int size, const uint32_t *sms, unsigned int count,
                          struct error *error);

/* The number of SMs that ran blocks while no bit was set, but not while `bit` was. More SMs than in a TPC: some got no
 * block by chance, and the caller should launch again. */
unsigned int measured_missing(const struct measured *measured, unsigned int bit);

/* The origin of the numbers of virtual GPCs. */
enum measured_numbers {
	MEASURED_NO_NUMBERS, /* before Hopper */
	MEASURED_PUBLISHED,  /* the published limits of a chip explain the observations */
	MEASURED_ONLY,       /* a single pair of limits does, and no published pair */
	MEASURED_CHOSEN      /* several pairs do; the smallest: groups are right, numbers perhaps not */
};

/* Fills in TPCs and limits of `gpu`. The caller fills in the rest, and the compute capability before. -1 with the
 * reason if observations are missing or contradict each other. */
int measured_infer(const struct measured *measured, struct topology *gpu, enum measured_numbers *numbers,
                   struct error *error);

/* Finds the first difference between two topologies in the measurable parts: TPCs, mask bits, virtual GPCs. 0 without a
 * difference, else -1; in the reason, `here` and `there` name the origins. */
int measured_compare(const struct topology *measured, const char *here, const struct topology *other,
                     const char *there, struct error *error);
