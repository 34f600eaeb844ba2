/* nvtaskset.h, as used by a program that changes other processes' partitions. This test makes those processes. */
#include "base/process_clock.h"
#include "cuda_process.h"
#include "nvtaskset.h"
#include "process.h"
#include "state/counts.h"
#include "state/layout.h"
#include "state/look.h"
#include "state/stamps_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct nvtaskset_topology *topology;

static int load_two_gpus(void **state)
{
	(void)state;
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200-x2.txt", 1);
	return nvtaskset_topology_load(&topology, NULL);
}

static int free_topology(void **state)
{
	(void)state;
	nvtaskset_topology_free(topology);
	return 0;
}

static struct nvtaskset_set parse(const char *list)
{
	struct nvtaskset_set set = {{0}};

	assert_int_equal(nvtaskset_set_parse_list(&set, list, NVTASKSET_TPCS_MAX, NULL), 0);
	return set;
}

#define assert_code(error, expected) assert_int_equal((error).code, NVTASKSET_ERROR_##expected)

static void assert_list(struct nvtaskset_set set, const char *list)
{
	char text[NVTASKSET_SET_TEXT];

	assert_string_equal(nvtaskset_set_format_list(&set, text), list);
}

/* --- sets --------------------------------------------------------------------------------------------------------- */

static void test_sets(void **state)
{
	struct nvtaskset_set a = {{0}}, b = parse("4-7,200");
	char text[NVTASKSET_SET_TEXT];

	(void)state;
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

static void test_a_mistake_leaves_the_set(void **state)
{
	struct nvtaskset_set set = parse("1-3");
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(nvtaskset_set_parse_list(&set, "5,66", 66, &error), -1);
	assert_string_equal(error.reason, "TPC 66: this GPU has TPCs 0-65");
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_set_parse_mask(&set, "xyz", 66, &error), -1);
	assert_string_equal(error.reason, "'xyz': not a hexadecimal mask");
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_set_parse_list(&set, "0", 0, &error), -1);
	assert_string_equal(error.reason, "limit 0: must be 1-256");
	assert_int_equal(nvtaskset_set_parse_mask(&set, "1", 257, &error), -1);
	assert_string_equal(error.reason, "limit 257: must be 1-256");
	assert_code(error, INVALID);
	assert_list(set, "1-3");
}

/* --- GPUs ----------------------------------------------------------------------------------------------------------- */

static void test_topology(void **state)
{
	struct nvtaskset_gpu gpu = {.size = sizeof gpu};
	unsigned int number = 7;

	(void)state;
	assert_int_equal(nvtaskset_topology_gpu_count(topology), 2);
	assert_int_equal(nvtaskset_gpu_describe(topology, 1, &gpu, NULL), 0);
	assert_string_equal(gpu.name, "NVIDIA H200");
	assert_int_equal(gpu.compute_major, 9);
	assert_int_equal(gpu.compute_minor, 0);
	assert_int_equal(gpu.tpc_count, 66);
	assert_int_equal(gpu.sms_per_tpc, 2);
	assert_int_equal(gpu.gpc_limit, 8);
	assert_int_equal(nvtaskset_topology_find_gpu(topology, gpu.bus_id, &number, NULL), 0);
	assert_int_equal(number, 1);
	assert_list(nvtaskset_gpu_tpcs(topology, 0), "0-65");
	assert_list(nvtaskset_gpu_tpcs_of_gpc(topology, 0, 1), "0,8,16,24,62-65");
	assert_list(nvtaskset_gpu_tpcs_of_virtual_gpc(topology, 0, 0), "0,8,16,24");
	assert_int_equal(nvtaskset_gpu_gpc_of(topology, 0, 62), 1);
	assert_true(nvtaskset_gpu_virtual_gpc_of(topology, 0, 62) >= (int)gpu.gpc_limit);
}

/* The UUID as nvidia-smi writes it, or in capitals. */
static void test_a_gpu_by_its_uuid(void **state)
{
	char path[] = "/tmp/nvtaskset-api-XXXXXX", line[256];
	int file = mkstemp(path);
	FILE *from = fopen("share/topologies/h200.txt", "r"), *to = fdopen(file, "w");
	struct nvtaskset_topology *one;
	unsigned int number = 7;

	(void)state;
	assert_non_null(from);
	assert_non_null(to);
	while (fgets(line, sizeof line, from)) {
		if (strncmp(line, "  compute", strlen("  compute")) == 0)
			fputs("  uuid GPU-01234567-89ab-cdef-0123-456789abcdef\n", to);
		fputs(line, to);
	}
	fclose(from);
	fclose(to);
	setenv("NVTASKSET_TOPOLOGY", path, 1);
	assert_int_equal(nvtaskset_topology_load(&one, NULL), 0);
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200-x2.txt", 1);
	unlink(path);
	assert_int_equal(nvtaskset_topology_find_gpu(one, "GPU-01234567-89ab-cdef-0123-456789abcdef", &number, NULL), 0);
	assert_int_equal(number, 0);
	assert_int_equal(nvtaskset_topology_find_gpu(one, "gpu-01234567-89AB-CDEF-0123-456789ABCDEF", &number, NULL), 0);
	assert_int_equal(nvtaskset_topology_find_gpu(one, "GPU-01234567", &number, NULL), -1);
	nvtaskset_topology_free(one);
}

static void test_gpus_and_gpcs_that_do_not_exist(void **state)
{
	struct nvtaskset_gpu gpu = {.size = sizeof gpu};
	struct nvtaskset_error error;
	unsigned int number = 7;

	(void)state;
	assert_int_equal(nvtaskset_gpu_describe(topology, 2, &gpu, &error), -1);
	assert_string_equal(error.reason, "GPU 2: this machine has GPUs 0-1");
	assert_code(error, NOT_KNOWN);
	assert_list(nvtaskset_gpu_tpcs(topology, 2), "");
	assert_list(nvtaskset_gpu_tpcs_of_gpc(topology, 0, 8), "");
	assert_list(nvtaskset_gpu_tpcs_of_gpc(topology, 0, UINT16_MAX), "");
	assert_list(nvtaskset_gpu_tpcs_of_gpc(topology, 2, 0), "");
	assert_int_equal(nvtaskset_gpu_gpc_of(topology, 0, 66), -1);
	assert_int_equal(nvtaskset_gpu_virtual_gpc_of(topology, 2, 0), -1);
	assert_int_equal(nvtaskset_topology_find_gpu(topology, "0000:ff:1f.0", &number, &error), -1);
	assert_string_equal(error.reason, "GPU '0000:ff:1f.0': no GPU here has this bus id or UUID");
	assert_code(error, NOT_KNOWN);
	assert_int_equal(nvtaskset_topology_find_gpu(topology, "", &number, &error), -1);
	assert_int_equal(number, 7);
}

