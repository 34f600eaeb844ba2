/*
 * A queue of jobs for a simulated cluster: first come, first served, with backfill.
 *
 * Whoever has waited longest and finds room begins. The oldest that wait have a reservation: the GPUs that are idle soonest
 * if all jobs stay as long as they may. These take other jobs only where those will have ended before. A reservation is of
 * a size, and serves the oldest of this size; it stays where it is until one of this size has begun there. Jobs of a size
 * begin in their order, but for those that fill a hole the moment they come.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include "cluster.h"

#include <stddef.h>

#define SCHEDULER_RESERVATIONS 500 /* as many jobs as Slurm's backfill looks at by default (bf_max_job_test) */

/* Times are in seconds. */
struct job {
	double arrival;
	double duration;
	double limit; /* what the user says that it takes at most: not below the duration */
	struct need need;
	/* What the scheduler decided. */
	double start;
	struct place place;
	uint32_t next; /* its own */
};

/* Lets all jobs, in the order of their arrival, begin and end on so many nodes. Each must have room on an idle node. */
void scheduler_run(struct job *jobs, size_t count, unsigned int nodes);

#endif
