/* nvtaskset.h, as used by a program that changes other processes' partitions. This test makes those processes. */
#include "../alone.h"
#include "../cases.h"
#include "base/clock.h"
#include "cuda_process.h"
#include "nvtaskset.h"
#include "process.h"
#include "state/kernels/counts.h"
#include "state/kernels/timestamps_layout.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/layout.h"
#include "state/segment/owner.h"

#include <malloc.h>
#include <poll.h>

static struct nvtaskset_topology *topology;
static struct nvtaskset_error error; /* the last one */

FIXTURE(load_two_gpus)
{
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200-x2.txt", 1);
	assert_int_equal(nvtaskset_topology_load(&topology, NULL), 0);
}

FIXTURE(free_topology)
{
	nvtaskset_topology_free(topology);
}

static struct nvtaskset_set parse(const char *list)
{
	struct nvtaskset_set set = {{0}};

	assert_int_equal(nvtaskset_set_parse_list(&set, list, NVTASKSET_TPCS_MAX, NULL), 0);
	return set;
}

/* What fails with this code and this reason; with this in its reason. */
#define assert_refused(call, code, text) (assert_error_code(call, code), assert_string_equal(error.reason, text))
#define assert_refused_for(call, code, text) (assert_error_code(call, code), assert_non_null(strstr(error.reason, text)))

static void assert_list(struct nvtaskset_set set, const char *list)
{
	char text[NVTASKSET_SET_TEXT];

	assert_string_equal(nvtaskset_set_format_list(&set, text), list);
}

TEST(sets)
{
	struct nvtaskset_set a = {{0}}, b = parse("4-7,200");
	char text[NVTASKSET_SET_TEXT];

	nvtaskset_set_add_range(&a, 0, 5);
	nvtaskset_set_add(&a, 255);
	nvtaskset_set_add(&a, 256);
	nvtaskset_set_remove(&a, 1);
	assert_list(a, "0,2-5,255");
	assert_true(nvtaskset_set_has(&a, 255));
	assert_false(nvtaskset_set_has(&a, 1));
	assert_int_equal(nvtaskset_set_count(&a), 6);
	assert_int_equal(nvtaskset_set_next(&a, 6), 255);
	assert_int_equal(nvtaskset_set_next(&a, 256), NVTASKSET_TPCS_MAX);
	assert_list(nvtaskset_set_and(&a, &b), "4-5");
	assert_list(nvtaskset_set_or(&a, &b), "0,2-7,200,255");
	assert_list(nvtaskset_set_without(&a, &b), "0,2-3,255");
	assert_false(nvtaskset_set_equal(&a, &b));
	b = a;
	assert_true(nvtaskset_set_equal(&a, &b));
	assert_int_equal(nvtaskset_set_parse_mask(&b, "0xf0", 66, NULL), 0);
	assert_string_equal(nvtaskset_set_format_mask(&b, text), "f0");
}

TEST(a_mistake_leaves_the_set)
{
	struct nvtaskset_set set = parse("1-3");

	assert_refused(nvtaskset_set_parse_list(&set, "5,66", 66, &error), INVALID, "TPC 66: this GPU has TPCs 0-65");
	assert_refused(nvtaskset_set_parse_mask(&set, "xyz", 66, &error), INVALID, "'xyz': not a hexadecimal mask");
	assert_refused(nvtaskset_set_parse_list(&set, "0", 0, &error), INVALID, "limit 0: must be 1-256");
	assert_refused(nvtaskset_set_parse_mask(&set, "1", 257, &error), INVALID, "limit 257: must be 1-256");
	assert_list(set, "1-3");
}

/* --- GPUs ----------------------------------------------------------------------------------------------------------- */

/* What is described is tested in Python. */
TEST(topology)
{
	struct nvtaskset_gpu gpu = {.size = sizeof gpu};
	unsigned int number = 7;

	assert_int_equal(nvtaskset_topology_gpu_count(topology), 2);
	assert_int_equal(nvtaskset_gpu_describe(topology, 1, &gpu, NULL), 0);
	assert_int_equal(nvtaskset_topology_find_gpu(topology, gpu.bus_id, &number, NULL), 0);
	assert_int_equal(number, 1);
	assert_int_equal(nvtaskset_gpu_gpc_of(topology, 0, 62), 1);
	assert_true(nvtaskset_gpu_virtual_gpc_of(topology, 0, 62) >= (int)gpu.gpc_limit);
}

