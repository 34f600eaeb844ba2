/* The heuristic. */
#include "plan.h"

/* At work. */
struct state {
	const struct plan_problem *problem;
	struct plan_rules rules;
	struct plan *plan;
	struct plan_set forbidden[PLAN_TASKS]; /* for each task, those with which it may not share a partition */
};

/* --- forbidden pairs ---------------------------------------------------------------------------------------------------- */

static void forbid(struct state *state, uint32_t a, uint32_t b)
{
	state->plan->forbidden += !plan_set_has(&state->forbidden[a], b);
	plan_set_add(&state->forbidden[a], b);
	plan_set_add(&state->forbidden[b], a);
}

/* What fails together fails with more. */
static void forbid_sets(struct state *state, const struct plan_set *a, const struct plan_set *b)
{
	for (uint32_t i = plan_set_next(a, 0); i < PLAN_TASKS; i = plan_set_next(a, i + 1)) {
		for (uint32_t j = plan_set_next(b, 0); j < PLAN_TASKS; j = plan_set_next(b, j + 1))
			forbid(state, i, j);
	}
}

static bool is_forbidden(const struct state *state, const struct plan_set *a, const struct plan_set *b)
{
	struct plan_set all = {{0}};

	for (uint32_t i = plan_set_next(a, 0); i < PLAN_TASKS; i = plan_set_next(a, i + 1))
		all = plan_set_or(&all, &state->forbidden[i]);
	return plan_sets_meet(&all, b);
}

/* --- merging (algorithm 2, definition 2) ----------------------------------------------------------------------------------- */

/* The size that two partitions would have as one; 0: that saves nothing, or there is no such size. */
static unsigned int size_of_both(const struct state *state, const struct plan_partition *a, const struct plan_partition *b)
{
	struct plan_set both = plan_set_or(&a->tasks, &b->tasks);
	unsigned int low = a->tpcs > b->tpcs ? a->tpcs : b->tpcs, high = a->tpcs + b->tpcs - 1;

	return plan_size(state->problem, &both, low, high < state->problem->tpcs ? high : state->problem->tpcs);
}

/* The second one becomes part of the first; the last takes its place. */
static void merge(struct state *state, unsigned int first, unsigned int second, unsigned int tpcs)
{
	struct plan *plan = state->plan;
	struct plan_partition *partition = &plan->partitions[first];

	plan->tpcs = plan->tpcs - partition->tpcs - plan->partitions[second].tpcs + tpcs;
	partition->tasks = plan_set_or(&partition->tasks, &plan->partitions[second].tasks);
	partition->tpcs = tpcs;
	plan->partitions[second] = plan->partitions[--plan->count];
	plan->merges++;
}

/* --- which two (algorithm 3) ------------------------------------------------------------------------------------------------ */

/* The work of two as one, in TPCs; less is better. */
static double work_of_both(const struct state *state, const struct plan_partition *a, const struct plan_partition *b)
{
	struct plan_set both = plan_set_or(&a->tasks, &b->tasks);
	unsigned int tpcs = a->tpcs + b->tpcs < state->problem->tpcs ? a->tpcs + b->tpcs : state->problem->tpcs;

	return plan_share(state->problem, &both, tpcs) * tpcs - plan_share(state->problem, &b->tasks, b->tpcs) * b->tpcs;
}

/* Merges the partition with the eligible one with which it becomes smallest; of several with the largest, which saves most. By least
 * work, as the other order goes, fewer sets fit (docs/evaluation/planning.md). */
static bool merge_by_size(struct state *state, unsigned int first)
{
	struct plan *plan = state->plan;
	unsigned int best = PLAN_TASKS, best_tpcs = 0;
	int best_saving = 0;

	for (unsigned int other = 0; other < plan->count; other++) {
		const struct plan_partition *a = &plan->partitions[first], *b = &plan->partitions[other];

		if (other == first || is_forbidden(state, &a->tasks, &b->tasks))
			continue;
		unsigned int tpcs = size_of_both(state, a, b);
		int saving = (int)(a->tpcs + b->tpcs) - (int)tpcs;

		if (tpcs == 0) {
			forbid_sets(state, &a->tasks, &b->tasks);
		} else if (best == PLAN_TASKS || tpcs < best_tpcs || (tpcs == best_tpcs && saving > best_saving)) {
			best = other;
			best_tpcs = tpcs;
			best_saving = saving;
		}
	}
	if (best < PLAN_TASKS)
		merge(state, first, best, best_tpcs);
	return best < PLAN_TASKS;
}

