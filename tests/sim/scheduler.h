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

/* How many blocks of a kernel fit on an SM, and how many clusters on a GPU: the driver answers by the same numbers, without regard
 * to partitions (facts.md, "Launches that never finish"). */
#define OCCUPANCY_THREADS_PER_BLOCK 1024
#define OCCUPANCY_REGISTERS_PER_THREAD 32 /* of every kernel, since none is compiled */

/* How many blocks one SM holds at a time; 0 if not even one fits. */
unsigned int occupancy_blocks(const struct topology *gpu, unsigned int threads, size_t shared_bytes);

unsigned int occupancy_shared_per_block(const struct topology *gpu);

#endif
