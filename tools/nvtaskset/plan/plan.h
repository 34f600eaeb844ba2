/*
 * How large each partition should be, and which tasks share one: Zahaf et al., "Contention-Aware GPU Partitioning and
 * Task-to-Partition Allocation for Real-Time Workloads" (2021), whose algorithms and lemmas the comments name. Pure functions.
 *
 * A task that is larger never takes longer: plan_task's times do not rise with TPCs.
 */
#ifndef NVTASKSET_PLAN_PLAN_H
#define NVTASKSET_PLAN_PLAN_H

#include "gpu/tpcset.h"

/* --- a test of schedulability, for tasks that share one partition, on which one job runs at a time ---------------- */

/* A task, in its partition. A job comes at most once in each period. */
struct schedule_task {
	uint64_t period_ns;
	uint64_t deadline_ns; /* 0: it has none, and is not tested */
	uint64_t time_ns;     /* a job takes this where it is alone; SCHEDULE_NEVER: it does not end */
	uint64_t launch_ns;   /* of that, its longest launch, which a higher task has to wait for */
	uint64_t jitter_ns;   /* a job may come so much later than in other periods */
	uint64_t overrun_ns;  /* once, it takes so much more */
	uint32_t number;      /* in the list of all tasks */
	uint64_t response_ns; /* as found, up to the first that is not met: that is SCHEDULE_NEVER. Without a deadline 0 */
};

#define SCHEDULE_NEVER (UINT64_MAX / 4) /* some of them can be added up */

/* Fixed priorities, the tasks in falling order: response-time analysis (Joseph and Pandya 1986, Audsley et al. 1993). Each task
 * waits for at most one launch of a lower one, as nvtaskset's gate holds them back. */
bool schedule_fixed(struct schedule_task *tasks, unsigned int count);

/* --- the plan ----------------------------------------------------------------------------------------------------- */

/* A set of tasks has their places in the list as members: a tpcset holds any such numbers. */
#define PLAN_TASKS TPCSET_MAX
#define PLAN_TPCS 256 /* partitions have fewer */
#define PLAN_NONE UINT32_MAX

struct plan_task {
	uint64_t period_ns, deadline_ns;
	bool is_memory;   /* it disturbs those that want memory, too; else those that compute */
	bool is_alone;    /* it shares its partition with nobody */
	/* How long a job takes, by TPCs: element 0 is not used. SCHEDULE_NEVER: it is not known, or too long. */
	const uint64_t *alone_ns;  /* without one of its kind in the partition, */
	const uint64_t *beside_ns; /* and with one */
	const uint64_t *launch_ns; /* its longest launch; NULL: as long as the job */
};

struct plan_problem {
	unsigned int tpcs; /* there are so many, fewer than PLAN_TPCS */
	unsigned int count;
	const struct plan_task *tasks;
	bool (*test)(struct schedule_task *tasks, unsigned int count); /* NULL: schedule_fixed */
};

struct plan_rules {
	bool by_work;     /* two become the one with the least to do (definition 4), BF in the paper; else with the fewest TPCs (SMS) */
	bool tests_pairs; /* all pairs of tasks first: those that cannot share are forbidden. ACT, else INA */
	bool goes_on;     /* as long as there is something to save, also where the plan fits */
};

struct plan_partition {
	unsigned int tpcs;
	struct tpcset tasks;
	struct tpcset forbidden; /* tasks with which they may not share it */
	double work;             /* in TPCs, while the heuristic looks at it */
};

struct plan {
	const struct plan_problem *problem;
	struct plan_rules rules;
	bool fits;
	const char *way;    /* by which it was found */
	unsigned int tpcs;  /* that all partitions need together */
	uint32_t impossible; /* a task whose deadline no size meets; PLAN_NONE: there is none. Then there is no plan */
	unsigned int merges, forbidden; /* partitions that became one; pairs of tasks that may not */
	unsigned int count;
	struct plan_partition partitions[PLAN_TASKS];
};

/* Algorithm 1. Returns whether the plan fits. */
bool plan_allocate(struct plan *plan, const struct plan_problem *problem, struct plan_rules rules);

/* Of the heuristic's four ways the plan that fits and puts the fewest together; if none fits, or it `goes_on`, the one that needs the
 * fewest TPCs. */
bool plan_heuristic(struct plan *plan, const struct plan_problem *problem, bool goes_on);

/* The fewest TPCs of all ways to put tasks together, up to PLAN_EXACT tasks; false for more. */
#define PLAN_EXACT 10
bool plan_search(struct plan *plan, const struct plan_problem *problem);

/* The plan to take: the heuristic's; for a few tasks, if that does not fit, the search's. */
bool plan_make(struct plan *plan, const struct plan_problem *problem);

/* The change of one task that makes the plan fit: the smallest lengthening of a deadline, in proportion. */
struct plan_relief {
	uint32_t task; /* PLAN_NONE: there is none */
	uint64_t deadline_ns;
};
struct plan_relief plan_relieve(const struct plan_problem *problem);

/* --- parts of a plan ---------------------------------------------------------------------------------------------- */

/* The fewest TPCs with which these tasks meet their deadlines in one partition, from `low` to `high`; 0: it has no such size. */
unsigned int plan_size(const struct plan_problem *problem, const struct tpcset *set, unsigned int low, unsigned int high);

/* The set's tasks as they are in a partition of this size, in the order of their priorities. Returns how many. */
unsigned int plan_schedule(const struct plan_problem *problem, const struct tpcset *set, unsigned int tpcs,
                           struct schedule_task tasks[PLAN_TASKS]);

/* The largest part of each period that each of some programs without deadlines may have in the partition, in whole ms; 0: none. A quota
 * is overrun by a launch: `launches_ns` is the longest of each, together. */
uint64_t plan_quota(const struct plan_problem *problem, const struct plan_partition *partition, unsigned int programs, uint64_t period_ns,
                    uint64_t launches_ns);

#endif