/* With the first of the eligible ones, by rising work, with which it can be merged. */
static bool merge_by_work(struct state *state, unsigned int first)
{
	struct plan *plan = state->plan;
	unsigned int best, tpcs = 0;

	do {
		double least = 0;

		best = PLAN_TASKS;
		for (unsigned int other = 0; other < plan->count; other++) {
			const struct plan_partition *a = &plan->partitions[first], *b = &plan->partitions[other];
			bool is_eligible = other != first && !is_forbidden(state, &a->tasks, &b->tasks);
			double work = is_eligible ? work_of_both(state, a, b) : 0;

			if (is_eligible && (best == PLAN_TASKS || work < least)) {
				best = other;
				least = work;
			}
		}
		tpcs = best < PLAN_TASKS ? size_of_both(state, &plan->partitions[first], &plan->partitions[best]) : 0;
		if (best < PLAN_TASKS && tpcs == 0)
			forbid_sets(state, &plan->partitions[first].tasks, &plan->partitions[best].tasks);
	} while (best < PLAN_TASKS && tpcs == 0);
	if (best < PLAN_TASKS)
		merge(state, first, best, tpcs);
	return best < PLAN_TASKS;
}

/* Partitions by falling share of their time: what is large finds a place while there are places. */
static void sort_by_share(struct state *state)
{
	struct plan *plan = state->plan;
	double shares[PLAN_TASKS];

	for (unsigned int i = 0; i < plan->count; i++) {
		struct plan_partition moved = plan->partitions[i];
		double share = plan_share(state->problem, &moved.tasks, moved.tpcs) * moved.tpcs;
		unsigned int place = i;

		for (; place > 0 && shares[place - 1] < share; place--) {
			shares[place] = shares[place - 1];
			plan->partitions[place] = plan->partitions[place - 1];
		}
		shares[place] = share;
		plan->partitions[place] = moved;
	}
}

/* Merges two; false if no two can be merged. */
static bool merge_some(struct state *state)
{
	bool has_merged = false;

	sort_by_share(state);
	for (unsigned int first = 0; first < state->plan->count && !has_merged; first++)
		has_merged = state->rules.order == PLAN_SIZE ? merge_by_size(state, first) : merge_by_work(state, first);
	return has_merged;
}

/* --- the whole (algorithm 1) ------------------------------------------------------------------------------------------------ */

bool plan_is_hopeless(const struct plan_problem *problem)
{
	double sum = 0;

	for (unsigned int i = 0; i < problem->count; i++) {
		const struct plan_task *task = &problem->tasks[i];
		double least = -1;

		for (unsigned int tpcs = 1; tpcs <= problem->tpcs; tpcs++) {
			double part = (double)task->alone_ns[tpcs] / (double)task->period_ns * tpcs;

			least = least < 0 || part < least ? part : least;
		}
		sum += least;
	}
	return sum > problem->tpcs;
}

/* A partition for each task, of the smallest size (lemma 2). */
static void begin(struct state *state)
{
	struct plan *plan = state->plan;
	const struct plan_problem *problem = state->problem;

	*plan = (struct plan){.impossible = PLAN_NONE, .count = problem->count};
	for (uint32_t i = 0; i < problem->count; i++) {
		struct plan_partition *partition = &plan->partitions[i];

		plan_set_add(&partition->tasks, i);
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
	struct state state = {.problem = problem, .rules = rules, .plan = plan};
	bool can = true;

	begin(&state);
	if (plan->impossible == PLAN_NONE) {
		forbid_pairs(&state);
		while (can && (rules.goes_on || plan->tpcs > problem->tpcs))
			can = merge_some(&state);
	}
	plan->fits = plan->impossible == PLAN_NONE && plan->tpcs <= problem->tpcs;
	return plan->fits;
}
