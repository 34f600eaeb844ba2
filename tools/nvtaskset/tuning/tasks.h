/* The tasks that a plan is made for, as their file has them, and the plan of one GPU. */
#ifndef NVTASKSET_TUNING_TASKS_H
#define NVTASKSET_TUNING_TASKS_H

#include "base/error.h"
#include "keeper.h"
#include "plan/curve.h"
#include "plan/plan.h"
#include "state/segment/segment.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#define TASKS_MAX KEEPER_PROGRAMS
#define TASK_WORDS 256 /* of a command */
#define TASK_ARGUMENTS (TASK_WORDS + 24)

struct task {
	const char *name;
	char *command[TASK_WORDS]; /* ended by NULL; empty where there is a pid */
	pid_t pid;                 /* 0: it is to be started */
	bool is_best_effort, is_critical;
	uint64_t period_ns, deadline_ns;
	double launch_ms;          /* its longest launch, if the file says so; 0: it does not */
	struct curve curve, beside;
	uint64_t typical_ns[PLAN_TPCS], longest_ns[PLAN_TPCS], beside_ns[PLAN_TPCS], launch_ns[PLAN_TPCS];
	/* What the plan says. */
	struct segment_partition place;
	unsigned int tpcs;         /* 0: it has no place */
	unsigned int others;       /* tasks in its partition */
	uint64_t response_ns;      /* the longest, by the test; without a deadline 0 */
	unsigned int priority;     /* among these tasks; 0: not given */
	uint64_t lend_us, quota_us; /* 0: not given */
	bool borrows;
};

struct tasks {
	json_t *document;
	size_t count;
	struct task list[TASKS_MAX];
};

/* Reads FILE, and the curves that it names; their paths are relative to its directory. `margin` is added to all times. -1 with
 * the reason. The caller lets go of the document, in which the names are. */
int tasks_read(struct tasks *tasks, const char *path, struct error *error);

/* The arguments of the command that does what the plan says of a task, in `text`, ended by NULL: starts it, or changes it. */
void task_arguments(const struct task *task, const char *mps, const char *gpu, char text[TPCSET_TEXT + 256], char *arguments[TASK_ARGUMENTS]);

/* Does it for all. Afterwards each has its pid. -1 with the reason, and all is as before. */
int tasks_apply(struct tasks *tasks, const struct segment_revision *whole, const char *mps, const char *gpu, struct error *error);

/* What was seen of a task's jobs. */
struct task_check {
	size_t jobs, missed;
	double median_ns, longest_ns;
};

/* Looks at the tasks with deadlines, which run, for so long. -1 with the reason. */
int tasks_check(const struct tasks *tasks, double seconds, struct task_check checks[TASKS_MAX], struct error *error);

#endif