#define UUID "GPU-01234567-89ab-cdef-0123-456789abcdef"

/* The UUID as nvidia-smi writes it, or in capitals. */
TEST(a_gpu_by_its_uuid)
{
	char path[] = "/tmp/nvtaskset-api-XXXXXX";
	struct nvtaskset_topology *one;
	unsigned int number = 7;

	close(mkstemp(path));
	assert_int_equal(system(text_of("sed 's/^ *compute/uuid " UUID "\\n&/' share/topologies/h200.txt >%s", path)), 0);
	setenv("NVTASKSET_TOPOLOGY", path, 1);
	assert_int_equal(nvtaskset_topology_load(&one, NULL), 0);
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200-x2.txt", 1);
	unlink(path);
	assert_int_equal(nvtaskset_topology_find_gpu(one, UUID, &number, NULL), 0);
	assert_int_equal(number, 0);
	assert_int_equal(nvtaskset_topology_find_gpu(one, "gpu-01234567-89AB-CDEF-0123-456789ABCDEF", &number, NULL), 0);
	assert_int_equal(nvtaskset_topology_find_gpu(one, "GPU-01234567", &number, NULL), -1);
	nvtaskset_topology_free(one);
}

TEST(gpus_and_gpcs_that_do_not_exist)
{
	struct nvtaskset_gpu gpu = {.size = sizeof gpu};
	unsigned int number = 7;

	assert_refused(nvtaskset_gpu_describe(topology, 2, &gpu, &error), NOT_KNOWN, "GPU 2: this machine has GPUs 0-1");
	assert_list(nvtaskset_gpu_tpcs(topology, 2), "");
	assert_list(nvtaskset_gpu_tpcs_of_gpc(topology, 0, 8), "");
	assert_list(nvtaskset_gpu_tpcs_of_gpc(topology, 0, UINT16_MAX), "");
	assert_list(nvtaskset_gpu_tpcs_of_gpc(topology, 2, 0), "");
	assert_int_equal(nvtaskset_gpu_gpc_of(topology, 0, 66), -1);
	assert_int_equal(nvtaskset_gpu_virtual_gpc_of(topology, 2, 0), -1);
	assert_refused(nvtaskset_topology_find_gpu(topology, "0000:ff:1f.0", &number, &error), NOT_KNOWN,
	               "GPU '0000:ff:1f.0': no GPU here has this bus id or UUID");
	assert_int_equal(nvtaskset_topology_find_gpu(topology, "", &number, &error), -1);
	assert_int_equal(number, 7);
}

TEST(no_topology)
{
	struct nvtaskset_topology *none = topology;

	setenv("NVTASKSET_TOPOLOGY", "/nowhere", 1);
	assert_refused_for(nvtaskset_topology_load(&none, &error), NOT_KNOWN, "/nowhere");
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200-x2.txt", 1);
	assert_ptr_equal(none, topology);
	nvtaskset_topology_free(NULL);
}

/* A size that a program forgot to set has any value; then nothing is written. */
TEST(sizes_of_no_version)
{
	static const size_t sizes[] = {0, 1, sizeof(size_t), offsetof(struct nvtaskset_gpu, gpc_limit),
	                               sizeof(struct nvtaskset_gpu) - 1, sizeof(struct nvtaskset_gpu) + 1,
	                               sizeof(struct nvtaskset_gpu) + sizeof(size_t), 4096, PTRDIFF_MAX, SIZE_MAX};
	union {
		struct nvtaskset_gpu gpu;
		unsigned char bytes[8192];
	} given, expected;

	memset(&given, 0xee, sizeof given);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		given.gpu.size = sizes[i];
		expected = given;
		assert_error_code(nvtaskset_gpu_describe(topology, 0, &given.gpu, &error), INVALID);
		assert_memory_equal(&given, &expected, sizeof given);
	}
	given.gpu.size = 7;
	assert_refused(nvtaskset_gpu_describe(topology, 0, &given.gpu, &error), INVALID,
	               "the member `size` is 7, which is wrong: set it to the size of the struct");
	given.gpu.size = sizeof given.gpu;
	expected = given;
	assert_int_equal(nvtaskset_gpu_describe(topology, 0, &given.gpu, NULL), 0);
	assert_each(given.gpu.size, sizeof given.gpu, given.gpu.gpc_limit, 8);
	assert_memory_equal(given.bytes + sizeof given.gpu, expected.bytes + sizeof given.gpu, sizeof given - sizeof given.gpu);
}

