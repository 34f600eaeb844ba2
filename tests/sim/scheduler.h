/*
 * A model of the block scheduler: on which SM each block of a launch runs, and whether it can run at all.
 *
 * A cluster runs inside one group of TPCs, a virtual GPC or a singleton TPC by itself, and no two of its
 * blocks share an SM (facts.md, "Launches that never finish": a cluster of 4 never ran on singletons, which have 2
 * SMs, and one of 16 never on 8 SMs). All blocks of a cooperative launch run at once.
 */
#ifndef SIM_SCHEDULER_H
#define SIM_SCHEDULER_H

#include "gpu/topology/topology.h"

#include <stddef.h>

#define SCHEDULER_SMS_MAX (2 * TPCSET_MAX)

struct launch;

struct schedule {
	const struct launch *launch;
	unsigned int blocks_per_sm;
	unsigned int sm_count;
	uint16_t sms[SCHEDULER_SMS_MAX]; /* the enabled ones; for clusters, group by group */
	unsigned int group_count;        /* groups in which a cluster has room */
	struct {
		uint16_t first; /* in `sms` */
		uint16_t count;
	} groups[TPCSET_MAX];
	unsigned int clusters_at_once;
};

void schedule_prepare(struct schedule *schedule, const struct launch *launch, const struct tpcset *enabled);

/* NULL, or the reason why this launch would never finish. */
const char *schedule_verdict(const struct schedule *schedule);

/* Blocks are numbered as in memory: x runs fastest. */
unsigned int schedule_sm(const struct schedule *schedule, size_t block);

#endif
