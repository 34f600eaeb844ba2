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

static void hear(struct times_interval *intervals, size_t count, const char *name)
{
	const struct watched watched = {.pid = 7, .started = 1};
	const struct monitor_function functions[] = {{.name = NULL}, {.name = name}};
	struct monitor_times times = {.gpu_count = 1, .function_count = 2, .functions = functions};

	times.gpus[0] = here;
	times.gpus[0].intervals = intervals;
	times.gpus[0].interval_count = count;
	tracks_hear(&tracks, &watched, &times);
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

/* When clocks become better known, a kernel may seem to begin before the end of the kernel before. */
TEST(bars_of_a_track_do_not_overlap)
{
	struct times_interval list[] = {kernel(1, 10, 20), kernel(1, 18, 30), kernel(1, 25, 28), kernel(2, 15, 25)};

	hear(list, 4, "f");
	end_file();
	assert_bar(0, 10, 10, "none");
	assert_bar(1, 20, 10, "not known exactly: not before the bar in front");
	assert_bar(2, 30, 0, "not known exactly: not before the bar in front");
	assert_bar(3, 15, 10, "none");
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
	end_file();
	assert_bar(0, 100, 100, "none");
	assert_bar(1, 100, 20, "not known exactly: not before the bar in front");
	assert_bar(2, 120, 30, "not known exactly: not before the bar in front");
	assert_bar(3, 150, 50, "none");
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