static void test_groups_that_are_unknown(void **state)
{
	struct nvtaskset_topology *turing;

	(void)state;
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/turing.txt", 1);
	assert_int_equal(nvtaskset_topology_load(&turing, NULL), 0);
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200-x2.txt", 1);
	assert_int_equal(nvtaskset_gpu_virtual_gpc_of(turing, 0, 0), -1);
	assert_list(nvtaskset_gpu_tpcs_of_virtual_gpc(turing, 0, UINT16_MAX), "");
	nvtaskset_topology_free(turing);
}

static void test_no_topology(void **state)
{
	struct nvtaskset_topology *none = topology;
	struct nvtaskset_error error;

	(void)state;
	setenv("NVTASKSET_TOPOLOGY", "/nowhere", 1);
	assert_int_equal(nvtaskset_topology_load(&none, &error), -1);
	assert_non_null(strstr(error.reason, "/nowhere"));
	assert_code(error, NOT_KNOWN);
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200-x2.txt", 1);
	assert_ptr_equal(none, topology);
	nvtaskset_topology_free(NULL);
}

/* A size that a program forgot to set has any value; then nothing is written. */
static void test_sizes_of_no_version(void **state)
{
	static const size_t sizes[] = {0, 1, sizeof(size_t), offsetof(struct nvtaskset_gpu, gpc_limit),
	                               sizeof(struct nvtaskset_gpu) - 1, sizeof(struct nvtaskset_gpu) + 1,
	                               sizeof(struct nvtaskset_gpu) + sizeof(size_t), 4096, PTRDIFF_MAX, SIZE_MAX};
	union {
		struct nvtaskset_gpu gpu;
		unsigned char bytes[8192];
	} given, expected;
	struct nvtaskset_error error;

	(void)state;
	memset(&given, 0xee, sizeof given);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		given.gpu.size = sizes[i];
		expected = given;
		assert_int_equal(nvtaskset_gpu_describe(topology, 0, &given.gpu, &error), -1);
		assert_memory_equal(&given, &expected, sizeof given);
		assert_code(error, INVALID);
	}
	given.gpu.size = 7;
	assert_int_equal(nvtaskset_gpu_describe(topology, 0, &given.gpu, &error), -1);
	assert_string_equal(error.reason, "the member `size` is 7, which is wrong: set it to the size of the struct");
	given.gpu.size = sizeof given.gpu;
	expected = given;
	assert_int_equal(nvtaskset_gpu_describe(topology, 0, &given.gpu, NULL), 0);
	assert_int_equal(given.gpu.size, sizeof given.gpu);
	assert_int_equal(given.gpu.gpc_limit, 8);
	assert_memory_equal(given.bytes + sizeof given.gpu, expected.bytes + sizeof given.gpu,
	                    sizeof given - sizeof given.gpu);
}

static void test_choice(void **state)
{
	struct nvtaskset_set used = nvtaskset_gpu_tpcs_of_gpc(topology, 0, 2), chosen = {{0}}, both;
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(nvtaskset_gpu_choose(topology, 0, &used, 8, NVTASKSET_PACKED, &chosen, NULL), 0);
	both = nvtaskset_set_and(&used, &chosen);
	assert_int_equal(nvtaskset_set_count(&chosen), 8);
	assert_int_equal(nvtaskset_set_count(&both), 0);
	assert_int_equal(nvtaskset_gpu_choose(topology, 0, NULL, 8, NVTASKSET_DISTRIBUTED, &chosen, NULL), 0);
	for (unsigned int gpc = 0; gpc < 8; gpc++) {
		struct nvtaskset_set members = nvtaskset_gpu_tpcs_of_gpc(topology, 0, gpc);

		both = nvtaskset_set_and(&members, &chosen);
		assert_int_equal(nvtaskset_set_count(&both), 1);
	}
	both = chosen;
	assert_int_equal(nvtaskset_gpu_choose(topology, 0, &used, 59, NVTASKSET_PACKED, &chosen, &error), -1);
	assert_code(error, NO_ROOM);
	assert_int_equal(nvtaskset_gpu_choose(topology, 2, NULL, 1, NVTASKSET_PACKED, &chosen, &error), -1);
	assert_int_equal(nvtaskset_gpu_choose(topology, 0, NULL, 0, NVTASKSET_PACKED, &chosen, &error), -1);
	assert_string_equal(error.reason, "0 TPCs: a program without TPCs would never run");
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_gpu_choose(topology, 0, NULL, 1, (enum nvtaskset_strategy)9, &chosen, &error), -1);
	assert_string_equal(error.reason, "strategy 9: no such strategy");
	assert_code(error, INVALID);
	assert_true(nvtaskset_set_equal(&both, &chosen));
}

/* --- processes -------------------------------------------------------------------------------------------------------- */

static const struct pci_address pci[] = {{.bus = 0, .device = 6}, {.bus = 0, .device = 7}};

static struct segment owned;

static void have_partition(void)
{
	struct segment_revision revision = {.count = 1, .partitions = {{.pci = pci[0]}}};

	load_a_driver();
	tpcset_add_range(&revision.partitions[0].set, 0, 7);
	if (segment_create(&owned, &revision, -1, NULL) < 0)
		_exit(1);
	segment_set_at_work(&owned);
}

static struct counts_areas areas;
static struct counts_place *place;

/* Launches kernels on GPU 1, of which some end, as the hardware would count them. */
static void run_kernels(unsigned int launched, unsigned int ended)
{
	struct error error;

	if (!place)
		place = counts_take(&areas, &owned, pci[1], UINT64_MAX, 0, &error);
	if (!place)
		_exit(1);
	counts_begin(place);
	for (unsigned int i = 0; i < launched; i++)
		counts_launch_shared(place);
	atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), ended);
	atomic_fetch_add(counts_ended(place, COUNTS_UNHEARD), 1);
}

/* --- kernels with times --------------------------------------------------------------------------------------------- */

static struct stamps_areas stamps_areas;
static struct stamps *stamps;

#define KERNEL_NS 5000000

