/*
 * The sizes of partitions, and the tasks in each: Zahaf et al., "Contention-Aware GPU Partitioning and
 * Task-to-Partition Allocation for Real-Time Workloads" (2021). Algorithms, lemmas and definitions in comments are the
 * paper's. Pure functions.
 *
 * A task with more TPCs never takes longer: plan_task's times do not rise with TPCs.
 */
#pragma once

#include "gpu/tpcset.h"

/* --- a test of schedulability, for tasks in one partition, one job at a time -------------------------------------- */

/* A task, in its partition. A job comes at most once in each period. */
struct schedule_task {
	uint64_t period_ns;
	uint64_t deadline_ns; /* 0: no deadline, and not tested */
	uint64_t time_ns;     /* of a job alone; SCHEDULE_NEVER: never ends */
	uint64_t launch_ns;   /* the longest launch within: a higher task waits for its end */
	uint64_t jitter_ns;   /* the most that a job comes later than in other periods */
	uint64_t overrun_ns;  /* once, the time grows by this */
	uint32_t number;      /* in the list of all tasks */
	/* Found up to the first task that misses its deadline, which gets SCHEDULE_NEVER. 0 without a deadline. */
	uint64_t response_ns;
};

#define SCHEDULE_NEVER (UINT64_MAX / 4) /* a few times can be added up */

/* Fixed priorities, the tasks in falling order: response-time analysis (Joseph and Pandya 1986, Audsley et al. 1993).
 * Each task waits for at most one launch of a lower task, since nvtaskset's gate holds back the rest. */
bool schedule_fixed(struct schedule_task *tasks, unsigned int count);

/* --- the plan ----------------------------------------------------------------------------------------------------- */

/* A set of tasks: a tpcset with their places in the list as members. */
#define PLAN_TASKS TPCSET_MAX
#define PLAN_TPCS 256 /* partitions have fewer */
#define PLAN_NONE UINT32_MAX

struct plan_task {
	uint64_t period_ns, deadline_ns;
	bool is_memory;   /* disturbs tasks that want memory, too; else tasks that compute */
	bool is_alone;    /* shares its partition with no task */
	/* Times of a job by TPCs, from element 1 on. SCHEDULE_NEVER: not known, or too long. */
	const uint64_t *alone_ns;  /* without a second task of its kind in the partition */
	const uint64_t *beside_ns; /* with a second task of its kind */
	const uint64_t *launch_ns; /* the longest launch; NULL: the whole job */
};

struct plan_problem {
	unsigned int tpcs; /* of the GPU; fewer than PLAN_TPCS */
	unsigned int count;
	const struct plan_task *tasks;
	bool (*test)(struct schedule_task *tasks, unsigned int count); /* NULL: schedule_fixed */
};

struct plan_rules {
	/* Merges the pair with the least work (definition 4); else with the fewest TPCs. The paper's BF and SMS. */
	bool by_work;
	bool tests_pairs; /* first forbids pairs of tasks that do not fit (the paper's ACT); else not (INA) */
	bool goes_on;     /* merges as long as TPCs can be saved, also if the plan fits */
};

struct plan_partition {
	unsigned int tpcs;
	struct tpcset tasks;
	struct tpcset forbidden; /* tasks that may not share this partition */
	double work;             /* in TPCs, for the heuristic */
};

struct plan {
	const struct plan_problem *problem;
	struct plan_rules rules;
	bool fits;
	const char *way;    /* the way to the plan */
	unsigned int tpcs;  /* of all partitions together */
	/* A task without a size for its deadline: there is no plan; or PLAN_NONE. */
	uint32_t impossible;
	unsigned int merges, forbidden; /* merged partitions; pairs of tasks that may not share */
	unsigned int count;
	struct plan_partition partitions[PLAN_TASKS];
};

/* Algorithm 1. Returns whether the plan fits. */
bool plan_allocate(struct plan *plan, const struct plan_problem *problem, struct plan_rules rules);

/* The best plan of the heuristic's four ways: fits, with the fewest tasks together. If no plan fits, or with `goes_on`,
 * the plan with the fewest TPCs. */
bool plan_heuristic(struct plan *plan, const struct plan_problem *problem, bool goes_on);

/* The fewest TPCs of all ways to put tasks together, for up to PLAN_EXACT tasks; false for more. */
#define PLAN_EXACT 10
bool plan_search(struct plan *plan, const struct plan_problem *problem);

/* The plan to take: the heuristic's; for a few tasks, if that does not fit, the search's. */
bool plan_make(struct plan *plan, const struct plan_problem *problem);

/* The change of a task that makes the plan fit: the smallest lengthening of a deadline, in proportion. */
struct plan_relief {
	uint32_t task; /* PLAN_NONE: no change does */
	uint64_t deadline_ns;
};
struct plan_relief plan_relieve(const struct plan_problem *problem);

/* --- parts of a plan ---------------------------------------------------------------------------------------------- */

/* The fewest TPCs, from `low` to `high`, with which the set's tasks meet their deadlines in one partition; 0: none. */
unsigned int plan_size(const struct plan_problem *problem, const struct tpcset *set, unsigned int low,
                       unsigned int high);

/* The set's tasks in a partition of this size, by falling priority. Returns the number. */
unsigned int plan_schedule(const struct plan_problem *problem, const struct tpcset *set, unsigned int tpcs,
                           struct schedule_task tasks[PLAN_TASKS]);

/* The largest quota, in whole ms of each `period_ns`, for each of `programs` programs without deadlines in the
 * partition; 0: none. A launch overruns a quota: `launches_ns` is the sum of the programs' longest launches. */
uint64_t plan_quota(const struct plan_problem *problem, const struct plan_partition *partition, unsigned int programs,
                    uint64_t period_ns, uint64_t launches_ns);
