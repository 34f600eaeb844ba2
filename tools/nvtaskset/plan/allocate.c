/* The heuristic. */
#include "plan.h"

#include "base/extremes.h"

#include <math.h>

/* At work. */
struct state {
	const struct plan_problem *problem;
	struct plan_rules rules;
	struct plan *plan;
};

/* What fails together fails with more. */
static void forbid(struct plan *plan, struct plan_partition *a, struct plan_partition *b)
{
	a->forbidden = tpcset_or(&a->forbidden, &b->tasks);
	b->forbidden = tpcset_or(&b->forbidden, &a->tasks);
	plan->forbidden += tpcset_count(&a->tasks) * tpcset_count(&b->tasks);
}

/* --- merging (algorithm 2, definition 2) ----------------------------------------------------------------------------------- */

/* The size that two partitions would have as one; 0: that saves nothing, or there is no such size. */
static unsigned int size_of_both(const struct state *state, const struct plan_partition *a, const struct plan_partition *b)
{
	struct tpcset both = tpcset_or(&a->tasks, &b->tasks);
	unsigned int low = a->tpcs > b->tpcs ? a->tpcs : b->tpcs, high = a->tpcs + b->tpcs - 1;

	return plan_size(state->problem, &both, low, high < state->problem->tpcs ? high : state->problem->tpcs);
}

/* The second one becomes part of the first, if that saves something; the last takes its place. */
static bool merge(struct state *state, struct plan_partition *first, struct plan_partition *second)
{
	struct plan *plan = state->plan;
	unsigned int tpcs = size_of_both(state, first, second);

	if (tpcs == 0) {
		forbid(plan, first, second);
		return false;
	}
	plan->tpcs = plan->tpcs - first->tpcs - second->tpcs + tpcs;
	*first = (struct plan_partition){tpcs, tpcset_or(&first->tasks, &second->tasks), tpcset_or(&first->forbidden, &second->forbidden), 0};
	*second = plan->partitions[--plan->count];
	plan->merges++;
	return true;
}

/* --- which two (algorithm 3) ------------------------------------------------------------------------------------------------ */

/* In TPCs. */
static double work_of(const struct state *state, const struct tpcset *set, unsigned int tpcs)
{
	struct schedule_task tasks[PLAN_TASKS];
	unsigned int count = plan_schedule(state->problem, set, tpcs, tasks);
	double share = 0;

	for (unsigned int i = 0; i < count; i++)
		share += (double)tasks[i].time_ns / (double)tasks[i].period_ns;
	return share * tpcs;
}

/* What it costs to make one of two; less is better. By work: what is to be done, in TPCs. By size: the TPCs; of as many, with the
 * larger partition, which saves more: by least work, fewer sets fit (docs/evaluation/planning.md). INFINITY: they cannot. */
static double cost_of_both(const struct state *state, const struct plan_partition *a, const struct plan_partition *b)
{
	unsigned int sum = a->tpcs + b->tpcs, tpcs = sum < state->problem->tpcs ? sum : state->problem->tpcs;
	struct tpcset both = tpcset_or(&a->tasks, &b->tasks);

	if (state->rules.order == PLAN_WORK)
		return work_of(state, &both, tpcs) - work_of(state, &b->tasks, b->tpcs);
	tpcs = size_of_both(state, a, b);
	return tpcs > 0 ? tpcs - (sum - tpcs) / (2.0 * PLAN_TPCS) : INFINITY;
}

/* The eligible partition that costs least together with this one; NULL: there is none. */
static struct plan_partition *find_best(struct state *state, struct plan_partition *first)
{
	struct plan_partition *best = NULL, *end = state->plan->partitions + state->plan->count;
	double least = INFINITY;

	for (struct plan_partition *other = state->plan->partitions; other < end; other++) {
		if (other == first || tpcset_overlap(&first->forbidden, &other->tasks))
			continue;
		double cost = cost_of_both(state, first, other);

		if (cost == INFINITY)
			forbid(state->plan, first, other);
		best = cost < least ? other : best;
		least = min_double(cost, least);
	}
	return best;
}

/* Merges two, if two can be merged. What is large is the first of them: it finds a place while there are places. */
static bool merge_some(struct state *state)
{
	struct plan_partition *partitions = state->plan->partitions;
	bool has_merged = false;

	for (unsigned int i = 0; i < state->plan->count; i++) {
		struct plan_partition moved = partitions[i];
		unsigned int place = i;

		moved.work = work_of(state, &moved.tasks, moved.tpcs);
		for (; place > 0 && partitions[place - 1].work < moved.work; place--)
			partitions[place] = partitions[place - 1];
		partitions[place] = moved;
	}
	for (unsigned int first = 0; first < state->plan->count && !has_merged; first++) {
		struct plan_partition *best;

		while (!has_merged && (best = find_best(state, &partitions[first])) != NULL)
			has_merged = merge(state, &partitions[first], best);
	}
	return has_merged;
}

/* --- the whole (algorithm 1) ------------------------------------------------------------------------------------------------ */

/* A partition for each task, of the smallest size (lemma 2). */
static void begin(struct plan *plan, const struct plan_problem *problem)
{
	*plan = (struct plan){.impossible = PLAN_NONE, .count = problem->count};
	for (uint32_t i = problem->count; i-- > 0;) {
		struct plan_partition *partition = &plan->partitions[i];

		tpcset_add(&partition->tasks, i);
		partition->tpcs = plan_size(problem, &partition->tasks, 1, problem->tpcs);
		plan->tpcs += partition->tpcs;
		plan->impossible = partition->tpcs == 0 ? i : plan->impossible;
	}
}

/* All pairs that cannot share. */
static void test_pairs(const struct state *state)
{
	struct plan_partition *first = state->plan->partitions, *end = first + state->plan->count;

	for (struct plan_partition *a = first; a < end; a++) {
		for (struct plan_partition *b = a + 1; b < end; b++) {
			if (size_of_both(state, a, b) == 0)
				forbid(state->plan, a, b);
		}
	}
}

bool plan_allocate(struct plan *plan, const struct plan_problem *problem, struct plan_rules rules)
{
	static const char *const ways[2][2] = {{"by size", "by size, pairs tested first"}, {"by work", "by work, pairs tested first"}};
	struct state state = {.problem = problem, .rules = rules, .plan = plan};

	begin(plan, problem);
	plan->way = ways[rules.order][rules.tests_pairs];
	if (plan->impossible == PLAN_NONE) {
		if (rules.tests_pairs)
			test_pairs(&state);
		while ((rules.goes_on || plan->tpcs > problem->tpcs) && merge_some(&state))
			;
	}
	plan->fits = plan->impossible == PLAN_NONE && plan->tpcs <= problem->tpcs;
	return plan->fits;
}

/* Where both fit, the one whose tasks are more apart; else the smaller one. */
static bool is_better(const struct plan *plan, const struct plan *than, bool goes_on)
{
	bool is_apart = plan->fits && than->fits && !goes_on && plan->count != than->count;

	return is_apart ? plan->count > than->count : plan->tpcs < than->tpcs;
}

bool plan_heuristic(struct plan *plan, const struct plan_problem *problem, bool goes_on)
{
	struct plan other;

	for (unsigned int way = 0; way < 4; way++) {
		plan_allocate(&other, problem, (struct plan_rules){way < 2 ? PLAN_SIZE : PLAN_WORK, way % 2, goes_on});
		if (way == 0 || is_better(&other, plan, goes_on))
			*plan = other;
	}
	return plan->fits;
}