static void begin_stamps(bool is_shared)
{
	struct error error;

	stamps = stamps_take(&stamps_areas, &owned, 0, pci[1], UINT64_MAX, &error);
	if (!stamps)
		_exit(1);
	stamps_begin(stamps, is_shared);
}

static void write_stamp(struct stamps_cell cell)
{
	struct stamps_stamp *stamp = (struct stamps_stamp *)((char *)stamps_cells(stamps) + cell.at);

	atomic_store(&stamp->time, process_clock_ns());
	atomic_store(&stamp->number, cell.number);
}

/* Runs a kernel on 8 TPCs of GPU 1, which tells its end as the hardware would. */
static void run_kernel_with_time(const void *function, const char *name, uint64_t ns)
{
	const struct stamps_launch launch = {.launched_ns = process_clock_ns(), .function = function, .stream = (uintptr_t)&owned, .tpcs = 8};
	struct stamps_cell cell = stamps_add_launch(stamps, &launch);

	stamps_name(stamps, function, name);
	while (process_clock_ns() < launch.launched_ns + ns)
		;
	write_stamp(cell);
}

/* The clocks are known by one that ended soon after it was launched. */
static void run_short_kernel(void)
{
	static const char nothing;

	run_kernel_with_time(&nothing, "nothing", 5000);
}

static void run_saxpy(void)
{
	static const char saxpy;

	run_kernel_with_time(&saxpy, "_Z5saxpyf", KERNEL_NS);
}

/* A graph of one kernel, of which nobody knows when it began. */
static void run_graph(void)
{
	static const char exec, lonely;
	struct stamps_cell cell = stamps_add_node(stamps, &(const struct stamps_node){&exec, &lonely, 8, 0});
	struct stamps_cell share = stamps_add_node(stamps, &(const struct stamps_node){&exec, &lonely, 8, 1});
	uint64_t now = process_clock_ns();

	stamps_name(stamps, &lonely, "lonely");
	stamps_add_graph(stamps, &(const struct stamps_graph){now, &exec, 1, cell.number, cell.number, share.number, 1});
	while (process_clock_ns() < now + KERNEL_NS)
		;
	write_stamp(cell);
}

static void obey(char order)
{
	struct segment_revision revision = {.count = 0};
	struct segment own;
	struct stat status;

	switch (order) {
	case 'c': /* closes a file that it did not open: the segment's */
		close(owned.file);
		break;
	case 'm': /* and moves to a new one */
		close(owned.file);
		if (segment_keep_findable(&owned, NULL) < 0)
			_exit(1);
		break;
	case 'n': /* as a program that has gained privileges */
		segment_close(&owned);
		if (segment_create(&owned, &revision, -1, NULL) < 0)
			_exit(1);
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
	case 'k':
		run_kernels(5, 3);
		break;
	case 'b':
	case 'p': /* in time slices */
		begin_stamps(order == 'b');
		break;
	case 'T':
		run_short_kernel();
		break;
	case 't':
		run_saxpy();
		break;
	case 'q':
		counts_note_gap_everywhere(&owned, COUNTS_OFF);
		break;
	case 'R':
		run_graph();
		break;
	case 'r': /* the GPU may not write there */
		stamps_note_gap(stamps, STAMPS_REFUSED);
		break;
	case 's': /* somebody else uses a release slot */
		counts_note_gap(place, COUNTS_SLOT_USED);
		break;
	case 'a': /* closes the counts' file */
		close(areas.list[0].file);
		break;
	case 'f': /* names as many GPUs as there is room for */
		assert_int_equal(segment_open(&own, getpid(), NULL), SEGMENT_FOUND);
		for (uint8_t bus = 1; bus < SEGMENT_GPUS; bus++) {
			if (segment_edit(&own, &(struct segment_partition){.pci.bus = bus}, 1, NULL, NULL) < 0)
				_exit(1);
		}
		segment_close(&own);
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
	case 'w': /* without a partition */
		segment_close(&owned);
		break;
	case 'g': /* garbage */
		assert_int_equal(fstat(owned.file, &status), 0);
		memset((char *)owned.number, 0x7f, (size_t)status.st_size - 64);
		break;
	default:
		have_partition();
		break;
	}
}

/* A process with a partition: TPCs 0-7 of GPU 0. */
static struct process start(void)
{
	return process_start(obey);
}

static struct nvtaskset_partition *open_partition(const struct process *process)
{
	struct nvtaskset_partition *partition;

	assert_int_equal(nvtaskset_partition_open(&partition, topology, process->pid, NULL), 0);
	return partition;
}

static int set_list(struct nvtaskset_partition *partition, unsigned int gpu, const char *list,
                    struct nvtaskset_error *error)
{
	struct nvtaskset_set set = parse(list);

	return nvtaskset_partition_set(partition, gpu, &set, error);
}

static void assert_partition(struct nvtaskset_partition *partition, unsigned int gpu, const char *list)
{
	struct nvtaskset_set set;

	assert_int_equal(nvtaskset_partition_get(partition, gpu, &set, NULL), 0);
	assert_list(set, list);
}

static void test_change(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process), *other = open_partition(&process);

	(void)state;
	assert_partition(partition, 0, "0-7");
	assert_partition(partition, 1, "0-65");
	assert_int_equal(set_list(partition, 0, "8-15", NULL), 0);
	assert_int_equal(set_list(partition, 1, "3", NULL), 0);
	assert_partition(other, 0, "8-15");
	assert_partition(other, 1, "3");
	assert_int_equal(nvtaskset_partition_check(partition, NULL), 0);
	nvtaskset_partition_close(partition);
	nvtaskset_partition_close(other);
	nvtaskset_partition_close(NULL);
	process_end(&process);
}

static void test_failures_leak_no_memory(void **state)
{
	struct nvtaskset_partition *partition;
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		/* By then, all memory that is kept for the next call has been allocated. */
		if (i == 1000)
			before = mallinfo2().uordblks;
		assert_int_equal(nvtaskset_partition_open(&partition, topology, getppid(), NULL), -1);
	}
	assert_in_range(mallinfo2().uordblks, 0, before + 1000);
}