/* --- processes -------------------------------------------------------------------------------------------------------- */

static const struct pci_address pci[] = {{.bus = 0, .device = 6}, {.bus = 0, .device = 7}};

static struct segment owned;

static struct counts_areas areas;
static struct counts_place *place;

/* A graph of one kernel, of which nobody knows when it began. */
static void run_graph(void)
{
	static struct timestamps_areas timestamps_areas;
	static const char exec, lonely;
	struct timestamps_node node = {.exec = &exec, .function = &lonely, .tpcs = 8};
	struct timestamps *stamps = timestamps_take(&timestamps_areas, &owned, 0, pci[1], UINT64_MAX, NULL);

	must(stamps != NULL);
	timestamps_begin(stamps, true);
	struct timestamps_cell cell = timestamps_add_node(stamps, &node);
	node.nodes = 1;
	struct timestamps_cell share = timestamps_add_node(stamps, &node);
	struct timestamp *stamp = (struct timestamp *)((char *)timestamps_cells(stamps) + cell.at);
	uint64_t now = process_clock_ns();

	timestamps_name(stamps, &lonely, "lonely");
	timestamps_add_graph(stamps, &(const struct timestamps_graph){now, &exec, 1, cell.number, cell.number, share.number, 1});
	atomic_store(&stamp->time, process_clock_ns());
	atomic_store(&stamp->number, cell.number);
}

static void obey(char order)
{
	struct segment_revision revision = {.count = 0};
	struct stat status;

	switch (order) {
	case 'c': /* closes a file that it did not open: the segment's */
		close(owned.file);
		break;
	case 'm': /* and moves to a new one */
		close(owned.file);
		must(segment_keep_findable(&owned, NULL) == 0);
		break;
	case 'n': /* as a program that has gained privileges */
		segment_close(&owned);
		must(segment_create(&owned, &revision, NULL, -1, -1, NULL) == 0);
		segment_set_at_work(&owned);
		break;
	case 'o':
		segment_set_in_force(&owned, false);
		break;
	case 'l':
		segment_count_launch(&owned, true);
		segment_count_launch(&owned, true);
		segment_count_launch(&owned, false);
		segment_count_reason(&owned, SEGMENT_WIDENED);
		break;
	case 'k': /* five kernels on GPU 1, of which three end, as the hardware would count them */
		place = counts_take(&areas, &owned, pci[1], UINT64_MAX, 0, NULL);
		must(place != NULL);
		counts_begin(place);
		for (unsigned int i = 0; i < 5; i++)
			counts_launch_shared(place);
		atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), 3);
		atomic_fetch_add(counts_ended(place, COUNTS_UNHEARD), 1);
		break;
	case 't':
		run_graph();
		break;
	case 's': /* somebody else uses a release slot */
		counts_note_gap(place, COUNTS_SLOT_USED);
		break;
	case 'a': /* closes the counts' file */
		close(areas.list[0].area.file);
		break;
	case 'H': /* as a client of MPS */
		segment_set_time_used(&owned, 12, 34, 5);
		segment_set_time_held(&owned, 6);
		segment_set_time_state(&owned, SEGMENT_TIME_HELD, segment_revision_number(&owned));
		break;
	case 'h': /* hides from all users but root */
		prctl(PR_SET_DUMPABLE, 0);
		break;
	case 'v': /* another version */
		*((uint32_t *)owned.number - 14) += 1;
		break;
	case 'g': /* garbage */
		assert_int_equal(fstat(owned.file, &status), 0);
		memset((char *)owned.number, 0x7f, (size_t)status.st_size - 64);
		break;
	default:
		load_a_driver();
		revision = (struct segment_revision){.count = 1, .partitions = {{.pci = pci[0]}}};
		tpcset_add_range(&revision.partitions[0].set, 0, 7);
		must(segment_create(&owned, &revision, NULL, -1, -1, NULL) == 0);
		segment_set_at_work(&owned);
		break;
	}
}

/* Each case has a process with a partition, TPCs 0-7 of GPU 0, and has opened that. */
static struct process process;
static struct nvtaskset_partition *partition;

