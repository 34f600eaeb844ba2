#include "cli/actions.h"

#include "activity.h"
#include "base/extremes.h"
#include "cells.h"
#include "cli/gpus.h"
#include "cli/time_given.h"
#include "groups.h"
#include "json.h"
#include "mps/reach.h"
#include "terminal/watch.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- the table --------------------------------------------------------------------------------------------------- */

static const struct column list_columns[] = {
	{.heading = "PID", .what = CELL_PID, .is_number = true},
	{.heading = "USER", .what = CELL_USER},
	{.heading = "GPU", .what = CELL_GPU},
	{.heading = "TPCS", .what = CELL_TPCS},
	{.heading = "GPCS", .what = CELL_GPCS},
	{.heading = "LAUNCHES", .what = CELL_NUMBER + NUMBER_LAUNCHES, .is_number = true},
	{.heading = "ENDED", .what = CELL_NUMBER + NUMBER_ENDED, .is_number = true},
	{.heading = "IN-FLIGHT", .what = CELL_NUMBER + NUMBER_IN_FLIGHT, .is_number = true},
	{.heading = "BUSY%", .what = CELL_BUSY, .is_number = true},
	{.heading = "UPLOADS", .what = CELL_NUMBER + NUMBER_UPLOADS, .is_number = true},
	{.heading = "RESTRICTED", .what = CELL_NUMBER + NUMBER_RESTRICTED, .is_number = true},
	{.heading = "OUTSIDE", .what = CELL_NUMBER + NUMBER_OUTSIDE, .is_number = true},
	{.heading = "MEMORY", .what = CELL_MEMORY, .is_number = true, .may_be_missing = true},
	{.heading = "COMMAND", .what = CELL_COMMAND},
};

#define COLUMN_COUNT (sizeof list_columns / sizeof list_columns[0])

/* --- notes below a program --------------------------------------------------------------------------------------- */

static void print_reasons(const struct process *process, FILE *page)
{
	if (process->not_in_force)
		fprintf(page, "        %s\n", process->not_in_force);
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		uint64_t times = process->counters.reasons[reason];

		if (times > 0)
			fprintf(page, "        %" PRIu64 " %s: %s\n", times, times == 1 ? "time" : "times",
			        segment_reason_text((enum segment_reason)reason));
	}
}

static void print_time(const struct process *process, FILE *page)
{
	char given[TIME_LINE], use[TIME_USE];

	if (revision_gives_any(&process->revision, SETTING_MEMORY))
		fprintf(page, "        %s%s\n", time_format_all(&process->revision, given),
		        time_describe(&process->revision, &process->time, use));
}

static void print_lending(const struct process *process, FILE *page)
{
	const struct segment_borrowed *borrowed = &process->borrowed;
	char text[TPCSET_TEXT];

	if (!tpcset_is_empty(&process->lent))
		fprintf(page, "        others use TPCs %s now\n", tpcset_format_list(&process->lent, text));
	if (!tpcset_is_empty(&borrowed->tpcs))
		fprintf(page, "        borrows TPCs %s now\n", tpcset_format_list(&borrowed->tpcs, text));
	if (borrowed->tpc_us > 0)
		fprintf(page, "        borrowed %.1f TPC-seconds; %" PRIu64 " launches took longer than LIMIT there\n",
		        (double)borrowed->tpc_us / 1e6, borrowed->overruns);
}

static void print_unannounced(const struct process *process, FILE *page)
{
	uint64_t kernels = 0;

	for (unsigned int i = 0; i < process->counts.count; i++)
		kernels = sum_u64(kernels, process->counts.gpus[i].unheard);
	if (kernels > 0)
		fprintf(page, "        %" PRIu64 " %s counted when %s ended: graphs with conditional nodes, or that "
		                                 "kernels launch\n",
		        kernels, kernels == 1 ? "kernel" : "kernels", kernels == 1 ? "it" : "they");
}

static void print_gaps(const struct process *process, FILE *page)
{
	uint32_t gaps = process->counts.gaps;

	for (unsigned int i = 0; i < process->counts.count; i++)
		gaps |= process->counts.gpus[i].gaps;
	for (int gap = 0; gap < COUNTS_GAP_COUNT; gap++) {
		if (gaps >> gap & 1)
			fprintf(page, "        kernels are not all counted: %s\n",
			        counts_gap_text((enum counts_gap)gap));
	}
}

/* Under MPS, with fewer connections than streams. */
static void print_connections(const struct process *process, FILE *page)
{
	const char *advice = "streams that wait for each other may hang (--connections)";
	unsigned int connections = process->streams > 1 ? mps_connections(process->pid) : 0;

	if (connections > 0 && process->streams > connections)
		fprintf(page, "        %" PRIu32 " streams and %u %s to MPS: %s\n", process->streams, connections,
		        connections == 1 ? "connection" : "connections", advice);
}

static void print_workload(const struct process *process, FILE *page)
{
	char text[WORKLOAD_TEXT];

	if (workload_format(&process->workload, text)[0] != '\0')
		fprintf(page, "        in %s\n", text);
}

