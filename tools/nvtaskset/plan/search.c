/* All ways to put tasks together; the plan to take; and the relief for a plan that does not fit. */
#include "plan.h"

#include "base/extremes.h"

#include <string.h>

#define SETS (1u << PLAN_EXACT)
#define NEVER_FITS 0xffffu
#define LONGER_MOST 64.0 /* times a deadline: beyond, the task is a different task */

/* For each set of tasks the fewest TPCs: of a single partition, plus the best of the rest. */
bool plan_search(struct plan *plan, const struct plan_problem *problem)
{
	uint32_t sizes[SETS], first[SETS] = {0}, best[SETS] = {0};
	unsigned int all = problem->count <= PLAN_EXACT ? (1u << problem->count) - 1 : 0;

	for (unsigned int bits = 1; bits <= all; bits++) {
		unsigned int tpcs = plan_size(problem, &(struct tpcset){{bits}}, 1, problem->tpcs);

		sizes[bits] = tpcs > 0 ? tpcs : NEVER_FITS;
		best[bits] = NEVER_FITS;
		for (unsigned int part = bits; part > 0; part = (part - 1) & bits) {
			if (sizes[part] + best[bits ^ part] < best[bits]) {
				best[bits] = sizes[part] + best[bits ^ part];
				first[bits] = part;
			}
		}
	}
	*plan = (struct plan){.way = "all ways searched", .impossible = PLAN_NONE, .tpcs = best[all]};
	for (unsigned int left = all; left != 0 && best[all] < NEVER_FITS; left ^= first[left])
		plan->partitions[plan->count++] = (struct plan_partition){.tpcs = sizes[first[left]],
		                                                          .tasks = {{first[left]}}};
	for (uint32_t i = problem->count; i-- > 0 && all != 0;)
		plan->impossible = sizes[1u << i] == NEVER_FITS ? i : plan->impossible;
	plan->fits = plan->tpcs <= problem->tpcs;
	return all != 0 || problem->count == 0;
}

bool plan_make(struct plan *plan, const struct plan_problem *problem)
{
	struct plan other;

	if (!plan_heuristic(plan, problem, false) && plan->impossible == PLAN_NONE && plan_search(&other, problem) &&
	    other.tpcs < plan->tpcs)
		*plan = other;
	return plan->fits;
}

/* Whether the plan fits if the task has a new deadline, and a period at least as long. */
static bool fits_with(const struct plan_problem *problem, uint32_t task, uint64_t deadline_ns)
{
	struct plan plan;
	struct plan_task tasks[PLAN_TASKS];
	struct plan_problem changed = *problem;

	memcpy(tasks, problem->tasks, problem->count * sizeof *tasks);
	tasks[task].deadline_ns = deadline_ns;
	tasks[task].period_ns = max_u64(tasks[task].period_ns, deadline_ns);
	changed.tasks = tasks;
	return plan_make(&plan, &changed);
}

struct plan_relief plan_relieve(const struct plan_problem *problem)
{
	struct plan_relief relief = {.task = PLAN_NONE};
	double least = LONGER_MOST;

	for (uint32_t i = 0; i < problem->count; i++) {
		const uint64_t deadline = problem->tasks[i].deadline_ns;
		uint64_t low = deadline, high = (uint64_t)((double)deadline * least);

		if (!fits_with(problem, i, high))
			continue;
		while (high - low > max_u64(deadline / 100, 1)) {
			uint64_t middle = low + (high - low) / 2;

			*(fits_with(problem, i, middle) ? &high : &low) = middle;
		}
		least = (double)high / (double)deadline;
		relief = (struct plan_relief){.task = i, .deadline_ns = high};
	}
	return relief;
}