static struct nvtaskset_partition *open_partition(const struct process *of)
{
	struct nvtaskset_partition *opened;

	assert_int_equal(nvtaskset_partition_open(&opened, topology, of->pid, NULL), 0);
	return opened;
}

FIXTURE(start)
{
	process = process_start(obey);
	partition = open_partition(&process);
}

static void order(char letter)
{
	process_order(&process, letter);
}

FIXTURE(end)
{
	nvtaskset_partition_close(partition);
	processes_end();
}

static int set_list(struct nvtaskset_partition *of, unsigned int gpu, const char *list)
{
	struct nvtaskset_set set = parse(list);

	return nvtaskset_partition_set(of, gpu, &set, &error);
}

static void assert_partition(struct nvtaskset_partition *of, unsigned int gpu, const char *list)
{
	struct nvtaskset_set set;

	assert_int_equal(nvtaskset_partition_get(of, gpu, &set, NULL), 0);
	assert_list(set, list);
}

TEST(failures_leak_no_memory)
{
	struct nvtaskset_partition *none;
	size_t before = 0;

	for (int i = 0; i < 2000; i++) {
		/* By then, all memory that is kept for the next call has been allocated. */
		if (i == 1000)
			before = mallinfo2().uordblks;
		assert_int_equal(nvtaskset_partition_open(&none, topology, getppid(), NULL), -1);
	}
	assert_in_range(mallinfo2().uordblks, 0, before + 1000);
}

TEST(tpcs_that_are_not_there)
{
	struct nvtaskset_gpu gpu = {.size = sizeof gpu};
	struct segment_partition wrong = {.set = {{UINT64_C(1) << 3, 0, 0, 1}}};
	struct segment segment;

	assert_int_equal(nvtaskset_gpu_describe(topology, 0, &gpu, NULL), 0);
	assert_int_equal(pci_address_parse(&wrong.pci, gpu.bus_id, NULL), 0);
	assert_int_equal(segment_open(&segment, process.pid, NULL, NULL), SEGMENT_FOUND);
	assert_int_equal(segment_change(&segment, &(struct segment_revision){.count = 1, .partitions[0] = wrong}, NULL, NULL), 0);
	segment_close(&segment);
	assert_partition(partition, 0, "3");
}

TEST(counters)
{
	struct nvtaskset_counters counters = {.size = sizeof counters}, unset = {.size = 0};
	unsigned int reason = 0;

	order('l');
	assert_int_equal(nvtaskset_partition_counters(partition, &counters, NULL), 0);
	assert_each(counters.restricted, 2, counters.unrestricted, 1, counters.refreshed, 0);
	while (counters.reasons[reason] == 0)
		reason++;
	assert_int_equal(counters.reasons[reason], 1);
	assert_non_null(strstr(nvtaskset_reason_text(reason), "it was widened"));
	assert_null(nvtaskset_reason_text(NVTASKSET_REASONS_MAX));
	assert_int_equal(nvtaskset_partition_counters(partition, &unset, NULL), -1);
}

static struct nvtaskset_kernels kernels_on(unsigned int gpu)
{
	struct nvtaskset_kernels kernels = {.size = sizeof kernels};

	assert_int_equal(nvtaskset_partition_kernels(partition, gpu, &kernels, NULL), 0);
	return kernels;
}

static void assert_kernels(struct nvtaskset_kernels kernels, uint64_t launched, uint64_t ended, uint64_t in_flight)
{
	assert_each(kernels.launched, launched, kernels.ended, ended, kernels.in_flight, in_flight);
	assert_each(kernels.launched_is_known, 1, kernels.ended_is_known, 1, kernels.gaps, 0);
}

TEST(held)
{
	struct nvtaskset_quota quota = {.size = sizeof quota};
	struct nvtaskset_rank rank = {.size = sizeof rank};

	assert_int_equal(nvtaskset_partition_set_quota(partition, 30000, 100000, NULL), 0);
	assert_int_equal(nvtaskset_partition_set_priority(partition, 20, NULL), 0);
	order('H');
	assert_int_equal(nvtaskset_partition_quota(partition, &quota, NULL), 0);
	assert_int_equal(nvtaskset_partition_rank(partition, &rank, NULL), 0);
	assert_true(quota.in_force && rank.in_force);
	assert_non_null(strstr(nvtaskset_quota_text(rank.state), "launches are held back"));
	assert_each(quota.present_us, 12, quota.aside_us, 34);
	assert_true(quota.bounded == 5 && rank.bounded == 5);
	assert_true(quota.held == 6 && rank.held == 6);
}

