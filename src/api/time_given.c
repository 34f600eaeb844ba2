#include "api/time_given.h"

#include "mps/reach.h"

#include <stdarg.h>
#include <stdio.h>

int api_want(struct segment_revision *wanted, enum setting setting, struct error *error, const char *format, ...)
{
	char text[SETTING_TEXT];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof text, format, values);
	va_end(values);
	*wanted = (struct segment_revision){.count = 0};
	int result = setting_parse(wanted, setting, text, SETTING_PLAIN, error);

	if (result < 0 && error)
		error_reword(error, "%s %.40s: %.200s", setting_name(setting), text, error->reason);
	return result < 0 ? api_failed((struct nvtaskset_error *)error, NVTASKSET_ERROR_INVALID) : 0;
}

const char *api_borrow(const struct nvtaskset_set *set, char text[SETTING_TEXT])
{
	const struct tpcset inner = set ? inside(set) : (struct tpcset){{0}};

	return !set ? "" : tpcset_is_empty(&inner) ? "none" : tpcset_format_list(&inner, text);
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
