/* What a look sees, as the rules know it: the program, and the others on one GPU that have a claim to its time. */
#ifndef NVTASKSET_TIME_RULES_RIVALS_H
#define NVTASKSET_TIME_RULES_RIVALS_H

#include <stdbool.h>
#include <stdint.h>

struct rules_view {
	bool wants;                /* the program has work in flight, or that is not known */
	bool pauses;               /* now and then */
	bool is_present;           /* it wants, or pauses for a moment only */
	unsigned int gpus_wanting; /* on so many GPUs */
};

struct rivals {
	bool any;
	bool has_lower;               /* a program of a lower priority is there */
	bool has_higher;              /* a program of a higher priority is there; */
	unsigned int higher_wanting;  /* so many have work in flight; */
	uint64_t higher_idle_ns;      /* or none of them has launched anything for so long, at least */
	unsigned int lower_wanting;   /* programs of no higher priority that have work in flight; members of a group are one */
	unsigned int equals_present;  /* of the same priority: they run, or pause for a moment only; those that are suspended do not */
	unsigned int equals_wanting;  /* the same with those that are suspended */
	bool equals_pause;            /* one of these pauses now and then, as it says itself: all see it alike */
	bool group_is_present;        /* another member of the program's own group is among those present */
	uint64_t least_served_ns;     /* of those present that have met others, by weight; UINT64_MAX: there is none but the own group */
};

static const struct rivals rivals_none = {.least_served_ns = UINT64_MAX, .higher_idle_ns = UINT64_MAX};

#endif