static void print_notes(const struct process *process, FILE *page)
{
	print_workload(process, page);
	print_time(process, page);
	print_lending(process, page);
	if (process->memory_count > 0 && process->memory[0].use.has_gap)
		fprintf(page, "        memory: " SEGMENT_MEMORY_GAP "\n");
	print_reasons(process, page);
	print_unannounced(process, page);
	print_gaps(process, page);
	print_connections(process, page);
}

/* "processes 12, 13 and 14 share TPCs 4-7 of GPU 0" */
static void print_shared(const struct activities *activities, FILE *page, const struct shared *shared)
{
	const struct processes *processes = &activities->processes;
	char list[TPCSET_TEXT], label[PCI_ADDRESS_TEXT];
	const char *separator = "processes ";
	pid_t last = 0;

	for (size_t i = 0; i < processes->count; i++) {
		const struct process *process = &processes->list[i];

		if (process_shares(process, shared) && last) {
			fprintf(page, "%s%d", separator, (int)last);
			separator = ", ";
		}
		last = process_shares(process, shared) ? process->pid : last;
	}
	fprintf(page, " and %d share TPCs %s of GPU %s\n", (int)last, tpcset_format_list(&shared->tpcs, list),
	        gpus_label(shared->gpu, activities->gpus, label));
}

/* ------------------------------------------------------------------------------------------------------------------ */

#define SAMPLE_SECONDS 0.1

struct subject {
	struct topology_list gpus;
	struct activities activities;
	bool json, again;
};

/* One look; with --busy a second look one sample later. */
static int take_looks(struct subject *subject, struct error *error)
{
	const struct meanwhile meanwhile = {.act = activities_keep_up, .context = &subject->activities,
	                                    .every_ms = MONITOR_TAKE_MS};
	int64_t until = watch_event_due_after(watch_event_now(), SAMPLE_SECONDS);
	int result = activities_look(&subject->activities, &subject->gpus, error);

	if (result < 0 || !subject->activities.measures_times)
		return result;
	result = watch_wait_until(until, &meanwhile, error);
	return result == 0 ? activities_look(&subject->activities, &subject->gpus, error) : -1;
}

/* The notes about a program follow its last row. */
static void print_rows(const struct activities *activities, const struct terminal *terminal, FILE *page)
{
	struct column columns[COLUMN_COUNT];
	struct table table = {.columns = columns, .items = activities->list, .item_size = sizeof activities->list[0],
	                      .item_count = activities->count, .cell = cell_of_row, .utf8 = terminal->utf8};

	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		if (list_columns[i].what != CELL_BUSY || activities->measures_times)
			columns[table.column_count++] = list_columns[i];
	}
	table_fit(&table, terminal->columns);
	table_print_headings(&table, COLUMNS_MAX, NULL, page);
	putc('\n', page);
	for (size_t i = 0; i < activities->count; i++) {
		const struct row *row = &activities->list[i];

		table_print_row(&table, i, page);
		putc('\n', page);
		if (i + 1 == activities->count || row[1].process != row->process)
			print_notes(row->process, page);
	}
}

static void print_all(const struct activities *activities, const struct groups *groups, const struct terminal *terminal,
                      FILE *page)
{
	const struct processes *processes = &activities->processes;

	print_rows(activities, terminal, page);
	for (size_t i = 0; i < processes->shared_count; i++) {
		if (!groups_explain(processes, &processes->shared[i]))
			print_shared(activities, page, &processes->shared[i]);
	}
	groups_print(groups, page);
	fputs(processes_note(processes, activities->count == 0), page);
}

static int update(void *context, struct error *error)
{
	struct subject *subject = context;
	int result = take_looks(subject, error);

	return result == 0 ? processes_find_shared(&subject->activities.processes, error) : -1;
}

static int draw_list(void *context, const struct terminal *terminal, FILE *page, struct error *error)
{
	const struct subject *subject = context;
	struct groups groups = {.count = 0};
	int result = groups_sum(&groups, &subject->activities, error);

	if (result == 0 && subject->json)
		result = json_write(json_list(&subject->activities, &groups), subject->again, page, error);
	else if (result == 0)
		print_all(&subject->activities, &groups, terminal, page);
	free(groups.list);
	return result;
}

int action_list(const struct options *options, struct error *error)
{
	static struct subject subject; /* large */
	struct watch list = {.subject = &subject, .update = update, .draw = draw_list, .is_data = options->json};
	struct error why;

	subject.activities.measures_times = options->busy;
	subject.json = options->json;
	subject.again = options->watch_seconds > 0;
	/* Without topologies, partitions can still be listed: the bus id names the GPU. */
	if (topology_load_kept(&subject.gpus, &why) < 0) {
		subject.gpus.count = 0;
		fprintf(stderr, "nvtaskset: %s; GPCs are not shown\n", why.reason);
	}
	int result = watch(&list, options->watch_seconds, !subject.again, error);

	activities_free(&subject.activities);
	return result;
}
