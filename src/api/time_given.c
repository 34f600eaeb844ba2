#include "api/time_given.h"

#include "mps/reach.h"

#include <inttypes.h>

int api_want_quota(struct segment_revision *wanted, uint32_t run_us, uint32_t period_us, struct error *error)
{
	if (period_us < SEGMENT_QUOTA_PERIOD_MIN_US || period_us > SEGMENT_QUOTA_PERIOD_MAX_US ||
	    run_us < SEGMENT_QUOTA_RUN_MIN_US)
		return error_set_code(
		    error, NVTASKSET_ERROR_INVALID,
		    "a quota of %u us in each %u us: the period must be 1 ms to 10 s, and 1 ms of it or more", run_us,
		    period_us);
	*wanted = (struct segment_revision){.quota = {.run_us = run_us, .period_us = period_us}};
	return 0;
}

int api_want_priority(struct segment_revision *wanted, unsigned int priority, struct error *error)
{
	if (priority > SEGMENT_PRIORITY_MAX)
		return error_set_code(error, NVTASKSET_ERROR_INVALID, "priority %u: must be 0-%d", priority,
		                      SEGMENT_PRIORITY_MAX);
	*wanted = (struct segment_revision){.rank.priority = segment_rank_of_priority(priority)};
	return 0;
}

int api_want_weight(struct segment_revision *wanted, unsigned int weight, struct error *error)
{
	if (weight < 1 || weight > SEGMENT_WEIGHT_MAX)
		return error_set_code(error, NVTASKSET_ERROR_INVALID, "weight %u: must be 1-%d", weight,
		                      SEGMENT_WEIGHT_MAX);
	*wanted = (struct segment_revision){.rank.weight = (uint16_t)weight};
	return 0;
}

int api_want_lend(struct segment_revision *wanted, uint32_t limit_us, struct error *error)
{
	if (limit_us != 0 && (limit_us < SEGMENT_LEND_MIN_US || limit_us > SEGMENT_LEND_MAX_US))
		return error_set_code(error, NVTASKSET_ERROR_INVALID, "a limit of %u us: must be 100-1000000, or 0",
		                      limit_us);
	*wanted = (struct segment_revision){.lending.lend_us = limit_us != 0 ? limit_us : SEGMENT_LEND_OFF};
	return 0;
}

int api_want_borrow(struct segment_revision *wanted, const struct nvtaskset_set *set, struct error *error)
{
	*wanted = (struct segment_revision){.lending.borrows = set ? SEGMENT_BORROW_SET : SEGMENT_BORROW_OFF};
	if (set)
		wanted->lending.borrow = inside(set);
	if (set && tpcset_is_empty(&wanted->lending.borrow))
		return error_set_code(error, NVTASKSET_ERROR_INVALID, "nothing can be borrowed of no TPC");
	return 0;
}

int api_want_memory(struct segment_revision *wanted, uint64_t limit, struct error *error)
{
	if (limit > INT64_MAX)
		return error_set_code(error, NVTASKSET_ERROR_INVALID,
		                      "a limit of %" PRIu64 " bytes of memory: no GPU has so many", limit);
	*wanted = (struct segment_revision){.memory = limit > 0 ? limit : SEGMENT_MEMORY_OFF};
	return 0;
}

int api_fill_memory(struct nvtaskset_memory *public, const struct segment_memory_use *use, struct error *error)
{
	const struct nvtaskset_memory filled = {.limit = use->limit, .used = use->used, .together = use->together};

	return api_fill(public, &filled, sizeof filled, error);
}

/* --- possible settings -------------------------------------------------------------------------------------------- */

int api_check_time(pid_t pid, const struct segment_revision *wanted, struct error *error)
{
	bool wants_weight = wanted->rank.weight > 0, wants_lending = segment_shares(wanted),
	     is_client = (wants_weight || wants_lending) && mps_reaches(pid);
	const char *why = NULL;

	if (wants_weight && is_client)
		why = "--weight: clients of MPS take no turns that could be shared; start it with --mps off, or give "
		      "it a partition's size";
	else if (wants_lending && !is_client && wanted->lending.borrows > 0)
		why = "--borrow: TPCs are lent under MPS only, and this program takes turns; start it with --mps on";
	else if (wants_lending && !is_client)
		why = "--lend: TPCs are lent under MPS only, and this program takes turns; start it with --mps on";
	return why ? error_set_code(error, NVTASKSET_ERROR_INVALID, "pid %d: %s", (int)pid, why) : 0;
}

/* --- current settings --------------------------------------------------------------------------------------------- */

_Static_assert(SEGMENT_TIME_NONE == 0, "all zero says nothing");

/* A process without settings has no results. */
static struct segment_time said(bool is_given, const struct api_given *given)
{
	return is_given ? given->time : (struct segment_time){.state = SEGMENT_TIME_NONE};
}

int api_fill_quota(struct nvtaskset_quota *quota, const struct api_given *given, struct error *error)
{
	struct segment_quota limit = given->revision.quota;
	bool is_given = limit.period_us > 0;
	struct segment_time use = said(is_given, given);
	struct nvtaskset_quota filled = {.run_us = is_given ? limit.run_us : 0,
	                                 .period_us = limit.period_us,
	                                 .in_force = segment_time_is_in_force(use.state),
	                                 .state = use.state,
	                                 .present_us = use.present_us,
	                                 .aside_us = use.aside_us,
	                                 .bounded = use.bounded,
	                                 .held = use.held};

	return api_fill(quota, &filled, sizeof filled, error);
}

int api_fill_rank(struct nvtaskset_rank *public, const struct api_given *given, struct error *error)
{
	struct segment_rank rank = given->revision.rank;
	struct segment_time use = said(segment_rank_is_given(rank), given);
	struct nvtaskset_rank filled = {.priority = rank.priority > 0 ? (int32_t)segment_rank_priority(rank) : -1,
	                                .weight = rank.weight > 0 ? segment_rank_weight(rank) : 0,
	                                .in_force = segment_time_is_in_force(use.state),
	                                .state = use.state,
	                                .present_us = use.present_us,
	                                .aside_us = use.aside_us,
	                                .bounded = use.bounded,
	                                .held = use.held};

	return api_fill(public, &filled, sizeof filled, error);
}

int api_fill_lending(struct nvtaskset_lending *public, const struct api_given *given, struct error *error)
{
	const struct segment_lending *lending = &given->revision.lending;
	struct segment_time use = said(segment_shares(&given->revision), given);
	struct nvtaskset_lending filled = {.lend_us = segment_lends_us(lending),
	                                   .borrows = segment_borrows(lending),
	                                   .borrow = outside(&lending->borrow),
	                                   .borrowed = outside(&given->borrowed.tpcs),
	                                   .borrowed_tpc_us = given->borrowed.tpc_us,
	                                   .overruns = given->borrowed.overruns,
	                                   .in_force = segment_time_is_in_force(use.state),
	                                   .state = use.state};

	return api_fill(public, &filled, sizeof filled, error);
}
