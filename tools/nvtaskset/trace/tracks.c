#include "tracks.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "show/demangle.h"
#include "show/json.h"
#include "terminal/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* No process and no thread has such a number. */
#define GPU_PROCESSES UINT64_C(5000000)
#define THREADS UINT64_C(10000000)

#define FUNCTIONS 4096                 /* as many as a monitor tells apart */
#define NAMES_MOST ((size_t)64 << 20) /* functions have no names beyond */
#define NO_NAME "\"(its name is not known)\""
#define CLOCK_EXACT_NS 1000 /* a larger error is told */

static const char *const kinds[] = {[TIMES_KERNEL] = "kernel", [TIMES_GRAPH] = "graph", [TIMES_NODE] = "node"};

struct lane {
	uint64_t thread; /* 0: free */
	const struct gpu_track *gpu;
	bool is_graph;
	uint64_t key; /* the stream, or the instance of the graph */
	uint64_t end, nodes_end, used;
};

struct program_tracks {
	struct program_tracks *next;
	pid_t pid;
	uid_t user;
	uint64_t started, thread; /* the track of the partition */
	bool is_named, is_listed; /* in the last look */
	bool is_open;             /* a partition was told */
	struct segment_revision revision;
	uint64_t edited;          /* in this take, last; 0: not */
	uint64_t used;
	unsigned int events;
	uint32_t told_gaps;
	char *names[FUNCTIONS]; /* as JSON, by the monitor's numbers */
	struct lane lanes[TRACKS_LANES];
};

/* --- the file ----------------------------------------------------------------------------------------------------- */

/* A phase of the format, and a track. */
struct at {
	const char *phase;
	uint64_t process, thread;
};

/* Adds an event, with further members. Programs may tell any time: the rest of launches in lent TPCs ends soon. */
__attribute__((format(printf, 4, 5)))
static void add(struct tracks *tracks, struct at at, uint64_t ns, const char *members, ...)
{
	uint64_t most = process_clock_ns() + SEGMENT_LEND_MAX_US * UINT64_C(1000);
	uint64_t time = min_u64(max_u64(ns, tracks->begin_ns), most) - tracks->begin_ns;
	va_list arguments;
	int length = fprintf(tracks->file,
	                     "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"ts\":%" PRIu64 ".%03u",
	                     tracks->events++ > 0 ? "," : "[", at.phase, at.process, at.thread, time / 1000,
	                     (unsigned int)(time % 1000));

	va_start(arguments, members);
	length += vfprintf(tracks->file, members, arguments) + 1;
	va_end(arguments);
	fputc('}', tracks->file);
	tracks->bytes += (uint64_t)(length > 0 ? length : 0);
}

