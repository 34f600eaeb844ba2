/* The tasks for a plan, from their file, and the plan of one GPU. */
#pragma once

#include "plan/curve.h"
#include "plan/plan.h"
#include "programs.h"

#include <jansson.h>

#define TASK_WORDS 256 /* of a command */

/* The part of a task in the plan; 0: none. */
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
	char *command[TASK_WORDS]; /* ended by NULL; empty for a running program */
	pid_t pid;                 /* 0: to be started */
	bool is_best_effort;
	struct plan_task needs;    /* unless of best effort; with the times below */
	uint64_t longest_ns[PLAN_TPCS], launches_ns[PLAN_TPCS];
	uint64_t launch_ns;        /* the longest launch, as the file has it; 0: not there */
	struct curve curve, beside;
	struct grant grant, before; /* `before`: from an earlier plan; taken back unless in `grant` */
	struct jobs_times seen;    /* by tasks_check */
};

struct tasks {
	json_t *document;
	double margin; /* added to all times */
	size_t count;
	struct task list[PROGRAMS_MAX];
};

/* Reads FILE, and the curves in FILE; their paths are relative to its directory. -1 with the reason. The caller
 * releases the document, which has the names. */
int tasks_read(struct tasks *tasks, const char *path, struct error *error);

/* The times of a task by its curve. Then the time of a job in the task's partition: in the middle between alone and
 * beside a neighbour, if measured; 0: no deadline. */
void task_fill_times(struct task *task, const struct tasks *tasks);
double task_predicted_ns(const struct task *task, const struct tasks *tasks);

/* The command that starts or changes the task as planned. The task's own command follows. */
void task_line(const struct task *task, const struct space *space, char line[PROGRAM_LINE]);

/* Starts or changes all tasks; then each has its pid. -1 with the reason, and all is as before. */
int tasks_apply(struct tasks *tasks, const struct space *space, struct error *error);

/* Watches the tasks with deadlines, which run, for some seconds. -1 with the reason. */
int tasks_check(struct tasks *tasks, double seconds, struct error *error);
