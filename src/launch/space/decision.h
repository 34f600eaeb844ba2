/*
 * The decision about a launch so far. Each decider changes the former result (launch/launch.c has the order).
 */
#pragma once

#include "driver/gpus.h"
#include "state/segment/segment.h"

enum decision_state {
	DECISION_WHOLE_GPU,    /* the mask stays unchanged */
	DECISION_RESTRICTED,   /* the launch may use `set` */
	DECISION_UNRESTRICTED, /* the partition cannot be enforced; `reason` says why */
};

struct decision {
	enum decision_state state;
	enum segment_reason reason;
	struct tpcset partition; /* the GPU's TPCs in the partition; empty, as `set`, if the GPU is unknown */
	struct tpcset set;       /* TPCs that the launch may use */
	struct tpcset full;      /* with is_yielding (yielding.h): `set` without yielding */
	bool is_of_launch;       /* for this launch only: not cached, even if nothing changes */
	bool is_yielding;        /* other programs have a part of the partition for now */
	bool has_own_mask;       /* the launch obeys a mask of the program's own; a cluster, also a green context's */
	bool is_exact;           /* `set` replaces the driver's own mask in the descriptor */
	uint32_t notes;          /* reasons to count: bit n is enum segment_reason n */
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

/* For a GPU without masks (struct gpu). */
static inline void decision_lacks_masks(struct decision *decision, const struct gpu *gpu)
{
	enum segment_reason unknown = gpu->topology ? SEGMENT_UNKNOWN_QMD : SEGMENT_NO_TOPOLOGY;

	decision_leave_unrestricted(decision, gpu->topology && gpu->family ? SEGMENT_NARROW_QMD : unknown);
}

/* The GPU's mask bits must be known (struct gpu). */
static inline void decision_restrict(struct decision *decision, const struct tpcset *set)
{
	decision->state = DECISION_RESTRICTED;
	decision->set = *set;
}

/* Leaves some TPCs to other programs for now, and uses the rest. */
static inline void decision_yield(struct decision *decision, const struct tpcset *rest)
{
	decision->full = decision->set;
	decision->is_yielding = true;
	decision_restrict(decision, rest);
}

/* The launch cannot yield: back to the set without yielding. */
static inline void decision_stay(struct decision *decision, const struct topology *gpu)
{
	struct tpcset all = topology_all(gpu);

	decision_restrict(decision, &decision->full);
	if (tpcset_equal(&decision->full, &all))
		decision->state = DECISION_WHOLE_GPU;
	decision->is_yielding = false;
}
