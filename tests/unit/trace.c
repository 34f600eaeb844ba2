/* nvtaskset trace: the file of takes, also of takes that hostile programs tell. */
#include "../cases.h"
#include "../../tools/nvtaskset/trace/tracks.c"

static const struct pci_address gpu = {.bus = 0x3b};
static struct topology_list gpus;
static struct tracks tracks;
static char *text;
static size_t length;
static json_t *events;

/* The process's clock is far ahead of the times of these tests. */
#define BEGIN 1000000

FIXTURE(begin)
{
	gpus = (struct topology_list){.count = 1};
	gpus.gpus[0] = (struct topology){.pci = gpu, .tpc_count = 66};
	tracks = (struct tracks){.file = open_memstream(&text, &length), .begin_ns = BEGIN, .gpus = &gpus};
}

/* The file's events, without names of programs and tracks, and without the end. */
static json_t *end_file(void)
{
	json_error_t error;
	json_t *all;
	size_t i;
	json_t *event;

	tracks_end(&tracks);
	fclose(tracks.file);
	all = json_loads(text, 0, &error);
	if (!all)
		fail_msg("%s: %s", error.text, text);
	free(text);
	events = json_array();
	json_array_foreach(all, i, event) {
		if (strcmp(json_string_value(json_object_get(event, "ph")), "M") != 0)
			json_array_append(events, event);
	}
	json_array_remove(events, json_array_size(events) - 1);
	json_decref(all);
	return events;
}

FIXTURE(end)
{
	json_decref(events);
	events = NULL;
}

static struct monitor_gpu here = {.pci = {.bus = 0x3b}, .begin_ns = BEGIN};

static struct monitor_times with; /* further members of a take */
static uid_t user;

static void hear_of(pid_t pid, struct times_interval *intervals, size_t count, const char *name)
{
	const struct watched watched = {.pid = pid, .started = 1, .user = user};
	const struct monitor_function functions[] = {{.name = NULL}, {.name = name}};
	struct monitor_times times = with;

	times.gpu_count = 1;
	times.function_count = 2;
	times.functions = functions;
	times.gpus[0] = here;
	times.gpus[0].intervals = intervals;
	times.gpus[0].interval_count = count;
	tracks_hear(&tracks, &watched, &times);
	with = (struct monitor_times){.events = NULL};
}

static void hear(struct times_interval *intervals, size_t count, const char *name)
{
	hear_of(7, intervals, count, name);
}

static struct times_interval kernel(uint64_t stream, uint64_t begin_us, uint64_t end_us)
{
	return (struct times_interval){.kind = TIMES_KERNEL,
	                               .begin = BEGIN + begin_us * 1000, .end = BEGIN + end_us * 1000,
	                               .stream = stream, .function = 1, .tpcs = 8, .is_behind = true};
}

static const json_t *event(size_t i)
{
	const json_t *found = json_array_get(events, i);

	assert_non_null(found);
	return found;
}

static double number(const json_t *of, const char *name)
{
	return json_number_value(json_object_get(of, name));
}

static const char *string(const json_t *of, const char *name)
{
	const json_t *value = json_object_get(of, name);

	return value ? json_string_value(value) : "none";
}

/* Number i of the bars. */
static const json_t *bar(size_t i)
{
	size_t at = 0;

	for (; at < json_array_size(events) && (i > 0 || strcmp(string(event(at), "ph"), "X") != 0); at++)
		i -= strcmp(string(event(at), "ph"), "X") == 0;
	return event(at);
}

static void assert_bar(size_t i, double begin, double duration, const char *why)
{
	assert_true(number(bar(i), "ts") == begin && number(bar(i), "dur") == duration);
	assert_string_equal(string(json_object_get(bar(i), "args"), "begin"), why);
}

TEST(a_kernel)
{
	struct times_interval one = kernel(1, 10, 12);

	one.end += 345;
	hear(&one, 1, "_Z3foov");
	end_file();
	assert_bar(0, 10, 2.345, "none");
	assert_string_equal(string(bar(0), "name"), "foo()");
	assert_string_equal(string(bar(0), "cat"), "kernel");
	/* Not known is not 0. */
	assert_null(json_object_get(json_object_get(bar(0), "args"), "waited_us"));
	assert_null(json_object_get(json_object_get(bar(0), "args"), "grid"));
}

