/* The heuristic. */
#include "plan.h"

#include <math.h>

/* At work. */
struct state {
	const struct plan_problem *problem;
	struct plan_rules rules;
	struct plan *plan;
	struct tpcset forbidden[PLAN_TASKS]; /* for each task, those with which it may not share a partition */
};

/* --- forbidden pairs ---------------------------------------------------------------------------------------------------- */

static void forbid(struct state *state, uint32_t a, uint32_t b)
{
	state->plan->forbidden += !tpcset_has(&state->forbidden[a], b);
	tpcset_add(&state->forbidden[a], b);
	tpcset_add(&state->forbidden[b], a);
}

/* What fails together fails with more. */
static void forbid_sets(struct state *state, const struct tpcset *a, const struct tpcset *b)
{
	for (uint32_t i = tpcset_next(a, 0); i < PLAN_TASKS; i = tpcset_next(a, i + 1)) {
		for (uint32_t j = tpcset_next(b, 0); j < PLAN_TASKS; j = tpcset_next(b, j + 1))
			forbid(state, i, j);
	}
}

static bool is_forbidden(const struct state *state, const struct tpcset *a, const struct tpcset *b)
{
	struct tpcset all = {{0}};

	for (uint32_t i = tpcset_next(a, 0); i < PLAN_TASKS; i = tpcset_next(a, i + 1))
		all = tpcset_or(&all, &state->forbidden[i]);
	return tpcset_overlap(&all, b);
}

/* --- merging (algorithm 2, definition 2) ----------------------------------------------------------------------------------- */

/* The size that two partitions would have as one; 0: that saves nothing, or there is no such size. */
static unsigned int size_of_both(const struct state *state, const struct plan_partition *a, const struct plan_partition *b)
{
	struct tpcset both = tpcset_or(&a->tasks, &b->tasks);
	unsigned int low = a->tpcs > b->tpcs ? a->tpcs : b->tpcs, high = a->tpcs + b->tpcs - 1;

	return plan_size(state->problem, &both, low, high < state->problem->tpcs ? high : state->problem->tpcs);
}

/* The second one becomes part of the first; the last takes its place. */
static void merge(struct state *state, unsigned int first, unsigned int second, unsigned int tpcs)
{
	struct plan *plan = state->plan;
	struct plan_partition *partition = &plan->partitions[first];

	plan->tpcs = plan->tpcs - partition->tpcs - plan->partitions[second].tpcs + tpcs;
	partition->tasks = tpcset_or(&partition->tasks, &plan->partitions[second].tasks);
	partition->tpcs = tpcs;
	plan->partitions[second] = plan->partitions[--plan->count];
	plan->merges++;
}

/* --- which two (algorithm 3) ------------------------------------------------------------------------------------------------ */

/* In TPCs. */
static double work_of(const struct state *state, const struct tpcset *set, unsigned int tpcs)
{
	struct schedule_task tasks[PLAN_TASKS];
	uint32_t places[PLAN_TASKS];
	unsigned int count = plan_schedule(state->problem, set, tpcs, tasks, places);
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

/* The eligible partition that costs least together with this one; PLAN_TASKS: there is none. */
static unsigned int find_best(struct state *state, unsigned int first)
{
	struct plan *plan = state->plan;
	unsigned int best = PLAN_TASKS;
	double least = INFINITY;

	for (unsigned int other = 0; other < plan->count; other++) {
		const struct plan_partition *a = &plan->partitions[first], *b = &plan->partitions[other];

		if (other == first || is_forbidden(state, &a->tasks, &b->tasks))
			continue;
		double cost = cost_of_both(state, a, b);

		if (cost == INFINITY)
			forbid_sets(state, &a->tasks, &b->tasks);
		best = cost < least ? other : best;
		least = cost < least ? cost : least;
	}
	return best;
}

/* Merges a partition with the best one with which it can be. */
static bool merge_with_best(struct state *state, unsigned int first)
{
	struct plan_partition *partitions = state->plan->partitions;
	unsigned int best, tpcs = 0;

	while (tpcs == 0 && (best = find_best(state, first)) < PLAN_TASKS) {
		tpcs = size_of_both(state, &partitions[first], &partitions[best]);
		if (tpcs > 0)
			merge(state, first, best, tpcs);
		else
			forbid_sets(state, &partitions[first].tasks, &partitions[best].tasks);
	}
	return tpcs > 0;
}

/* Partitions by falling work: what is large finds a place while there are places. */
static void sort_by_work(struct state *state)
{
	struct plan_partition *partitions = state->plan->partitions;

	for (unsigned int i = 0; i < state->plan->count; i++) {
		struct plan_partition moved = partitions[i];
		unsigned int place = i;

		moved.work = work_of(state, &moved.tasks, moved.tpcs);
		for (; place > 0 && partitions[place - 1].work < moved.work; place--)
			partitions[place] = partitions[place - 1];
		partitions[place] = moved;
	}
}

/* Merges two; false if no two can be merged. */
static bool merge_some(struct state *state)
{
	bool has_merged = false;

	sort_by_work(state);
	for (unsigned int first = 0; first < state->plan->count && !has_merged; first++)
		has_merged = merge_with_best(state, first);
	return has_merged;
}

/* --- the whole (algorithm 1) ------------------------------------------------------------------------------------------------ */

/* A partition for each task, of the smallest size (lemma 2). */
static void begin(struct state *state)
{
	struct plan *plan = state->plan;
	const struct plan_problem *problem = state->problem;

	*plan = (struct plan){.impossible = PLAN_NONE, .count = problem->count};
	for (uint32_t i = 0; i < problem->count; i++) {
		struct plan_partition *partition = &plan->partitions[i];

		tpcset_add(&partition->tasks, i);
		partition->tpcs = plan_size(problem, &partition->tasks, 1, problem->tpcs);
		plan->tpcs += partition->tpcs;
		if (partition->tpcs == 0 && plan->impossible == PLAN_NONE)
			plan->impossible = i;
	}
}

/* Those that must be alone; and all pairs that cannot share, if these are tested first. */
static void forbid_pairs(struct state *state)
{
	const struct plan_problem *problem = state->problem;
	const struct plan_partition *single = state->plan->partitions;

	for (uint32_t i = 0; i < problem->count; i++) {
		for (uint32_t j = i + 1; j < problem->count; j++) {
			if (problem->tasks[i].is_alone || problem->tasks[j].is_alone ||
			    (state->rules.tests_pairs && size_of_both(state, &single[i], &single[j]) == 0))
				forbid(state, i, j);
		}
	}
}

bool plan_allocate(struct plan *plan, const struct plan_problem *problem, struct plan_rules rules)
{
	static const char *const ways[2][2] = {{"by size", "by size, pairs tested first"}, {"by work", "by work, pairs tested first"}};
	struct state state = {.problem = problem, .rules = rules, .plan = plan};
	bool can = true;

	begin(&state);
	plan->way = ways[rules.order][rules.tests_pairs];
	if (plan->impossible == PLAN_NONE) {
		forbid_pairs(&state);
		while (can && (rules.goes_on || plan->tpcs > problem->tpcs))
			can = merge_some(&state);
	}
	plan->fits = plan->impossible == PLAN_NONE && plan->tpcs <= problem->tpcs;
	return plan->fits;
}
