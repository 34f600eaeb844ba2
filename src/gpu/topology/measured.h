/*
 * The topology of a GPU, from what was seen of its kernels. Nobody is asked and nothing is launched here: whoever
 * launches (tools/nvtaskset/probe.h) writes down which SMs ran blocks, and this says what follows from it.
 *
 *   - The SMs that run nothing while one mask bit is set are the TPC that the bit stands for.
 *   - SMs that share a cluster lie in one virtual GPC (docs/facts.md, "Topology"); the virtual GPC's number and the
 *     bits obey the rule of docs/facts.md, "Mask bits", with the two limits of the chip that explain all that was seen.
 *
 * The chip's GPCs cannot be seen in this way, nor virtual GPCs before Hopper, which has none.
 */
#ifndef NVTASKSET_TOPOLOGY_MEASURED_H
#define NVTASKSET_TOPOLOGY_MEASURED_H

#include "base/error.h"
#include "topology.h"

#include <stdbool.h>
#include <stdint.h>

#define MEASURED_SMS_MAX (2 * TPCSET_MAX)

/* What was seen on one GPU. Large: not for the stack. */
struct measured {
	unsigned int sm_count;  /* as the driver says */
	unsigned int bit_count; /* of the mask */
	bool ran[MEASURED_SMS_MAX];                             /* while no bit was set */
	bool ran_without[TOPOLOGY_MASK_BITS][MEASURED_SMS_MAX]; /* while just this bit was set */
	uint16_t cluster[MEASURED_SMS_MAX]; /* a forest of SMs that shared clusters; see measured_see_clusters */
};

/* Whether a GPU of that size can be measured at all: a GPU of one TPC would never finish with its bit set. */
int measured_start(struct measured *measured, const struct topology *gpu, unsigned int sm_count,
                   unsigned int bit_count, struct error *error);

/* Notes that `count` blocks ran on these SMs: into `ran` or one of `ran_without`. -1 where there is no such SM. */
int measured_see(const struct measured *measured, bool *ran, const uint32_t *sms, unsigned int count,
                 struct error *error);

/* Notes the same of clusters of `size` blocks, one behind the other; `count` is a multiple of `size`. */
int measured_see_clusters(struct measured *measured, unsigned int size, const uint32_t *sms, unsigned int count,
                          struct error *error);

/* How many SMs ran while no bit was set, and did not while `bit` was: more than a TPC has mean that chance left some
 * without a block, and that it is worth launching again. */
unsigned int measured_missing(const struct measured *measured, unsigned int bit);

/* How the numbers of virtual GPCs were found. */
enum measured_numbers {
	MEASURED_NO_NUMBERS, /* before Hopper */
	MEASURED_PUBLISHED,  /* the published limits of such a chip explain what was seen */
	MEASURED_ONLY,       /* no published ones; just one pair of limits explains it */
	MEASURED_CHOSEN      /* several explain it, and the smallest was taken: groups are right, numbers may not be */
};

/* Fills in what the topology says of TPCs and limits; the rest of `gpu` is the caller's, and its compute capability is
 * needed. -1 with the reason where something is missing or contradicts something else. */
int measured_infer(const struct measured *measured, struct topology *gpu, enum measured_numbers *numbers,
                   struct error *error);

/* The first difference between two descriptions of a GPU that measuring can show: TPCs, mask bits, virtual GPCs. 0
 * where there is none, else -1; `here` and `there` say in the reason who claims what. */
int measured_compare(const struct topology *measured, const char *here, const struct topology *told,
                     const char *there, struct error *error);

#endif
