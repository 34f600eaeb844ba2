/* The tasks that a plan is made for, as their file has them, and the plan of one GPU. */
#ifndef NVTASKSET_TUNING_TASKS_H
#define NVTASKSET_TUNING_TASKS_H

#include "plan/curve.h"
#include "plan/plan.h"
#include "programs.h"

#include <jansson.h>

#define TASK_WORDS 256 /* of a command */

/* What the plan gives a task. 0: nothing. */
struct grant {
	struct segment_partition place;
	unsigned int tpcs;
	unsigned int priority;   /* among these tasks */
	uint64_t lend_us, quota_us;
	bool borrows;
	uint64_t response_ns;    /* the longest, by the test; without a deadline 0 */
};

struct task {
	const char *name;
	char *command[TASK_WORDS]; /* ended by NULL; empty where there is a pid */
	pid_t pid;                 /* 0: it is to be started */
	bool is_best_effort;
	struct plan_task needs;    /* if it is not; its times are these */
	uint64_t longest_ns[PLAN_TPCS], launches_ns[PLAN_TPCS];
	uint64_t launch_ns;        /* its longest launch, if the file says so; 0: it does not */
	struct curve curve, beside;
	struct grant grant, before; /* `before` by an earlier plan: it is taken back where this one does not give it */
	struct jobs_times seen;    /* by tasks_check */
};

struct tasks {
	json_t *document;
	double margin; /* is added to all times */
	size_t count;
	struct task list[PROGRAMS_MAX];
};

/* Reads FILE, and the curves that it names; their paths are relative to its directory. -1 with the reason. The caller lets go of the
 * document, in which the names are. */
int tasks_read(struct tasks *tasks, const char *path, struct error *error);

/* The times that a task needs, by its curve; and what a job of it takes in its partition, in the middle of alone and beside a
 * neighbour, where that was measured. 0: it has no deadline. */
void task_fill_times(struct task *task, const struct tasks *tasks);
double task_predicted_ns(const struct task *task, const struct tasks *tasks);

/* The command that does what the plan says of a task: starts it, or changes it. The task's own command is to follow. */
void task_line(const struct task *task, const struct room *room, char line[PROGRAM_LINE]);

/* Does it for all. Afterwards each has its pid. -1 with the reason, and all is as before. */
int tasks_apply(struct tasks *tasks, const struct room *room, struct error *error);

/* Looks at the tasks with deadlines, which run, for so long. -1 with the reason. */
int tasks_check(struct tasks *tasks, double seconds, struct error *error);

#endif