/* As PyTorch's profiler writes it. */
TEST(a_grid)
{
	struct times_interval one = kernel(1, 10, 12);

	one.grid = (struct qmd_grid){INT32_MAX, 65535, 64};
	hear(&one, 1, "f");
	end_file();
	const json_t *grid = json_object_get(json_object_get(bar(0), "args"), "grid");

	assert_int_equal(json_array_size(grid), 3);
	assert_int_equal(json_integer_value(json_array_get(grid, 0)), INT32_MAX);
	assert_int_equal(json_integer_value(json_array_get(grid, 1)), 65535);
	assert_int_equal(json_integer_value(json_array_get(grid, 2)), 64);
}

TEST(a_begin_that_is_not_known_says_so)
{
	struct times_interval list[] = {kernel(1, 10, 20), kernel(2, 10, 20), kernel(3, 10, 20)};

	list[0].is_behind = false;
	list[1].may_be_shorter = true;
	hear(list, 3, "f");
	end_file();
	assert_bar(0, 10, 10, "not known exactly: guessed from its launch");
	assert_bar(1, 10, 10, "not known: it may have waited for a graph");
	assert_bar(2, 10, 10, "none");
}

static const char exact[] = "none", later[] = "not known exactly: not before the bar in front";

/* Of the first four bars: begin, length and note. */
static void assert_bars(const double times[4][2], const char *const notes[4])
{
	end_file();
	for (size_t i = 0; i < 4; i++)
		assert_bar(i, times[i][0], times[i][1], notes[i]);
}

/* When clocks become better known, a kernel may seem to begin before the end of the kernel before. */
TEST(bars_of_a_track_do_not_overlap)
{
	struct times_interval list[] = {kernel(1, 10, 20), kernel(1, 18, 30), kernel(1, 25, 28), kernel(2, 15, 25)};

	hear(list, 4, "f");
	assert_bars((const double[4][2]){{10, 10}, {20, 10}, {30, 0}, {15, 10}},
	            (const char *const[]){exact, later, later, exact});
	assert_true(number(bar(3), "tid") != number(bar(0), "tid"));
}

TEST(nodes_stand_within_the_graph)
{
	struct times_interval list[] = {
	    kernel(5, 100, 200), kernel(5, 90, 120), kernel(5, 110, 150), kernel(5, 150, 210)};

	list[0].kind = TIMES_GRAPH;
	for (int i = 1; i < 4; i++)
		list[i].kind = TIMES_NODE;
	hear(list, 4, "f");
	assert_bars((const double[4][2]){{100, 100}, {100, 20}, {120, 30}, {150, 50}},
	            (const char *const[]){exact, later, later, exact});
	for (size_t i = 1; i < 4; i++)
		assert_true(number(bar(i), "tid") == number(bar(0), "tid"));
}

/* More streams than tracks: the bars go on, on tracks that were not used for the longest time. */
TEST(many_streams)
{
	for (uint64_t stream = 1; stream <= 3 * TRACKS_LANES; stream++) {
		struct times_interval one = kernel(stream, 10 * stream, 10 * stream + 5);

		hear(&one, 1, "f");
	}
	assert_int_equal(tracks.last_thread, 1 + TRACKS_LANES);
	unsigned int bars = 0;

	end_file();
	for (size_t i = 0; i < json_array_size(events); i++)
		bars += strcmp(string(event(i), "ph"), "X") == 0;
	assert_int_equal(bars, 3 * TRACKS_LANES);
}

TEST(what_is_dropped_is_in_the_file)
{
	struct times_interval *many = calloc(TRACKS_EVENTS + 5, sizeof *many);

	for (uint64_t i = 0; i < TRACKS_EVENTS + 5; i++)
		many[i] = kernel(1, i, i + 1);
	here.lost = 2;
	here.unplaced = 3;
	hear(many, TRACKS_EVENTS + 5, "f");
	here.lost = here.unplaced = 0;
	free(many);
	end_file();
	assert_int_equal(tracks.dropped, 10);
	assert_string_equal(string(event(TRACKS_EVENTS), "name"), "10 kernels dropped");
}