TEST(kernels)
{
	struct nvtaskset_kernels unset = {.size = 0};

	assert_kernels(kernels_on(1), 0, 0, 0);
	order('k');
	assert_kernels(kernels_on(0), 0, 0, 0);
	assert_kernels(kernels_on(1), 6, 4, 2);
	assert_int_equal(kernels_on(1).unannounced, 1);
	assert_error_code(nvtaskset_partition_kernels(partition, 1, &unset, &error), INVALID);
	assert_error_code(nvtaskset_partition_kernels(partition, 2, &unset, &error), NOT_KNOWN);
}

TEST(kernels_that_are_not_counted)
{
	struct nvtaskset_kernels kernels = {.size = sizeof kernels};

	order('k');
	order('s');
	assert_each(kernels_on(1).launched_is_known, 1, kernels_on(1).ended_is_known, 0);
	assert_int_equal(kernels_on(1).gaps, UINT64_C(1) << COUNTS_SLOT_USED);
	assert_string_equal(nvtaskset_gap_text(COUNTS_SLOT_USED), counts_gap_text(COUNTS_SLOT_USED));
	assert_null(nvtaskset_gap_text(COUNTS_GAP_COUNT));
	assert_int_equal(kernels_on(0).gaps, 0);
	order('a');
	assert_each(kernels_on(0).gaps, UINT64_C(1) << COUNTS_CLOSED, kernels_on(0).launched_is_known, 0);
	process_end(&process);
	assert_error_code(nvtaskset_partition_kernels(partition, 1, &kernels, &error), ENDED);
	/* Its memory is still there to be written. */
	assert_refused_for(set_list(partition, 0, "1"), ENDED, ": has ended");
}

/* As long as a library is not in force, it hears of nothing. */
TEST(kernels_of_a_library_that_is_not_in_force)
{
	order('k');
	order('o');
	assert_each(kernels_on(1).launched_is_known, 0, kernels_on(1).ended_is_known, 0);
}

/* What they see of programs that run is tested in Python, where these are started. */
TEST(watchers)
{
	struct nvtaskset_watcher *watcher = NULL;
	struct nvtaskset_times times = {.size = 0};
	struct nvtaskset_function function = {.size = 0};

	assert_error_code(nvtaskset_watcher_open(&watcher, topology, 0, &error), INVALID);
	assert_error_code(nvtaskset_watcher_open(&watcher, topology, getpid(), &error), NO_CUDA);
	assert_null(watcher);
	assert_int_equal(nvtaskset_watcher_open(&watcher, topology, process.pid, NULL), 0);
	assert_error_code(nvtaskset_watcher_times(watcher, 0, &times, &error), INVALID);
	times.size = sizeof times;
	assert_error_code(nvtaskset_watcher_times(watcher, 2, &times, &error), NOT_KNOWN);
	assert_refused(nvtaskset_watcher_function(watcher, 0, &function, &error), INVALID, "function 0: there are 0");
	/* It has run, and for how long is not known. */
	order('t');
	assert_int_equal(nvtaskset_watcher_look(watcher, 0, NULL), 0);
	assert_error_code(nvtaskset_watcher_function(watcher, 0, &function, &error), INVALID);
	function.size = sizeof function;
	assert_int_equal(nvtaskset_watcher_function(watcher, 0, &function, NULL), 0);
	assert_string_equal(function.name, "lonely");
	assert_each(function.instances, 1, function.timed, 0, function.total_ns, NVTASKSET_UNKNOWN);
	assert_each(function.average_ns, NVTASKSET_UNKNOWN, function.median_ns, NVTASKSET_UNKNOWN);
	assert_each(function.min_ns, NVTASKSET_UNKNOWN, function.max_ns, NVTASKSET_UNKNOWN);
	assert_each(function.deviation_ns, NVTASKSET_UNKNOWN);
	process_end(&process);
	assert_error_code(nvtaskset_watcher_look(watcher, 1000000, &error), ENDED);
	nvtaskset_watcher_close(watcher);
	nvtaskset_watcher_close(NULL);
}

