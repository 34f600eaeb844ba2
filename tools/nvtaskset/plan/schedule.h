/*
 * A test of schedulability for tasks that share one partition, on which one job runs at a time. Pure functions.
 */
#ifndef NVTASKSET_PLAN_SCHEDULE_H
#define NVTASKSET_PLAN_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A task, in its partition. A job comes at most once in each period. */
struct schedule_task {
	uint64_t period_ns, deadline_ns; /* neither is 0 */
	uint64_t time_ns;                /* a job takes this where it is alone; SCHEDULE_NEVER: it does not end */
	uint64_t launch_ns;              /* of that, its longest launch, which a higher task has to wait for */
};

#define SCHEDULE_NEVER (UINT64_MAX / 4) /* some of them can be added up */

/* A program without deadlines that may have so much of each period; run_ns is 0: there is none. */
struct schedule_server {
	uint64_t run_ns, period_ns;
	uint64_t launch_ns; /* its longest launch: a quota is overrun by one */
};

/* Fixed priorities, the tasks in falling order: response-time analysis (Joseph and Pandya 1986, Audsley et al. 1993). Each task
 * waits for at most one launch of a lower one, as nvtaskset's gate holds them back. The server is taken for a deferrable one
 * above all tasks (Strosnider et al. 1995). `responses_ns`, for each task, may be NULL: of those that are not met they are
 * SCHEDULE_NEVER. */
bool schedule_fixed(const struct schedule_task *tasks, unsigned int count, const struct schedule_server *server,
                    uint64_t *responses_ns);

/* For fixed priorities: the shorter deadline goes first, which is optimal without blocking (Leung and Whitehead 1982). Returns
 * less than 0, 0, or more, as qsort wants it. */
int schedule_compare(const struct schedule_task *a, const struct schedule_task *b);

#endif