/* As JSON. The caller frees the result; NULL without memory. */
static char *quote(const char *text)
{
	char clean[TRACKS_TEXT + 1];

	text_copy(clean, sizeof clean, text);
	json_t *string = json_string(clean);
	char *quoted = json_dumps(string, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

	json_decref(string);
	return quoted;
}

/* `members` have a place for the text. */
#define ADD_TEXT(tracks, at, ns, members, text)                        \
	do {                                                           \
		char *json = quote(text);                              \
		add(tracks, at, ns, members, json ? json : NO_NAME);   \
		free(json);                                            \
	} while (false)

/* --- programs and GPUs -------------------------------------------------------------------------------------------- */

static struct at on(const char *phase, const struct program_tracks *program, uint64_t thread)
{
	return (struct at){phase, (uint64_t)program->pid, thread};
}

#define PROCESS_NAME ",\"name\":\"process_name\",\"args\":{\"name\":%s}"
#define THREAD_NAME ",\"name\":\"thread_name\",\"args\":{\"name\":%s}"

static void note(struct tracks *tracks, const struct program_tracks *program, const char *text)
{
	ADD_TEXT(tracks, on("i", program, program->thread), process_clock_ns(), ",\"s\":\"p\",\"name\":%s", text);
}

/* NULL without memory. */
static struct program_tracks *program_for(struct tracks *tracks, const struct watched *watched)
{
	struct program_tracks *found = tracks->programs;

	while (found && (found->pid != watched->pid || found->started != watched->started))
		found = found->next;
	if (!found && (found = calloc(1, sizeof *found))) {
		found->pid = watched->pid;
		found->started = watched->started;
		found->user = watched->user;
		found->thread = THREADS + ++tracks->last_thread;
		found->next = tracks->programs;
		tracks->programs = found;
	}
	return found;
}

/* A program may name any bus id. */
static bool is_chosen(const struct tracks *tracks, struct pci_address pci)
{
	bool is = tracks->chosen.count == 0 && (tracks->gpus->count == 0 || topology_find(tracks->gpus, pci));

	for (unsigned int i = 0; i < tracks->chosen.count && !is; i++)
		is = pci_address_equal(tracks->chosen.choices[i].gpu->pci, pci);
	return is;
}

bool tracks_want(const void *context, const struct process *process)
{
	const struct tracks *tracks = context;
	struct row row = {.process = process};
	bool is_named = tracks->pid_count == 0, wants = false;

	for (size_t i = 0; i < tracks->pid_count && !is_named; i++)
		is_named = tracks->pids[i] == process->pid;
	for (; is_named && row_find(&row, tracks->gpus) && !wants; row.place++)
		wants = !row.has_gpu || is_chosen(tracks, row.pci);
	return wants;
}

static struct at on_gpu(const struct tracks *tracks, const char *phase, const struct gpu_track *gpu)
{
	return (struct at){phase, GPU_PROCESSES + (uint64_t)(gpu - tracks->loads), 0};
}

/* NULL for a GPU that is not chosen, or if there are too many. */
static struct gpu_track *gpu_for(struct tracks *tracks, struct pci_address pci)
{
	const void *known = pci_address_find(pci, tracks->loads, tracks->load_count, sizeof(struct gpu_track));
	struct gpu_track *gpu = (struct gpu_track *)known;
	char text[PCI_ADDRESS_TEXT + TOPOLOGY_NAME_MAX + 8];

	if (gpu || !is_chosen(tracks, pci) || tracks->load_count == TOPOLOGY_GPUS_MAX)
		return gpu;
	gpu = &tracks->loads[tracks->load_count++];
	*gpu = (struct gpu_track){.pci = pci, .topology = topology_find(tracks->gpus, pci)};
	snprintf(gpu->label, sizeof gpu->label, "%s", gpus_label(pci, tracks->gpus, text));
	snprintf(text, sizeof text, "GPU %s %s", gpu->label, gpu->topology ? gpu->topology->name : "");
	ADD_TEXT(tracks, on_gpu(tracks, "M", gpu), 0, PROCESS_NAME, text);
	return gpu;
}

/* --- busy TPCs ---------------------------------------------------------------------------------------------------- */

/* Without memory, a stretch is missing. */
static void add_stretch(void *data, uint64_t begin, uint64_t end, unsigned int tpcs)
{
	struct gpu_track *gpu = data;

	if (gpu->count + 2 > gpu->room && gpu->room < TRACKS_EDGES) {
		size_t room = gpu->room ? 2 * gpu->room : 256;
		struct edge *edges = realloc(gpu->edges, room * sizeof *edges);

		if (edges) {
			gpu->edges = edges;
			gpu->room = room;
		}
	}
	if (gpu->count + 2 <= gpu->room) {
		gpu->edges[gpu->count++] = (struct edge){begin, (int)tpcs};
		gpu->edges[gpu->count++] = (struct edge){end, -(int)tpcs};
	}
}

static void write_load(struct tracks *tracks, struct gpu_track *gpu, uint64_t until)
{
	int64_t most = gpu->topology ? gpu->topology->tpc_count : INT64_MAX;
	size_t done = 0;

	if (gpu->count > 0)
		qsort(gpu->edges, gpu->count, sizeof *gpu->edges, compare_u64);
	while (done < gpu->count && gpu->edges[done].time <= until) {
		uint64_t time = gpu->edges[done].time;

		for (; done < gpu->count && gpu->edges[done].time == time; done++)
			gpu->busy += gpu->edges[done].tpcs;
		int64_t busy = gpu->busy < most ? gpu->busy : most;

		if (busy != gpu->written)
			add(tracks, on_gpu(tracks, "C", gpu), time,
			    ",\"name\":\"busy TPCs\",\"args\":{\"TPCs\":%" PRId64 "}", busy);
		gpu->written = busy;
	}
	gpu->count -= done;
	if (done > 0)
		memmove(gpu->edges, gpu->edges + done, gpu->count * sizeof *gpu->edges);
}

void tracks_write_loads(struct tracks *tracks, uint64_t until_ns)
{
	for (unsigned int i = 0; i < tracks->load_count; i++)
		write_load(tracks, &tracks->loads[i], until_ns);
}

/* --- kernels and graphs ------------------------------------------------------------------------------------------- */

/* As JSON. */
static const char *name_of(struct tracks *tracks, struct program_tracks *program, const struct monitor_times *times,
                           unsigned int function)
{
	const char *mangled = function < FUNCTIONS ? times->functions[function].name : NULL;
	char *name = NULL, **place = mangled ? &program->names[function] : &name;

	if (mangled && !*place && tracks->names < NAMES_MOST && (name = demangle(mangled))) {
		*place = quote(name);
		tracks->names += *place ? strlen(*place) : 0;
		free(name);
		name = NULL;
	}
	return *place ? *place : NO_NAME;
}

static struct lane *lane_for(struct tracks *tracks, struct program_tracks *program, const struct gpu_track *gpu,
                             bool is_graph, uint64_t key)
{
	struct lane *found = NULL, *oldest = &program->lanes[0];
	bool is_new;
	char text[PCI_ADDRESS_TEXT + 32];

	for (unsigned int i = 0; i < TRACKS_LANES && !found; i++) {
		struct lane *lane = &program->lanes[i];
		bool is_it = lane->key == key && lane->gpu == gpu && lane->is_graph == is_graph;

		found = is_it && lane->thread != 0 ? lane : NULL;
		oldest = lane->used < oldest->used ? lane : oldest;
	}
	found = found ? found : oldest;
	is_new = found->thread == 0 || found->gpu != gpu || found->is_graph != is_graph;
	found->key = key;
	if (is_new) {
		*found = (struct lane){
			.thread = THREADS + ++tracks->last_thread, .gpu = gpu, .is_graph = is_graph, .key = key};
		snprintf(text, sizeof text, "GPU %s: %s %u", gpu->label, is_graph ? "graph" : "stream",
		         (unsigned int)(found - program->lanes));
		ADD_TEXT(tracks, on("M", program, found->thread), 0, THREAD_NAME, text);
	}
	found->used = ++program->used;
	return found;
}

static const char *why_begin_is_unknown(const struct times_interval *interval, bool is_later)
{
	return interval->may_be_shorter        ? "not known: it may have waited for a graph"
	       : is_later                      ? "not known exactly: not before the bar in front"
	       : interval->is_behind           ? ""
	       : interval->kind == TIMES_GRAPH ? "not known exactly: guessed from its other launches"
	                                       : "not known exactly: guessed from its launch";
}

/* Bars of a lane do not overlap, also if the clocks are known better now than for the bar in front. Nodes stand within
 * the last bar. */
static bool place_bar(struct lane *lane, struct times_interval *bar, uint64_t begin_ns)
{
	bool is_node = bar->kind == TIMES_NODE;
	uint64_t least = max_u64(is_node ? lane->nodes_end : lane->end, begin_ns), before = bar->begin;
	uint64_t most = is_node ? max_u64(lane->end, least) : process_clock_ns();

	bar->begin = min_u64(most, max_u64(least, bar->begin));
	bar->end = max_u64(bar->begin, min_u64(most, bar->end));
	lane->nodes_end = is_node ? bar->end : bar->begin;
	lane->end = is_node ? lane->end : bar->end;
	return bar->begin > before;
}

static void write_bar(struct tracks *tracks, struct program_tracks *program, const struct gpu_track *gpu,
                      const struct monitor_times *times, struct times_interval bar, uint64_t error_ns)
{
	bool is_graph = bar.kind == TIMES_GRAPH;
	struct lane *lane = lane_for(tracks, program, gpu, bar.kind != TIMES_KERNEL, bar.stream);
	uint64_t waited = bar.begin > bar.launched ? bar.begin - bar.launched : 0;
	const char *why = why_begin_is_unknown(&bar, place_bar(lane, &bar, tracks->begin_ns));
	uint64_t length = bar.end - bar.begin;
	char grid[48] = "", behind[48] = "", unsure[48] = "";

	if (bar.grid.width > 0)
		snprintf(grid, sizeof grid, ",\"grid\":[%u,%u,%u]", bar.grid.width, bar.grid.height, bar.grid.depth);
	if (bar.launched > 0)
		snprintf(behind, sizeof behind, ",\"waited_us\":%.3f", (double)waited / 1e3);
	if (error_ns > CLOCK_EXACT_NS)
		snprintf(unsure, sizeof unsure, ",\"clock_error_us\":%.3f", (double)error_ns / 1e3);
	add(tracks, on("X", program, lane->thread), bar.begin,
	    ",\"dur\":%" PRIu64 ".%03u,\"cat\":\"%s\",\"name\":%s,\"args\":{\"tpcs\":%u%s%s%s%s%s%s}", length / 1000,
	    (unsigned int)(length % 1000), kinds[bar.kind],
	    is_graph ? "\"graph\"" : name_of(tracks, program, times, bar.function), bar.tpcs, grid, behind, unsure,
	    *why ? ",\"begin\":\"" : "", why, *why ? "\"" : "");
}

/* A gap is noted once. The clocks are known again soon, and each kernel says how well. */
static void note_gaps(struct tracks *tracks, struct program_tracks *program, uint32_t gaps)
{
	uint32_t told = program->told_gaps | UINT32_C(1) << MONITOR_CLOCKS;

	for (int gap = 0; gap < MONITOR_GAP_COUNT; gap++) {
		if ((gaps & ~told) >> gap & 1)
			note(tracks, program, monitor_gap_text((enum monitor_gap)gap));
	}
	program->told_gaps |= gaps;
}

static void note_dropped(struct tracks *tracks, const struct program_tracks *program, uint64_t count, const char *what)
{
	char text[64];

	snprintf(text, sizeof text, "%" PRIu64 " %s dropped", count, what);
	if (count > 0)
		note(tracks, program, text);
}

static void hear_gpu(struct tracks *tracks, struct program_tracks *program, const struct monitor_times *times,
                     const struct monitor_gpu *came)
{
	struct gpu_track *gpu = gpu_for(tracks, came->pci);
	uint64_t dropped = came->lost + came->unplaced;

	if (!gpu)
		return;
	for (size_t i = 0; i < came->interval_count; i++) {
		bool has_ended = came->intervals[i].kind != TIMES_UNFINISHED;
		bool has_room = program->events < TRACKS_EVENTS;

		program->events += has_ended;
		dropped += has_ended && !has_room;
		if (has_ended && has_room)
			write_bar(tracks, program, gpu, times, came->intervals[i], came->error_ns);
	}
	note_gaps(tracks, program, came->gaps);
	note_dropped(tracks, program, dropped, "kernels");
	tracks->dropped += dropped;
	times_sweep(came->intervals, came->interval_count, came->begin_ns, process_clock_ns(), add_stretch, gpu);
}

/* --- partitions --------------------------------------------------------------------------------------------------- */

static void end_partition(struct tracks *tracks, struct program_tracks *program, uint64_t ns)
{
	if (program->is_open)
		add(tracks, on("E", program, program->thread), ns, "%s", "");
	program->is_open = false;
}

/* "GPU 0: TPCs 0-7, GPU 1: TPCs 0-3" */
static void describe_sets(const struct tracks *tracks, const struct segment_revision *revision,
                          char text[TRACKS_TEXT])
{
	char list[TPCSET_TEXT], label[PCI_ADDRESS_TEXT];
	size_t length = 0;

	strcpy(text, "all TPCs");
	for (unsigned int i = 0; i < revision->count && length < TRACKS_TEXT; i++) {
		const struct segment_partition *partition = &revision->partitions[i];

		if (is_chosen(tracks, partition->pci))
			length += (size_t)snprintf(text + length, TRACKS_TEXT - length, "%sGPU %s: TPCs %s",
			                           length > 0 ? ", " : "",
			                           gpus_label(partition->pci, tracks->gpus, label),
			                           tpcset_format_list(&partition->set, list));
	}
}

/* Of several edits since the last take, the last one changes the partition here. */
static void follow_partition(struct tracks *tracks, struct program_tracks *program,
                             const struct segment_revision *revision)
{
	size_t bytes = revision ? offsetof(struct segment_revision, partitions[revision->count]) : 0;
	char text[TRACKS_TEXT];

	if (!revision || (program->is_open && memcmp(&program->revision, revision, bytes) == 0))
		return;
	uint64_t ns = program->edited != 0 ? program->edited : process_clock_ns();

	end_partition(tracks, program, ns);
	program->revision = *revision;
	program->is_open = true;
	describe_sets(tracks, revision, text);
	json_t *time = json_time(revision, NULL);
	char *arguments = time ? json_dumps(time, JSON_ENSURE_ASCII | JSON_COMPACT) : NULL;

	add(tracks, on("B", program, program->thread), ns,
	    ",\"cat\":\"partition\",\"name\":\"%s\",\"args\":%s", text, arguments ? arguments : "{}");
	free(arguments);
	json_decref(time);
}

/* --- waits and loans ---------------------------------------------------------------------------------------------- */

/* Spans of a program may overlap: threads wait at the same time. */
static void write_span(struct tracks *tracks, const struct program_tracks *program, const struct segment_event *event,
                       const char *name)
{
	uint64_t number = tracks->events;
	const char *members = ",\"cat\":\"wait\",\"id\":%" PRIu64 ",\"name\":\"%s\"";

	add(tracks, on("b", program, program->thread), event->begin_ns, members, number, name);
	add(tracks, on("e", program, program->thread), max_u64(event->begin_ns, event->end_ns), members, number, name);
}

static void write_loan(struct tracks *tracks, const struct program_tracks *program, const struct segment_event *event,
                       const char *what, uint64_t other)
{
	char label[PCI_ADDRESS_TEXT];

	add(tracks, on("C", program, 0), event->begin_ns,
	    ",\"name\":\"GPU %s: TPCs %s %" PRIu64 "\",\"args\":{\"TPCs\":%u}",
	    gpus_label(event->pci, tracks->gpus, label), what, other & ~SEGMENT_LENDER_GROUP, event->tpcs);
}

static void hear_event(struct tracks *tracks, struct program_tracks *program, const struct segment_event *event)
{
	static const char *const waits[SEGMENT_EVENT_KINDS] = {
		[SEGMENT_WAITED_FOR_QUOTA] = "a launch waits: the quota is spent",
		[SEGMENT_WAITED_FOR_PRIORITY] = "a launch waits for a higher priority",
		[SEGMENT_SUSPENDED] = "suspended",
		[SEGMENT_KEEPS_WAITING] = "waits for the rest of another program's launches, at most",
	};
	bool is_of_gpu = event->kind == SEGMENT_BORROWS || event->kind == SEGMENT_KEEPS_WAITING;
	bool is_group = event->other & SEGMENT_LENDER_GROUP;
	struct program_tracks *other = is_of_gpu ? tracks->programs : NULL;

	/* A program can say anything of another program: only programs of one user find each other (board.h). */
	while (other && ((uint64_t)other->pid != event->other || other->user != program->user))
		other = other->next;
	if (event->kind >= SEGMENT_EVENT_KINDS || (is_of_gpu && !is_chosen(tracks, event->pci)))
		return;
	if (event->kind == SEGMENT_EDITED) {
		add(tracks, on("i", program, program->thread), event->begin_ns, ",\"s\":\"t\",\"name\":\"edited\"");
		program->edited = event->begin_ns;
	} else if (event->kind == SEGMENT_BORROWS) {
		write_loan(tracks, program, event, is_group ? "borrowed of group" : "borrowed of", event->other);
		if (other)
			write_loan(tracks, other, event, "lent to", (uint64_t)program->pid);
	} else if (event->kind != SEGMENT_KEEPS_WAITING || other) {
		write_span(tracks, other ? other : program, event, waits[event->kind]);
	}
}

/* --- takes and looks ---------------------------------------------------------------------------------------------- */

void tracks_hear(void *context, const struct watched *watched, const struct monitor_times *times)
{
	struct tracks *tracks = context;
	struct program_tracks *program = program_for(tracks, watched);

	if (!program)
		return;
	program->events = 0;
	program->edited = 0;
	for (size_t i = 0; times->events && i < times->events->count; i++)
		hear_event(tracks, program, &times->events->list[i]);
	note_dropped(tracks, program, times->events ? times->events->lost : 0, "waits and changes");
	follow_partition(tracks, program, times->revision);
	note_gaps(tracks, program, times->gaps);
	for (unsigned int i = 0; i < times->gpu_count; i++)
		hear_gpu(tracks, program, times, &times->gpus[i]);
}

static void follow_process(struct tracks *tracks, const struct watched *watched, const struct process *process)
{
	struct program_tracks *program = program_for(tracks, watched);

	if (!program)
		return;
	if (!program->is_named) {
		ADD_TEXT(tracks, on("M", program, 0), 0, PROCESS_NAME, process->command);
		ADD_TEXT(tracks, on("M", program, program->thread), 0, THREAD_NAME, "partition");
		if (!watched->look)
			note(tracks, program, watched->why);
	}
	program->is_named = program->is_listed = true;
}

static void free_program(struct tracks *tracks, struct program_tracks *program)
{
	end_partition(tracks, program, process_clock_ns());
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		tracks->names -= program->names[i] ? strlen(program->names[i]) : 0;
		free(program->names[i]);
	}
	free(program);
}