static int open_in_vain(void)
{
	struct nvtaskset_partition *none = NULL;
	int result = nvtaskset_partition_open(&none, topology, process.pid, &error);

	assert_null(none);
	return result;
}

/* The same as another user than root. */
TEST(not_permitted)
{
	struct nvtaskset_error *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct nvtaskset_partition *none;

	order('h');
	assert_ptr_not_equal(shared, MAP_FAILED);
	pid_t child = fork();

	if (child == 0) {
		must(geteuid() != 0 || setuid(65534) == 0);
		_exit(nvtaskset_partition_open(&none, topology, process.pid, shared) < 0 ? 0 : 1);
	}
	assert_ends_well(child);
	assert_int_equal(shared->code, NVTASKSET_ERROR_NOT_PERMITTED);
	munmap(shared, sizeof *shared);
}

/* A zombie: nobody has waited for it yet. */
TEST(process_that_is_dead_and_listed)
{
	kill(process.pid, SIGKILL);
	process_wait(&process, WEXITED);
	assert_error_code(open_in_vain(), ENDED);
}

TEST(another_partition_in_the_process)
{
	order('n');
	assert_refused_for(nvtaskset_partition_check(partition, &error), STALE, "has a new partition: open it again");
}

TEST(partition_that_is_not_in_force)
{
	order('o');
	assert_refused_for(nvtaskset_partition_check(partition, &error), NOT_IN_FORCE, "its partition is not in force");
	assert_int_equal(set_list(partition, 0, "1"), 0);
	assert_partition(partition, 0, "1");
}

/* Every function follows the process to its new file. */
TEST(partition_that_moves)
{
	struct nvtaskset_partition *other = open_partition(&process);
	struct nvtaskset_counters counters = {.size = sizeof counters};

	order('c');
	assert_int_equal(nvtaskset_partition_check(partition, NULL), 0);
	assert_int_equal(set_list(partition, 0, "5"), 0);
	order('m');
	assert_int_equal(set_list(partition, 0, "6"), 0);
	assert_partition(other, 0, "6");
	order('m');
	order('l');
	assert_int_equal(nvtaskset_partition_counters(partition, &counters, NULL), 0);
	assert_int_equal(counters.restricted, 2);
	order('m');
	assert_int_equal(nvtaskset_partition_check(partition, NULL), 0);
	assert_int_equal(set_list(other, 0, "9"), 0);
	assert_partition(partition, 0, "9");
	nvtaskset_partition_close(other);
}

/* The process moved and then closed the new file too, or ended: there is no file to follow it to. */
TEST(partition_that_is_gone)
{
	struct nvtaskset_counters counters = {.size = sizeof counters};
	struct nvtaskset_set set;

	order('m');
	order('c');
	assert_refused_for(set_list(partition, 0, "1"), OUT_OF_REACH, "has closed the file of its partition");
	assert_error_code(open_in_vain(), OUT_OF_REACH);
	assert_int_equal(nvtaskset_partition_get(partition, 0, &set, &error), -1);
	process_end(&process);
	assert_error_code(nvtaskset_partition_counters(partition, &counters, &error), ENDED);
	assert_int_equal(nvtaskset_partition_check(partition, NULL), -1);
}

TEST(damaged_partition)
{
	struct nvtaskset_set set = parse("3");

	order('v');
	assert_error_code(open_in_vain(), DAMAGED);
	order('g');
	assert_refused_for(nvtaskset_partition_get(partition, 0, &set, &error), DAMAGED, "its segment is damaged");
	assert_list(set, "3");
	assert_refused_for(set_list(partition, 0, "1"), DAMAGED, "its segment is damaged");
}

TEST(no_descriptor_is_left_open)
{
	int before = count_descriptors();

	for (int i = 0; i < 10; i++) {
		struct nvtaskset_partition *one = open_partition(&process);

		assert_int_equal(nvtaskset_partition_check(one, NULL), 0);
		order('m');
		assert_int_equal(set_list(one, 0, "1"), 0);
		nvtaskset_partition_close(one);
		assert_int_equal(nvtaskset_partition_open(&one, topology, getpid(), NULL), -1);
	}
	assert_int_equal(count_descriptors(), before);
}

RUN_TESTS_ALONE(load_two_gpus, free_topology, start, end)
