/*
 * Infers the topology of a GPU from observations of its kernels. Nothing is launched here: the launcher
 * (tools/nvtaskset/measure/launcher.h) notes which SMs ran blocks, and this infers from it.
 *
 *   - The SMs on which nothing runs while one mask bit is set are the TPC of that bit.
 *   - SMs that share a cluster are in one virtual GPC (facts.md, "Topology"). The virtual GPCs' numbers and the
 *     bits follow the rule of facts.md, "Mask bits", with the two limits of the chip that explain all that was
 *     observed.
 *
 * The chip's GPCs cannot be observed in this way, nor virtual GPCs before Hopper, which has none.
 */
#ifndef NVTASKSET_TOPOLOGY_MEASURED_H
#define NVTASKSET_TOPOLOGY_MEASURED_H

#include "base/error.h"
#include "topology.h"

#include <stdbool.h>
#include <stdint.h>

#define MEASURED_SMS_MAX (2 * TPCSET_MAX)

/* Observations of one GPU. Too large for the stack. */
struct measured {
	unsigned int sm_count;  /* from the driver */
	unsigned int bit_count; /* of the mask */
	bool ran[MEASURED_SMS_MAX];                             /* blocks ran there while no bit was set */
	bool ran_without[TOPOLOGY_MASK_BITS][MEASURED_SMS_MAX]; /* blocks ran there while only this bit was set */
	uint16_t cluster[MEASURED_SMS_MAX]; /* a forest of SMs that shared clusters; see measured_see_clusters */
};

/* Starts with no observations. -1 with the reason if a GPU of this size cannot be measured: on a GPU of one TPC, a
 * launch with its bit set would never finish. */
int measured_start(struct measured *measured, const struct topology *gpu, unsigned int sm_count,
                   unsigned int bit_count, struct error *error);

/* Notes in `ran`, a member of `measured`, that `count` blocks ran on these SMs. -1 with the reason if there is no such
 * SM. */
int measured_see(const struct measured *measured, bool *ran, const uint32_t *sms, unsigned int count,
                 struct error *error);

/* Notes the same for clusters of `size` blocks, one after the other; `count` is a multiple of `size`. */
int measured_see_clusters(struct measured *measured, unsigned int size, const uint32_t *sms, unsigned int count,
                          struct error *error);

/* How many SMs ran blocks while no bit was set, but not while `bit` was. More than the SMs of a TPC mean that some got
 * no block by chance: then it is worth launching again. */
unsigned int measured_missing(const struct measured *measured, unsigned int bit);

/* How the numbers of virtual GPCs were found. */
enum measured_numbers {
	MEASURED_NO_NUMBERS, /* before Hopper */
	MEASURED_PUBLISHED,  /* the published limits of such a chip explain what was seen */
	MEASURED_ONLY,       /* no published ones do; only one pair */
	MEASURED_CHOSEN      /* several pairs do, and the smallest was taken: groups are right, numbers may not be */
};

/* Fills in TPCs and limits of `gpu`. The caller fills in the rest, and the compute capability before. -1 with the
 * reason if observations are missing or contradict each other. */
int measured_infer(const struct measured *measured, struct topology *gpu, enum measured_numbers *numbers,
                   struct error *error);

/* Finds the first difference between two topologies in what measuring can show: TPCs, mask bits, virtual GPCs. 0 if
 * there is none, else -1; in the reason, `here` and `there` say where each comes from. */
int measured_compare(const struct topology *measured, const char *here, const struct topology *other,
                     const char *there, struct error *error);

#endif