static void end_unlisted(struct tracks *tracks)
{
	for (struct program_tracks **place = &tracks->programs, *program; (program = *place);) {
		if (program->is_listed) {
			program->is_listed = false;
			place = &program->next;
		} else {
			*place = program->next;
			free_program(tracks, program);
		}
	}
}

static const struct at anywhere = {"i", GPU_PROCESSES, THREADS};

void tracks_follow(struct tracks *tracks, const struct activities *activities)
{
	if (tracks->events == 0)
		add(tracks, anywhere, 0, ",\"s\":\"g\",\"name\":\"begin\",\"args\":{\"monotonic_ns\":%" PRIu64 "}",
		    tracks->begin_ns);
	for (size_t i = 0; i < activities->processes.count; i++) {
		const struct process *process = &activities->processes.list[i];
		const struct watched *watched = watched_find(&activities->watched, process);

		if (watched)
			follow_process(tracks, watched, process);
	}
	end_unlisted(tracks);
}

void tracks_end(struct tracks *tracks)
{
	tracks_write_loads(tracks, UINT64_MAX);
	end_unlisted(tracks);
	for (unsigned int i = 0; i < tracks->load_count; i++)
		free(tracks->loads[i].edges);
	add(tracks, anywhere, process_clock_ns(),
	    ",\"s\":\"g\",\"name\":\"end\",\"args\":{\"dropped_kernels\":%" PRIu64 "}", tracks->dropped);
	fputs("\n]\n", tracks->file);
}
