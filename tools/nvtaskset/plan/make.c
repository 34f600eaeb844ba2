/* The plan to take: the heuristic's ways, the search, and what would have to give. */
#include "plan.h"

#define SETS (1u << PLAN_EXACT)
#define NEVER_FITS 0xffff
#define HALVINGS 10 /* of the range in which a deadline is looked for */

/* --- the search ------------------------------------------------------------------------------------------------------------ */

/* The size of a partition with these tasks; NEVER_FITS: there is none. */
static uint16_t size_of(const struct plan_problem *problem, unsigned int bits)
{
	struct tpcset set = {{bits}};
	bool may_be = true;

	for (uint32_t i = 0; i < problem->count; i++)
		may_be = may_be && !(problem->tasks[i].is_alone && tpcset_has(&set, i) && (bits & (bits - 1)) != 0);
	unsigned int tpcs = may_be ? plan_size(problem, &set, 1, problem->tpcs) : 0;

	return (uint16_t)(tpcs > 0 ? tpcs : NEVER_FITS);
}

/* For each set of tasks the fewest TPCs: those of the partition that has its first task, and of the best for the rest. */
bool plan_search(struct plan *plan, const struct plan_problem *problem)
{
	uint16_t sizes[SETS], first[SETS] = {0};
	uint32_t best[SETS] = {0};
	unsigned int all = problem->count <= PLAN_EXACT ? (1u << problem->count) - 1 : 0;

	for (unsigned int bits = 1; bits <= all; bits++) {
		unsigned int lowest = bits & -bits, rest = bits ^ lowest;

		sizes[bits] = size_of(problem, bits);
		best[bits] = UINT32_MAX;
		for (unsigned int part = rest, more = 1; more; part = (part - 1) & rest) {
			uint32_t tpcs = sizes[part | lowest] + best[rest ^ part];

			more = part != 0;
			if (sizes[part | lowest] != NEVER_FITS && best[rest ^ part] != UINT32_MAX && tpcs < best[bits]) {
				best[bits] = tpcs;
				first[bits] = (uint16_t)(part | lowest);
			}
		}
	}
	*plan = (struct plan){.way = "all ways searched", .impossible = PLAN_NONE, .tpcs = best[all]};
	for (unsigned int left = all; left != 0 && best[all] != UINT32_MAX; left ^= first[left])
		plan->partitions[plan->count++] = (struct plan_partition){.tpcs = sizes[first[left]], .tasks = {{first[left]}}};
	for (uint32_t i = problem->count; i-- > 0 && all != 0;)
		plan->impossible = sizes[1u << i] == NEVER_FITS ? i : plan->impossible;
	plan->fits = plan->tpcs <= problem->tpcs;
	return all != 0 || problem->count == 0;
}

/* --- which ------------------------------------------------------------------------------------------------------------------ */

/* Where both fit, the one whose tasks are more apart; else the smaller one. */
static bool is_better(const struct plan *plan, const struct plan *than)
{
	bool fits = plan->fits && than->fits;

	return plan->fits != than->fits ? plan->fits : fits && plan->count != than->count ? plan->count > than->count : plan->tpcs < than->tpcs;
}

bool plan_make(struct plan *plan, const struct plan_problem *problem)
{
	struct plan other;

	plan_allocate(plan, problem, plan_way(0, false));
	for (unsigned int i = 1; i < PLAN_WAYS && plan->impossible == PLAN_NONE; i++) {
		plan_allocate(&other, problem, plan_way(i, false));
		if (is_better(&other, plan))
			*plan = other;
	}
	if (!plan->fits && plan->impossible == PLAN_NONE && plan_search(&other, problem) && other.tpcs < plan->tpcs)
		*plan = other;
	return plan->fits;
}

/* --- what would have to give -------------------------------------------------------------------------------------------------- */

/* Whether the plan fits if this task has another deadline, and a period as long at least; 0: if it is not there. */
static bool fits_with(const struct plan_problem *problem, uint32_t task, uint64_t deadline_ns)
{
	struct plan plan;
	struct plan_task tasks[PLAN_TASKS];
	struct plan_problem changed = *problem;

	changed.tasks = tasks;
	changed.count = 0;
	for (uint32_t i = 0; i < problem->count; i++) {
		if (i != task || deadline_ns > 0)
			tasks[changed.count++] = problem->tasks[i];
		if (i == task && deadline_ns > 0) {
			tasks[i].deadline_ns = deadline_ns;
			tasks[i].period_ns = deadline_ns > tasks[i].period_ns ? deadline_ns : tasks[i].period_ns;
		}
	}
	return plan_make(&plan, &changed);
}

/* The shortest deadline with which the plan fits, up to `limit`, with which it does. */
static uint64_t find_deadline(const struct plan_problem *problem, uint32_t task, uint64_t limit)
{
	uint64_t low = problem->tasks[task].deadline_ns, high = limit;

	for (unsigned int i = 0; i < HALVINGS; i++) {
		uint64_t middle = low + (high - low) / 2;

		if (fits_with(problem, task, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

struct plan_relief plan_relieve(const struct plan_problem *problem)
{
	struct plan_relief relief = {.task = PLAN_NONE};
	double best = 8; /* times its deadline: more is a different task */

	for (uint32_t i = 0; i < problem->count; i++) {
		uint64_t deadline = problem->tasks[i].deadline_ns, limit = (uint64_t)((double)deadline * best);

		if (!fits_with(problem, i, 0))
			continue;
		if (relief.task == PLAN_NONE)
			relief = (struct plan_relief){.task = i, .is_without = true};
		if (fits_with(problem, i, limit)) {
			uint64_t enough = find_deadline(problem, i, limit);

			best = (double)enough / (double)deadline;
			relief = (struct plan_relief){.task = i, .deadline_ns = enough};
		}
	}
	return relief;
}