static void test_tpcs_that_are_not_there(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_gpu gpu = {.size = sizeof gpu};
	struct segment_partition wrong = {.set = {{UINT64_C(1) << 3, 0, 0, 1}}};
	struct segment segment;

	(void)state;
	assert_int_equal(nvtaskset_gpu_describe(topology, 0, &gpu, NULL), 0);
	assert_int_equal(pci_address_parse(&wrong.pci, gpu.bus_id, NULL), 0);
	assert_int_equal(segment_open(&segment, process.pid, NULL), SEGMENT_FOUND);
	assert_int_equal(segment_edit(&segment, &wrong, 1, NULL, NULL), 0);
	segment_close(&segment);
	assert_partition(partition, 0, "3");
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static void test_sets_that_are_refused(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_set set = {{0}};
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(nvtaskset_partition_set(partition, 0, &set, &error), -1);
	assert_string_equal(error.reason, "an empty set: a program without TPCs would never run");
	assert_code(error, INVALID);
	assert_int_equal(set_list(partition, 0, "1,66", &error), -1);
	assert_string_equal(error.reason, "TPC 66: this GPU has TPCs 0-65");
	assert_code(error, NOT_KNOWN);
	assert_int_equal(set_list(partition, 2, "1", &error), -1);
	assert_string_equal(error.reason, "GPU 2: this machine has GPUs 0-1");
	assert_code(error, NOT_KNOWN);
	assert_int_equal(nvtaskset_partition_get(partition, 2, &set, &error), -1);
	assert_list(set, "");
	assert_int_equal(set_list(partition, 0, "66", NULL), -1);
	assert_partition(partition, 0, "0-7");
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static void test_counters(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_counters counters = {.size = sizeof counters}, unset = {.size = 0};
	unsigned int reason = 0;

	(void)state;
	process_order(&process, 'l');
	assert_int_equal(nvtaskset_partition_counters(partition, &counters, NULL), 0);
	assert_int_equal(counters.restricted, 2);
	assert_int_equal(counters.unrestricted, 1);
	assert_int_equal(counters.refreshed, 0);
	while (counters.reasons[reason] == 0)
		reason++;
	assert_int_equal(counters.reasons[reason], 1);
	assert_non_null(strstr(nvtaskset_reason_text(reason), "it was widened"));
	assert_null(nvtaskset_reason_text(NVTASKSET_REASONS_MAX));
	assert_int_equal(nvtaskset_partition_counters(partition, &unset, NULL), -1);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static struct nvtaskset_kernels kernels_on(struct nvtaskset_partition *partition, unsigned int gpu)
{
	struct nvtaskset_kernels kernels = {.size = sizeof kernels};

	assert_int_equal(nvtaskset_partition_kernels(partition, gpu, &kernels, NULL), 0);
	return kernels;
}

static void assert_kernels(struct nvtaskset_kernels kernels, uint64_t launched, uint64_t ended, uint64_t in_flight)
{
	assert_int_equal(kernels.launched, launched);
	assert_int_equal(kernels.ended, ended);
	assert_int_equal(kernels.in_flight, in_flight);
	assert_int_equal(kernels.launched_is_known, 1);
	assert_int_equal(kernels.ended_is_known, 1);
	assert_int_equal(kernels.gaps, 0);
}

static void test_quota(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_quota quota = {.size = sizeof quota}, unset = {.size = 0};
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(nvtaskset_partition_quota(partition, &quota, NULL), 0);
	assert_int_equal(quota.period_us, 0);
	assert_int_equal(nvtaskset_partition_set_quota(partition, 30000, 100000, NULL), 0);
	assert_int_equal(nvtaskset_partition_quota(partition, &quota, NULL), 0);
	assert_int_equal(quota.run_us, 30000);
	assert_int_equal(quota.period_us, 100000);
	assert_int_equal(quota.in_force, 0);
	assert_non_null(nvtaskset_quota_text(quota.state));
	assert_null(nvtaskset_quota_text(UINT32_MAX));
	assert_int_equal(nvtaskset_partition_set_quota(partition, 100, 100000, &error), -1);
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_partition_set_quota(partition, 30000, 20000000, &error), -1);
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_partition_quota(partition, &unset, &error), -1);
	assert_code(error, INVALID);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static void test_rank(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_rank rank = {.size = sizeof rank}, unset = {.size = 0};
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(nvtaskset_partition_rank(partition, &rank, NULL), 0);
	assert_int_equal(rank.priority, -1);
	assert_int_equal(rank.weight, 0);
	assert_int_equal(nvtaskset_partition_set_priority(partition, 0, NULL), 0);
	assert_int_equal(nvtaskset_partition_rank(partition, &rank, NULL), 0);
	assert_int_equal(rank.priority, 0);
	assert_int_equal(rank.weight, 0);
	assert_int_equal(nvtaskset_partition_set_priority(partition, 99, NULL), 0);
	assert_int_equal(nvtaskset_partition_set_weight(partition, 1, NULL), 0);
	assert_int_equal(nvtaskset_partition_set_weight(partition, 10000, NULL), 0);
	assert_int_equal(nvtaskset_partition_set_priority(partition, 100, &error), -1);
	assert_code(error, INVALID);
	assert_string_equal(error.reason, "priority 100: must be 0-99");
	assert_int_equal(nvtaskset_partition_set_weight(partition, 0, &error), -1);
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_partition_set_weight(partition, 10001, &error), -1);
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_partition_rank(partition, &rank, NULL), 0);
	assert_int_equal(rank.priority, 99);
	assert_int_equal(rank.weight, 10000);
	assert_int_equal(rank.in_force, 0);
	assert_int_equal(nvtaskset_partition_rank(partition, &unset, &error), -1);
	assert_code(error, INVALID);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static void test_held(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_quota quota = {.size = sizeof quota};
	struct nvtaskset_rank rank = {.size = sizeof rank};

	(void)state;
	assert_int_equal(nvtaskset_partition_set_quota(partition, 30000, 100000, NULL), 0);
	assert_int_equal(nvtaskset_partition_set_priority(partition, 20, NULL), 0);
	process_order(&process, 'H');
	assert_int_equal(nvtaskset_partition_quota(partition, &quota, NULL), 0);
	assert_int_equal(nvtaskset_partition_rank(partition, &rank, NULL), 0);
	assert_true(quota.in_force && rank.in_force);
	assert_non_null(strstr(nvtaskset_quota_text(rank.state), "launches are held back"));
	assert_int_equal(quota.present_us, 12);
	assert_int_equal(quota.aside_us, 34);
	assert_true(quota.bounded == 5 && rank.bounded == 5);
	assert_true(quota.held == 6 && rank.held == 6);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

/* What clients of MPS may have is tested in Python, where they are started. */
static void test_policy(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	char policy[NVTASKSET_POLICY];
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(nvtaskset_partition_policy(partition, policy, NULL), 0);
	assert_string_equal(policy, "");
	assert_int_equal(nvtaskset_partition_set_policy(partition, "ht,pe,", &error), -1);
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_partition_set_policy(partition, "ht", &error), -1);
	assert_code(error, INVALID);
	assert_non_null(strstr(error.reason, "nothing is held back without a quota or a priority"));
	assert_int_equal(nvtaskset_partition_set_quota(partition, 30000, 100000, NULL), 0);
	assert_int_equal(nvtaskset_partition_set_policy(partition, "ht", &error), -1);
	assert_code(error, INVALID);
	assert_non_null(strstr(error.reason, "under MPS only"));
	assert_int_equal(nvtaskset_partition_policy(partition, policy, NULL), 0);
	assert_string_equal(policy, "");
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static void test_kernels(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_kernels unset = {.size = 0};
	struct nvtaskset_error error;

	(void)state;
	assert_kernels(kernels_on(partition, 1), 0, 0, 0);
	process_order(&process, 'k');
	assert_kernels(kernels_on(partition, 0), 0, 0, 0);
	assert_kernels(kernels_on(partition, 1), 6, 4, 2);
	assert_int_equal(kernels_on(partition, 1).unannounced, 1);
	assert_int_equal(nvtaskset_partition_kernels(partition, 1, &unset, &error), -1);
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_partition_kernels(partition, 2, &unset, &error), -1);
	assert_code(error, NOT_KNOWN);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static void test_kernels_that_are_not_counted(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_kernels kernels = {.size = sizeof kernels};
	struct nvtaskset_error error;

	(void)state;
	process_order(&process, 'k');
	process_order(&process, 's');
	assert_int_equal(kernels_on(partition, 1).launched_is_known, 1);
	assert_int_equal(kernels_on(partition, 1).ended_is_known, 0);
	assert_int_equal(kernels_on(partition, 1).gaps, UINT64_C(1) << COUNTS_SLOT_USED);
	assert_string_equal(nvtaskset_gap_text(COUNTS_SLOT_USED), counts_gap_text(COUNTS_SLOT_USED));
	assert_null(nvtaskset_gap_text(COUNTS_GAP_COUNT));
	assert_int_equal(kernels_on(partition, 0).gaps, 0);
	process_order(&process, 'a');
	assert_int_equal(kernels_on(partition, 0).gaps, UINT64_C(1) << COUNTS_CLOSED);
	assert_int_equal(kernels_on(partition, 0).launched_is_known, 0);
	process_end(&process);
	assert_int_equal(nvtaskset_partition_kernels(partition, 1, &kernels, &error), -1);
	assert_code(error, ENDED);
	nvtaskset_partition_close(partition);
}

/* As long as a library is not in force, it hears of nothing. */
static void test_kernels_of_a_library_that_is_not_in_force(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);

	(void)state;
	process_order(&process, 'k');
	process_order(&process, 'o');
	assert_int_equal(kernels_on(partition, 1).launched_is_known, 0);
	assert_int_equal(kernels_on(partition, 1).ended_is_known, 0);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

/* --- times ----------------------------------------------------------------------------------------------------------- */

static struct nvtaskset_watcher *open_watcher(const struct process *process)
{
	struct nvtaskset_watcher *watcher = NULL;
	struct nvtaskset_error error;

	if (nvtaskset_watcher_open(&watcher, topology, process->pid, &error) < 0)
		fail_msg("%s", error.reason);
	return watcher;
}

static struct nvtaskset_times times_on(struct nvtaskset_watcher *watcher, unsigned int gpu)
{
	struct nvtaskset_times times = {.size = sizeof times};

	assert_int_equal(nvtaskset_watcher_times(watcher, gpu, &times, NULL), 0);
	return times;
}

static void assert_not_known(struct nvtaskset_times times, uint64_t gaps)
{
	assert_int_equal(times.is_known, 0);
	assert_true(times.busy_ns == NVTASKSET_UNKNOWN && times.tpc_ns == NVTASKSET_UNKNOWN);
	assert_int_equal(times.gaps, gaps);
}

static void look(struct nvtaskset_watcher *watcher, unsigned int milliseconds)
{
	assert_int_equal(nvtaskset_watcher_look(watcher, milliseconds, NULL), 0);
}

/* This machine may be interrupted between a kernel's end and the look. Returns how many kernels it took. */
static unsigned int make_clocks_known(const struct process *process, struct nvtaskset_watcher *watcher)
{
	unsigned int kernels = 0;

	do {
		process_order(process, 'T');
		look(watcher, 0);
		kernels++;
	} while (times_on(watcher, 1).error_ns > 50000 && kernels < 1000);
	return kernels;
}

static void test_times(void **state)
{
	struct process process = start();
	struct nvtaskset_watcher *watcher = open_watcher(&process);
	struct nvtaskset_function function = {.size = sizeof function};

	(void)state;
	/* Nothing is known before the first look; then that it has done nothing. */
	assert_not_known(times_on(watcher, 1), 0);
	look(watcher, 0);
	assert_int_equal(times_on(watcher, 1).is_known, 1);
	assert_int_equal(times_on(watcher, 1).busy_ns, 0);
	assert_int_equal(nvtaskset_watcher_function_count(watcher), 0);
	process_order(&process, 'b');
	look(watcher, 0);
	unsigned int kernels = make_clocks_known(&process, watcher);

	process_order(&process, 't');
	process_order(&process, 't');
	look(watcher, 120);
	struct nvtaskset_times times = times_on(watcher, 1);

	assert_int_equal(times.is_known, 1);
	assert_int_equal(times.is_presence, 0);
	assert_int_equal(times.timed, kernels + 2);
	assert_int_equal(times.lost, 0);
	assert_in_range(times.busy_ns, KERNEL_NS, times.span_ns - 100000000);
	assert_int_equal(times.tpc_ns, 8 * times.busy_ns);
	assert_true(times.span_ns >= 120000000 && times.span_ns <= times.elapsed_ns + 5000000);
	assert_int_equal(times_on(watcher, 0).busy_ns, 0);
	assert_int_equal(nvtaskset_watcher_function_count(watcher), 2);
	assert_int_equal(nvtaskset_watcher_function(watcher, 1, &function, NULL), 0);
	assert_string_equal(function.name, "_Z5saxpyf");
	assert_int_equal(function.instances, 2);
	assert_int_equal(function.timed, 2);
	assert_in_range(function.min_ns, KERNEL_NS / 2, function.average_ns);
	assert_in_range(function.max_ns, function.average_ns, times.busy_ns);
	assert_in_range(function.median_ns, function.min_ns - function.min_ns / 16, function.max_ns + function.max_ns / 16);
	assert_in_range(function.total_ns, 2 * function.average_ns - 1, 2 * function.average_ns + 1);
	assert_true(function.deviation_ns < function.max_ns);
	/* Sums go on. */
	process_order(&process, 't');
	look(watcher, 0);
	assert_true(times_on(watcher, 1).busy_ns > times.busy_ns);
	assert_int_equal(nvtaskset_watcher_function(watcher, 1, &function, NULL), 0);
	assert_int_equal(function.instances, 3);
	/* It has run, and for how long is not known. */
	process_order(&process, 'R');
	look(watcher, 0);
	assert_int_equal(nvtaskset_watcher_function(watcher, 2, &function, NULL), 0);
	assert_string_equal(function.name, "lonely");
	assert_int_equal(function.instances, 1);
	assert_int_equal(function.timed, 0);
	assert_true(function.total_ns == NVTASKSET_UNKNOWN && function.average_ns == NVTASKSET_UNKNOWN &&
	            function.median_ns == NVTASKSET_UNKNOWN && function.min_ns == NVTASKSET_UNKNOWN &&
	            function.max_ns == NVTASKSET_UNKNOWN && function.deviation_ns == NVTASKSET_UNKNOWN);
	nvtaskset_watcher_close(watcher);
	process_end(&process);
}

static void test_presence_is_told_apart(void **state)
{
	struct process process = start();

	(void)state;
	process_order(&process, 'p');
	struct nvtaskset_watcher *watcher = open_watcher(&process);

	make_clocks_known(&process, watcher);
	process_order(&process, 't');
	look(watcher, 0);
	assert_int_equal(times_on(watcher, 1).is_presence, 1);
	assert_int_equal(times_on(watcher, 1).is_known, 1);
	assert_int_equal(times_on(watcher, 0).is_presence, 0);
	nvtaskset_watcher_close(watcher);
	process_end(&process);
}

static void test_times_that_are_not_known(void **state)
{
	struct process process = start();

	(void)state;
	process_order(&process, 'b');
	struct nvtaskset_watcher *watcher = open_watcher(&process);

	process_order(&process, 'r');
	look(watcher, 0);
	assert_not_known(times_on(watcher, 1), UINT64_C(1) << LOOK_REFUSED);
	assert_int_equal(times_on(watcher, 1).span_ns, 0);
	assert_int_equal(times_on(watcher, 0).is_known, 1);
	assert_string_equal(nvtaskset_time_gap_text(LOOK_REFUSED), look_gap_text(LOOK_REFUSED));
	assert_null(nvtaskset_time_gap_text(LOOK_GAP_COUNT));
	nvtaskset_watcher_close(watcher);
	process_end(&process);
}

/* Where nothing is counted, there is no GPU in a look. */
static void test_times_that_are_known_of_no_gpu(void **state)
{
	struct process process = start();
	struct nvtaskset_watcher *watcher = open_watcher(&process);

	(void)state;
	process_order(&process, 'q');
	look(watcher, 0);
	assert_not_known(times_on(watcher, 0), UINT64_C(1) << LOOK_OFF);
	nvtaskset_watcher_close(watcher);
	process_end(&process);
}

static void test_mistakes_with_watchers(void **state)
{
	struct process process = start();
	struct nvtaskset_watcher *watcher = NULL;
	struct nvtaskset_times times = {.size = 0};
	struct nvtaskset_function function = {.size = 0};
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(nvtaskset_watcher_open(&watcher, topology, 0, &error), -1);
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_watcher_open(&watcher, topology, getpid(), &error), -1);
	assert_code(error, NO_CUDA);
	assert_null(watcher);
	watcher = open_watcher(&process);
	assert_int_equal(nvtaskset_watcher_times(watcher, 0, &times, &error), -1);
	assert_code(error, INVALID);
	times.size = sizeof times;
	assert_int_equal(nvtaskset_watcher_times(watcher, 2, &times, &error), -1);
	assert_code(error, NOT_KNOWN);
	assert_int_equal(nvtaskset_watcher_function(watcher, 0, &function, &error), -1);
	assert_string_equal(error.reason, "function 0: there are 0");
	assert_code(error, INVALID);
	process_order(&process, 'b');
	process_order(&process, 't');
	look(watcher, 0);
	assert_int_equal(nvtaskset_watcher_function(watcher, 0, &function, &error), -1);
	assert_code(error, INVALID);
	/* What was seen before stays. */
	process_end(&process);
	assert_int_equal(nvtaskset_watcher_look(watcher, 1000000, &error), -1);
	assert_code(error, ENDED);
	assert_int_equal(times_on(watcher, 1).timed, 1);
	assert_int_equal(nvtaskset_watcher_function_count(watcher), 1);
	nvtaskset_watcher_close(watcher);
	nvtaskset_watcher_close(NULL);
}

static void test_list_of_processes(void **state)
{
	struct process first = start(), second = start();
	pid_t pids[4096] = {0}, few[1] = {0};
	size_t count, again, found = 0;

	(void)state;
	assert_int_equal(nvtaskset_processes(pids, 4096, &count, NULL), 0);
	assert_in_range(count, 2, 4096);
	for (size_t i = 0; i < count; i++)
		found += pids[i] == first.pid || pids[i] == second.pid;
	assert_int_equal(found, 2);
	/* Processes of other tests may have partitions. */
	assert_int_equal(nvtaskset_processes(few, 1, &again, NULL), 0);
	assert_in_range(again, 2, 4096);
	assert_true(few[0] > 0);
	assert_int_equal(nvtaskset_processes(NULL, 0, &again, NULL), 0);
	process_end(&first);
	process_end(&second);
}

static void test_process_without_partition(void **state)
{
	struct nvtaskset_partition *partition = NULL;
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(nvtaskset_partition_open(&partition, topology, getpid(), &error), -1);
	assert_non_null(strstr(error.reason, "has not loaded CUDA"));
	assert_code(error, NO_CUDA);
	assert_int_equal(nvtaskset_partition_open(&partition, topology, getpid(), NULL), -1);
	assert_int_equal(nvtaskset_partition_open(&partition, topology, 0, &error), -1);
	assert_string_equal(error.reason, "pid 0: not a process id");
	assert_code(error, INVALID);
	assert_int_equal(nvtaskset_partition_open(&partition, topology, -1, &error), -1);
	assert_null(partition);
}

/* The error of opening a process without a partition. */
static struct nvtaskset_error open_in_vain(pid_t pid)
{
	struct nvtaskset_partition *partition = NULL;
	struct nvtaskset_error error;

	assert_int_equal(nvtaskset_partition_open(&partition, topology, pid, &error), -1);
	assert_null(partition);
	return error;
}

static void test_program_started_without_nvtaskset(void **state)
{
	struct process process = start();

	(void)state;
	process_order(&process, 'w');
	assert_code(open_in_vain(process.pid), NO_PARTITION);
	process_end(&process);
}

/* What main runs then: a process that looks as if nvtaskset had started it. */
static _Noreturn void use_cuda_without_our_library(void)
{
	load_a_driver();
	if (write(STDOUT_FILENO, "", 1) == 1)
		pause();
	_exit(1);
}

static void test_library_that_is_not_at_work(void **state)
{
	static char *environment[] = {"NVTASKSET_PARTITION=0000:00:06.0=0-7", NULL};
	int ready[2];

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (pid == 0) {
		dup2(ready[1], STDOUT_FILENO);
		execle("/proc/self/exe", "api", "uses CUDA", NULL, environment);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &(char){0}, 1), 1);
	close(ready[0]);
	assert_code(open_in_vain(pid), NOT_IN_FORCE);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_partition_of_another_version(void **state)
{
	struct process process = start();

	(void)state;
	process_order(&process, 'v');
	assert_code(open_in_vain(process.pid), DAMAGED);
	process_end(&process);
}

/* The same in a process to which something was done first. */
static struct nvtaskset_error open_in_vain_after(void (*prepare)(void), pid_t pid)
{
	struct nvtaskset_error *shared =
		mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct nvtaskset_partition *partition;
	int status;

	assert_ptr_not_equal(shared, MAP_FAILED);
	pid_t child = fork();

	if (child == 0) {
		prepare();
		_exit(nvtaskset_partition_open(&partition, topology, pid, shared) < 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct nvtaskset_error error = *shared;

	munmap(shared, sizeof *shared);
	return error;
}

static void become_nobody(void)
{
	if (geteuid() == 0 && setuid(65534) < 0)
		_exit(2);
}

static void test_not_permitted(void **state)
{
	struct process process = start();

	(void)state;
	process_order(&process, 'h');
	assert_code(open_in_vain_after(become_nobody, process.pid), NOT_PERMITTED);
	process_end(&process);
}

static void lose_descriptors(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 0});
}

static void lose_memory(void)
{
	setrlimit(RLIMIT_AS, &(struct rlimit){.rlim_cur = 0});
}

static void test_errors_of_the_kernel(void **state)
{
	struct process process = start();
	struct nvtaskset_error error = open_in_vain_after(lose_descriptors, process.pid);

	(void)state;
	assert_code(error, SYSTEM);
	assert_int_equal(error.system_error, EMFILE);
	assert_non_null(strstr(error.reason, strerror(EMFILE)));
	error = open_in_vain_after(lose_memory, process.pid);
	assert_non_null(strstr(error.reason, "its segment cannot be mapped"));
	assert_code(error, NO_MEMORY);
	process_end(&process);
}

static void test_no_such_process(void **state)
{
	struct process process = start();

	(void)state;
	process_end(&process);
	assert_code(open_in_vain(process.pid), ENDED);
}

/* A zombie: nobody has waited for it yet. */
static void test_process_that_is_dead_and_listed(void **state)
{
	struct process process = start();
	siginfo_t info;

	(void)state;
	kill(process.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)process.pid, &info, WEXITED | WNOWAIT), 0);
	assert_code(open_in_vain(process.pid), ENDED);
	process_end(&process);
}

