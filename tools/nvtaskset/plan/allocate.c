/* The heuristic. */
#include "plan.h"

#include "base/extremes.h"

#include <math.h>

/* The size of two partitions as one (definition 2); 0: saves nothing, or no size fits. Then the tasks of one may not
 * share a partition with the tasks of the other: tasks that fail together fail with more tasks. */
static unsigned int size_of_both(struct plan *plan, struct plan_partition *a, struct plan_partition *b)
{
	struct tpcset both = tpcset_or(&a->tasks, &b->tasks);
	unsigned int low = a->tpcs > b->tpcs ? a->tpcs : b->tpcs, high = a->tpcs + b->tpcs - 1,
		     most = plan->problem->tpcs;
	unsigned int tpcs = plan_size(plan->problem, &both, low, high < most ? high : most);

	if (tpcs == 0) {
		a->forbidden = tpcset_or(&a->forbidden, &b->tasks);
		b->forbidden = tpcset_or(&b->forbidden, &a->tasks);
		plan->forbidden += tpcset_count(&a->tasks) * tpcset_count(&b->tasks);
	}
	return tpcs;
}

/* The second partition becomes part of the first, if this saves TPCs (algorithm 2). The last takes its place. */
static bool merge(struct plan *plan, struct plan_partition *first, struct plan_partition *second)
{
	unsigned int tpcs = size_of_both(plan, first, second);

	if (tpcs == 0)
		return false;
	plan->tpcs = plan->tpcs - first->tpcs - second->tpcs + tpcs;
	*first = (struct plan_partition){tpcs, tpcset_or(&first->tasks, &second->tasks),
	                                 tpcset_or(&first->forbidden, &second->forbidden), 0};
	*second = plan->partitions[--plan->count];
	plan->merges++;
	return true;
}

/* In TPCs. */
static double work_of(const struct plan *plan, const struct tpcset *set, unsigned int tpcs)
{
	struct schedule_task tasks[PLAN_TASKS];
	unsigned int count = plan_schedule(plan->problem, set, tpcs, tasks);
	double share = 0;

	for (unsigned int i = 0; i < count; i++)
		share += (double)tasks[i].time_ns / (double)tasks[i].period_ns;
	return share * tpcs;
}

/* The cost of a merge; less is better. By work: the work, in TPCs. By size: the TPCs; between equal sums, the larger
 * partition, which saves more. By least work, fewer sets fit (docs/evaluation/planning.md). INFINITY: no merge. */
static double cost_of_both(struct plan *plan, struct plan_partition *a, struct plan_partition *b)
{
	unsigned int sum = a->tpcs + b->tpcs, tpcs = sum < plan->problem->tpcs ? sum : plan->problem->tpcs;
	struct tpcset both = tpcset_or(&a->tasks, &b->tasks);

	if (plan->rules.by_work)
		return work_of(plan, &both, tpcs) - work_of(plan, &b->tasks, b->tpcs);
	tpcs = size_of_both(plan, a, b);
	return tpcs > 0 ? tpcs - (sum - tpcs) / (2.0 * PLAN_TPCS) : INFINITY;
}

/* The eligible partition with the cheapest merge (algorithm 3), or NULL. */
static struct plan_partition *find_best(struct plan *plan, struct plan_partition *first)
{
	struct plan_partition *best = NULL;
	double least = INFINITY;

	for (struct plan_partition *other = plan->partitions; other < plan->partitions + plan->count; other++) {
		bool may_share = other != first && !tpcset_overlap(&first->forbidden, &other->tasks);
		double cost = may_share ? cost_of_both(plan, first, other) : INFINITY;

		best = cost < least ? other : best;
		least = min_double(cost, least);
	}
	return best;
}

/* Merges two partitions if possible. Large partitions come first, and find a place while there are places. */
static bool merge_some(struct plan *plan)
{
	struct plan_partition *partitions = plan->partitions, *best;
	bool has_merged = false;

	for (unsigned int i = 0; i < plan->count; i++) {
		struct plan_partition moved = partitions[i];
		unsigned int place = i;

		moved.work = work_of(plan, &moved.tasks, moved.tpcs);
		for (; place > 0 && partitions[place - 1].work < moved.work; place--)
			partitions[place] = partitions[place - 1];
		partitions[place] = moved;
	}
	for (unsigned int first = 0; first < plan->count && !has_merged; first++) {
		while (!has_merged && (best = find_best(plan, &partitions[first])) != NULL)
			has_merged = merge(plan, &partitions[first], best);
	}
	return has_merged;
}

/* At first, each task has a partition of the smallest size (lemma 2). */
bool plan_allocate(struct plan *plan, const struct plan_problem *problem, struct plan_rules rules)
{
	static const char *const ways[2][2] = {{"by size", "by size, pairs tested first"},
	                                       {"by work", "by work, pairs tested first"}};

	*plan = (struct plan){.problem = problem, .rules = rules, .way = ways[rules.by_work][rules.tests_pairs],
	                      .impossible = PLAN_NONE, .count = problem->count};
	for (uint32_t i = problem->count; i-- > 0;) {
		struct plan_partition *partition = &plan->partitions[i];

		tpcset_add(&partition->tasks, i);
		partition->tpcs = plan_size(problem, &partition->tasks, 1, problem->tpcs);
		plan->tpcs += partition->tpcs;
		plan->impossible = partition->tpcs == 0 ? i : plan->impossible;
	}
	bool is_possible = plan->impossible == PLAN_NONE;

	for (unsigned int a = 0; a < plan->count && is_possible && rules.tests_pairs; a++) {
		for (unsigned int b = a + 1; b < plan->count; b++)
			size_of_both(plan, &plan->partitions[a], &plan->partitions[b]);
	}
	while (is_possible && (rules.goes_on || plan->tpcs > problem->tpcs) && merge_some(plan))
		;
	plan->fits = is_possible && plan->tpcs <= problem->tpcs;
	return plan->fits;
}

/* If both fit, the plan with tasks further apart; else the smaller plan. */
static bool is_better(const struct plan *plan, const struct plan *than)
{
	bool is_apart = plan->fits && than->fits && !plan->rules.goes_on && plan->count != than->count;

	return is_apart ? plan->count > than->count : plan->tpcs < than->tpcs;
}

bool plan_heuristic(struct plan *plan, const struct plan_problem *problem, bool goes_on)
{
	struct plan other;

	for (unsigned int way = 0; way < 4; way++) {
		plan_allocate(&other, problem, (struct plan_rules){way / 2, way % 2, goes_on});
		if (way == 0 || is_better(&other, plan))
			*plan = other;
	}
	return plan->fits;
}