/* Neither numbers nor names need be true, and the file stays JSON. */
TEST(hostile_takes)
{
	static const uint64_t times[] = {0, 1, BEGIN, BEGIN + 1, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
	static const char *const names[] = {"\"}],\\", "\xff\xfe\x01\n", "_Z9999999999999999999v", ""};

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		for (size_t first = 0; first < COUNT_OF(times); first++) {
			for (size_t last = first + 1; last < COUNT_OF(times); last++) {
				struct times_interval one = {.begin = times[first], .end = times[last],
				                             .launched = times[first] / 2, .stream = UINT64_MAX,
				                             .function = 1, .tpcs = TPCSET_MAX,
				                             .grid = {UINT32_MAX, UINT16_MAX, UINT16_MAX},
				                             .kind = 1 + (first + last) % 3};

				here.error_ns = times[first];
				here.begin_ns = times[last];
				hear(&one, 1, names[i]);
			}
		}
	}
	here.error_ns = 0;
	here.begin_ns = BEGIN;
	end_file();
	for (size_t i = 0; i < json_array_size(events); i++)
		assert_true(number(event(i), "dur") >= 0 && number(event(i), "ts") >= 0);
}

/* A long name is cut. */
TEST(long_names)
{
	char name[5000];

	memset(name, '"', sizeof name);
	name[sizeof name - 1] = '\0';
	struct times_interval one = kernel(1, 1, 2);

	hear(&one, 1, name);
	assert_true(tracks.names <= 2 * TRACKS_TEXT + 2);
	end_file();
	assert_int_equal(strlen(string(bar(0), "name")), TRACKS_TEXT);
	assert_int_equal(tracks.names, 0);
}

