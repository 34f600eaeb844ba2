/*
 * What has been decided about a launch so far. Each decider (launch.c lists them) gets it from the one before.
 */
#ifndef NVTASKSET_SHIM_DECISION_H
#define NVTASKSET_SHIM_DECISION_H

#include "gpu/qmd.h"
#include "gpu/topology/topology.h"
#include "state/segment.h"

#include <stdbool.h>
#include <stdint.h>

enum decision_state {
	DECISION_WHOLE_GPU,    /* the descriptor stays as it is */
	DECISION_RESTRICTED,   /* to `set` */
	DECISION_UNRESTRICTED, /* there is a partition, and it cannot be enforced, for `reason` */
};

struct decision {
	enum decision_state state;
	enum segment_reason reason;
	struct tpcset partition; /* the GPU's TPCs in the partition; this and `set` are empty where the GPU is not known */
	struct tpcset set;       /* those that the launch may use */
	struct qmd_mask disable; /* says the same as `set`, where that is not the whole GPU */
	bool is_of_launch;       /* the next launch may get another one, though nothing has changed */
	bool is_exact;           /* `disable` counts alone, whatever the driver disabled in the descriptor */
	uint32_t notes;          /* what is to be counted: a bit for each enum segment_reason */
};

static inline void decision_note(struct decision *decision, enum segment_reason reason)
{
	decision->notes |= UINT32_C(1) << reason;
}

static inline void decision_leave_unrestricted(struct decision *decision, enum segment_reason reason)
{
	decision->state = DECISION_UNRESTRICTED;
	decision->reason = reason;
}

/* On a GPU whose mask bits are known. */
static inline void decision_restrict(struct decision *decision, const struct topology *gpu, const struct tpcset *set)
{
	decision->state = DECISION_RESTRICTED;
	decision->set = *set;
	topology_disable_mask(gpu, set, decision->disable.words, QMD_MASK_BITS);
}

#endif