static void test_no_place_for_one_more_gpu(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_error error;

	(void)state;
	process_order(&process, 'f');
	assert_int_equal(set_list(partition, 0, "1", &error), 0);
	assert_int_equal(set_list(partition, 1, "1", &error), -1);
	assert_code(error, NO_ROOM);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static void test_end_of_the_process(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct pollfd ended = {.fd = nvtaskset_partition_descriptor(partition), .events = POLLIN};
	struct nvtaskset_error error;
	char expected[64];

	(void)state;
	assert_true(ended.fd >= 0);
	assert_true(fcntl(ended.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(poll(&ended, 1, 0), 0);
	process_end(&process);
	assert_int_equal(poll(&ended, 1, 10000), 1);
	assert_int_equal(nvtaskset_partition_check(partition, &error), -1);
	snprintf(expected, sizeof expected, "pid %d: has ended", (int)process.pid);
	assert_string_equal(error.reason, expected);
	assert_code(error, ENDED);
	/* This has no effect, and no harm. */
	assert_int_equal(set_list(partition, 0, "1", NULL), 0);
	assert_partition(partition, 0, "1");
	nvtaskset_partition_close(partition);
}

static void test_another_partition_in_the_process(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_error error;

	(void)state;
	process_order(&process, 'n');
	assert_int_equal(nvtaskset_partition_check(partition, &error), -1);
	assert_non_null(strstr(error.reason, "has a new partition: open it again"));
	assert_code(error, STALE);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

static void test_partition_that_is_not_in_force(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_error error;

	(void)state;
	process_order(&process, 'o');
	assert_int_equal(nvtaskset_partition_check(partition, &error), -1);
	assert_non_null(strstr(error.reason, "its partition is not in force"));
	assert_code(error, NOT_IN_FORCE);
	assert_int_equal(set_list(partition, 0, "1", NULL), 0);
	assert_partition(partition, 0, "1");
	nvtaskset_partition_close(partition);
	process_end(&process);
}

/* Every function follows the process to its new file. */
static void test_partition_that_moves(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process), *other = open_partition(&process);
	struct nvtaskset_counters counters = {.size = sizeof counters};

	(void)state;
	process_order(&process, 'c');
	assert_int_equal(nvtaskset_partition_check(partition, NULL), 0);
	assert_int_equal(set_list(partition, 0, "5", NULL), 0);
	process_order(&process, 'm');
	assert_int_equal(set_list(partition, 0, "6", NULL), 0);
	assert_partition(other, 0, "6");
	process_order(&process, 'm');
	process_order(&process, 'l');
	assert_int_equal(nvtaskset_partition_counters(partition, &counters, NULL), 0);
	assert_int_equal(counters.restricted, 2);
	process_order(&process, 'm');
	assert_int_equal(nvtaskset_partition_check(partition, NULL), 0);
	assert_int_equal(set_list(other, 0, "9", NULL), 0);
	assert_partition(partition, 0, "9");
	nvtaskset_partition_close(partition);
	nvtaskset_partition_close(other);
	process_end(&process);
}

/* The process moved and then closed the new file too, or ended: there is no file to follow it to. */
static void test_partition_that_is_gone(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_counters counters = {.size = sizeof counters};
	struct nvtaskset_set set;
	struct nvtaskset_error error;

	(void)state;
	process_order(&process, 'm');
	process_order(&process, 'c');
	assert_int_equal(set_list(partition, 0, "1", &error), -1);
	assert_non_null(strstr(error.reason, "has closed the file of its partition"));
	assert_code(error, OUT_OF_REACH);
	assert_int_equal(nvtaskset_partition_get(partition, 0, &set, &error), -1);
	process_end(&process);
	assert_int_equal(nvtaskset_partition_counters(partition, &counters, &error), -1);
	assert_code(error, ENDED);
	assert_int_equal(nvtaskset_partition_check(partition, NULL), -1);
	nvtaskset_partition_close(partition);
}

static void test_damaged_partition(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_error error;
	struct nvtaskset_set set = parse("3");

	(void)state;
	process_order(&process, 'g');
	assert_int_equal(nvtaskset_partition_get(partition, 0, &set, &error), -1);
	assert_non_null(strstr(error.reason, "its segment is damaged"));
	assert_code(error, DAMAGED);
	assert_list(set, "3");
	assert_int_equal(set_list(partition, 0, "1", &error), -1);
	assert_non_null(strstr(error.reason, "its segment is damaged"));
	assert_code(error, DAMAGED);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

/* Another editor is stopped in the middle of an edit. */
static void test_lock_is_not_waited_for_for_ever(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process);
	struct nvtaskset_error error;
	struct segment editor;

	(void)state;
	assert_int_equal(segment_open(&editor, process.pid, NULL), SEGMENT_FOUND);
	assert_int_equal(segment_lock(&editor, NULL), 0);
	assert_int_equal(set_list(partition, 0, "1", &error), -1);
	assert_non_null(strstr(error.reason, "by another process, which is stopped"));
	assert_code(error, BUSY);
	assert_partition(partition, 0, "0-7");
	segment_close(&editor);
	assert_int_equal(set_list(partition, 0, "1", NULL), 0);
	nvtaskset_partition_close(partition);
	process_end(&process);
}

/* A process that has others' partitions open has none because of that; its children have their own. */
static void test_handles_are_not_taken_for_a_partition(void **state)
{
	struct process process = start();
	struct nvtaskset_partition *partition = open_partition(&process), *wrong;
	struct nvtaskset_error error;
	pid_t pids[4096];
	size_t count;

	(void)state;
	assert_int_equal(nvtaskset_partition_open(&wrong, topology, getpid(), &error), -1);
	assert_int_equal(nvtaskset_processes(pids, 4096, &count, NULL), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_not_equal(pids[i], getpid());

	struct process fork = start();
	struct nvtaskset_partition *forks = open_partition(&fork);

	assert_int_equal(set_list(forks, 0, "9", NULL), 0);
	assert_partition(partition, 0, "0-7");
	nvtaskset_partition_close(forks);
	nvtaskset_partition_close(partition);
	process_end(&fork);
	process_end(&process);
}

static void test_no_descriptor_is_left_open(void **state)
{
	struct process process = start();
	int before = dup(0), after;

	(void)state;
	close(before);
	for (int i = 0; i < 10; i++) {
		struct nvtaskset_partition *partition = open_partition(&process);

		assert_int_equal(nvtaskset_partition_check(partition, NULL), 0);
		process_order(&process, 'm');
		assert_int_equal(set_list(partition, 0, "1", NULL), 0);
		nvtaskset_partition_close(partition);
		assert_int_equal(nvtaskset_partition_open(&partition, topology, getpid(), NULL), -1);
	}
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
	process_end(&process);
}

int main(int count, char **arguments)
{
	(void)arguments;
	if (count > 1)
		use_cuda_without_our_library();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_a_mistake_leaves_the_set),
		cmocka_unit_test(test_topology),
		cmocka_unit_test(test_a_gpu_by_its_uuid),
		cmocka_unit_test(test_gpus_and_gpcs_that_do_not_exist),
		cmocka_unit_test(test_groups_that_are_unknown),
		cmocka_unit_test(test_no_topology),
		cmocka_unit_test(test_sizes_of_no_version),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_failures_leak_no_memory),
		cmocka_unit_test(test_tpcs_that_are_not_there),
		cmocka_unit_test(test_sets_that_are_refused),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_rank),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_kernels_that_are_not_counted),
		cmocka_unit_test(test_kernels_of_a_library_that_is_not_in_force),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_presence_is_told_apart),
		cmocka_unit_test(test_times_that_are_not_known),
		cmocka_unit_test(test_times_that_are_known_of_no_gpu),
		cmocka_unit_test(test_mistakes_with_watchers),
		cmocka_unit_test(test_list_of_processes),
		cmocka_unit_test(test_process_without_partition),
		cmocka_unit_test(test_program_started_without_nvtaskset),
		cmocka_unit_test(test_library_that_is_not_at_work),
		cmocka_unit_test(test_partition_of_another_version),
		cmocka_unit_test(test_not_permitted),
		cmocka_unit_test(test_errors_of_the_kernel),
		cmocka_unit_test(test_no_such_process),
		cmocka_unit_test(test_process_that_is_dead_and_listed),
		cmocka_unit_test(test_no_place_for_one_more_gpu),
		cmocka_unit_test(test_end_of_the_process),
		cmocka_unit_test(test_another_partition_in_the_process),
		cmocka_unit_test(test_partition_that_is_not_in_force),
		cmocka_unit_test(test_partition_that_moves),
		cmocka_unit_test(test_partition_that_is_gone),
		cmocka_unit_test(test_damaged_partition),
		cmocka_unit_test(test_lock_is_not_waited_for_for_ever),
		cmocka_unit_test(test_handles_are_not_taken_for_a_partition),
		cmocka_unit_test(test_no_descriptor_is_left_open),
	};

	return cmocka_run_group_tests_name("api", tests, load_two_gpus, free_topology);
}