TEST(a_gpu_that_is_not_here)
{
	struct times_interval one = kernel(1, 1, 2);

	here.pci.bus = 0x77;
	hear(&one, 1, "f");
	here.pci = gpu;
	assert_int_equal(json_array_size(end_file()), 0);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void tell_event(pid_t pid, struct segment_event event)
{
	static struct segment_events_read read;

	read = (struct segment_events_read){.count = 1, .lost = event.kind == SEGMENT_EVENT_KINDS, .list = {event}};
	with.events = &read;
	hear_of(pid, NULL, 0, "f");
}

/* Number i of the file's events. */
static void assert_event(size_t i, const char *phase, const char *name, double at)
{
	assert_string_equal(string(event(i), "ph"), phase);
	assert_string_equal(string(event(i), "name"), name);
	assert_true(number(event(i), "ts") == at);
}

TEST(waits_of_threads_overlap)
{
	tell_event(7, (struct segment_event){
	                  SEGMENT_WAITED_FOR_QUOTA, .begin_ns = BEGIN + 10000, .end_ns = BEGIN + 20000});
	tell_event(7, (struct segment_event){
	                  SEGMENT_SUSPENDED, .begin_ns = BEGIN + 15000, .end_ns = BEGIN + 25000});
	assert_int_equal(json_array_size(end_file()), 4);
	assert_event(0, "b", "a launch waits: the quota is spent", 10);
	assert_event(1, "e", "a launch waits: the quota is spent", 20);
	assert_event(2, "b", "suspended", 15);
	assert_event(3, "e", "suspended", 25);
	assert_each(number(event(0), "id"), number(event(1), "id"), number(event(2), "id"), number(event(3), "id"));
	assert_true(number(event(0), "id") != number(event(2), "id"));
}

TEST(borrower_and_lender)
{
	hear_of(8, NULL, 0, "f");
	tell_event(7, (struct segment_event){SEGMENT_BORROWS, 5, BEGIN + 10000, 0, gpu, 8});
	tell_event(7, (struct segment_event){SEGMENT_KEEPS_WAITING, 0, BEGIN + 12000, BEGIN + 13000, gpu, 8});
	tell_event(7, (struct segment_event){SEGMENT_BORROWS, 3, BEGIN + 14000, 0, gpu, SEGMENT_LENDER_GROUP | 9});
	tell_event(7, (struct segment_event){SEGMENT_KEEPS_WAITING, 0, BEGIN, BEGIN, gpu, 9});
	assert_int_equal(json_array_size(end_file()), 5);
	assert_event(0, "C", "GPU 0: TPCs borrowed of 8", 10);
	assert_event(1, "C", "GPU 0: TPCs lent to 7", 10);
	assert_event(2, "b", "waits for the rest of another program's launches, at most", 12);
	assert_event(4, "C", "GPU 0: TPCs borrowed of group 9", 14);
	for (size_t i = 0; i < 5; i++)
		assert_true(number(event(i), "pid") == (i == 0 || i == 4 ? 7 : 8));
}

/* A program tells nothing on the tracks of another user's program. */
TEST(another_users_program)
{
	user = 1000;
	hear_of(8, NULL, 0, "f");
	user = 1001;
	tell_event(7, (struct segment_event){SEGMENT_BORROWS, 5, BEGIN + 10000, 0, gpu, 8});
	tell_event(7, (struct segment_event){SEGMENT_KEEPS_WAITING, 0, BEGIN + 12000, BEGIN + 13000, gpu, 8});
	user = 0;
	assert_int_equal(json_array_size(end_file()), 1);
	assert_event(0, "C", "GPU 0: TPCs borrowed of 8", 10);
	assert_true(number(event(0), "pid") == 7);
}

TEST(a_partition_changes_when_it_is_edited)
{
	struct segment_revision revision = {.count = 1, .partitions[0] = {gpu, {{0xff}}}};

	with.revision = &revision;
	tell_event(7, (struct segment_event){SEGMENT_EDITED, .begin_ns = BEGIN + 10000});
	/* An edit without a change. */
	with.revision = &revision;
	tell_event(7, (struct segment_event){SEGMENT_EDITED, .begin_ns = BEGIN + 20000});
	revision.partitions[0].set.words[0] = 0xf;
	with.revision = &revision;
	tell_event(7, (struct segment_event){SEGMENT_EDITED, .begin_ns = BEGIN + 30000});
	end_file();
	assert_event(0, "i", "edited", 10);
	assert_event(1, "B", "GPU 0: TPCs 0-7", 10);
	assert_event(2, "i", "edited", 20);
	assert_event(3, "i", "edited", 30);
	assert_event(4, "E", "none", 30);
	assert_event(5, "B", "GPU 0: TPCs 0-3", 30);
}

TEST(hostile_events)
{
	static const uint64_t times[] = {0, BEGIN, UINT64_MAX};

	for (uint32_t kind = 0; kind <= SEGMENT_EVENT_KINDS; kind++) {
		for (size_t i = 0; i < COUNT_OF(times) * COUNT_OF(times); i++)
			tell_event(7, (struct segment_event){kind, UINT32_MAX, times[i / 3], times[i % 3], gpu, 7});
	}
	double last = 0;

	end_file();
	assert_string_equal(string(event(json_array_size(events) - 1), "name"), "1 waits and changes dropped");
	for (size_t i = 0; i < json_array_size(events); i++) {
		assert_true(strcmp(string(event(i), "ph"), "e") != 0 || number(event(i), "ts") >= last);
		last = number(event(i), "ts");
	}
}

/* --- busy TPCs ---------------------------------------------------------------------------------------------------- */

static void assert_busy(size_t i, double at, double tpcs)
{
	assert_string_equal(string(event(i), "name"), "busy TPCs");
	assert_true(number(event(i), "ts") == at && number(json_object_get(event(i), "args"), "TPCs") == tpcs);
}

TEST(busy_tpcs_of_programs_are_added_up)
{
	struct gpu_track *load = gpu_for(&tracks, gpu);

	add_stretch(load, BEGIN + 10000, BEGIN + 20000, 8);
	add_stretch(load, BEGIN + 20000, BEGIN + 30000, 8);
	add_stretch(load, BEGIN + 15000, BEGIN + 25000, 60);
	write_load(&tracks, load, BEGIN + 24000);
	write_load(&tracks, load, BEGIN + 40000);
	assert_int_equal(json_array_size(end_file()), 4);
	assert_busy(0, 10, 8);
	assert_busy(1, 15, 66);
	assert_busy(2, 25, 8);
	assert_busy(3, 30, 0);
}

TEST(edges_have_a_bound)
{
	struct gpu_track *load = gpu_for(&tracks, gpu);

	for (unsigned int i = 0; i < TRACKS_EDGES; i++)
		add_stretch(load, BEGIN + i, BEGIN + i + 1, 1);
	assert_int_equal(load->count, TRACKS_EDGES);
	end_file();
}

RUN_TESTS(begin, end)
