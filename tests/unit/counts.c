/* What a process has launched, and what of it has ended: counted by the process, read by others. */
#include "own_segment.h"
#include "process.h"

#include "state/counts.h"
#include "state/counts_layout.h"
#include "state/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define ANYWHERE (UINT64_C(1) << 57)

static const struct pci_address second = {.bus = 0x5e};

static struct segment segment;
static struct counts_areas areas;
static struct counts counts;

static int open_segment(void **state)
{
	(void)state;
	segment = make_segment();
	counter_slots_free();
	return 0;
}

/* What this process has mapped stays, as the hardware may write there. */
static int close_segment(void **state)
{
	(void)state;
	counts_after_fork(&areas);
	segment_close(&segment);
	return 0;
}

static struct counts_place *take(struct pci_address pci)
{
	struct error error;
	struct counts_place *place = counts_take(&areas, &segment, pci, ANYWHERE, 0, &error);

	if (!place)
		fail_msg("%s", error.reason);
	return place;
}

static struct counts_place *begin(struct pci_address pci)
{
	struct counts_place *place = take(pci);

	counts_begin(place);
	return place;
}

static void launch(struct counts_place *place, unsigned int kernels)
{
	for (unsigned int i = 0; i < kernels; i++)
		counts_launch_shared(place);
}

/* As the hardware does. */
static void end(struct counts_place *place, enum counts_kind kind, uint64_t kernels)
{
	atomic_fetch_add(counts_ended(place, kind), kernels);
}

static void read_counts(void)
{
	assert_int_equal(counts_read(&segment, getpid(), &counts, NULL), 0);
}

static void assert_gpu(unsigned int entry, struct pci_address pci, uint64_t launched, uint64_t ended, uint64_t in_flight)
{
	read_counts();
	assert_true(entry < counts.count);
	assert_true(pci_address_equal(counts.gpus[entry].pci, pci));
	assert_int_equal(counts.gpus[entry].launched, launched);
	assert_int_equal(counts.gpus[entry].ended, ended);
	assert_int_equal(counts.gpus[entry].in_flight, in_flight);
}

/* --- counting --------------------------------------------------------------------------------------------------- */

static void test_nothing_is_known_to_be_nothing(void **state)
{
	(void)state;
	read_counts();
	assert_int_equal(counts.count, 0);
	assert_int_equal(counts.gaps, 0);
}

static void test_launched_ended_in_flight(void **state)
{
	struct counts_place *place = begin(first);

	(void)state;
	launch(place, 5);
	assert_gpu(0, first, 5, 0, 5);
	end(place, COUNTS_PLAIN, 3);
	assert_gpu(0, first, 5, 3, 2);
	end(place, COUNTS_PLAIN, 2);
	counts_launch_nodes(place, 100);
	assert_gpu(0, first, 105, 5, 100);
	end(place, COUNTS_NODE, 100);
	assert_gpu(0, first, 105, 105, 0);
	assert_int_equal(counts.gpus[0].gaps | counts.gaps, 0);
}

static void test_slots_of_threads(void **state)
{
	struct counts_place *place = begin(first);
	struct counter_slot *slots[COUNTER_SLOTS - 1];

	(void)state;
	for (unsigned int i = 0; i < COUNTER_SLOTS - 1; i++) {
		slots[i] = counter_slot_take(&segment);
		for (unsigned int kernel = 0; kernel <= i; kernel++)
			counts_launch(counts_launched(place, &segment, slots[i]));
	}
	assert_null(counter_slot_take(&segment));
	assert_gpu(0, first, 63 * 64 / 2, 0, 63 * 64 / 2);
}

static void test_each_gpu_for_itself(void **state)
{
	struct counts_place *one = begin(first), *other = begin(second), *again = begin(first);

	(void)state;
	assert_ptr_not_equal(one, again);
	launch(one, 1);
	launch(other, 10);
	launch(again, 100);
	end(other, COUNTS_PLAIN, 4);
	assert_gpu(0, first, 101, 0, 101);
	assert_gpu(1, second, 10, 4, 6);
	assert_int_equal(counts.count, 2);
}

/* A body that runs more often than its graph is launched hides nothing that is in flight. */
static void test_what_was_not_announced(void **state)
{
	struct counts_place *place = begin(first);

	(void)state;
	launch(place, 3);
	end(place, COUNTS_UNHEARD, 1000);
	assert_gpu(0, first, 1003, 1000, 3);
	assert_int_equal(counts.gpus[0].unheard, 1000);
	assert_int_equal(counts.gpus[0].gaps, 0);
}

/* A graph's first kernels may end before its launch has returned. */
static void test_more_ended_than_launched(void **state)
{
	struct counts_place *place = begin(first);

	(void)state;
	end(place, COUNTS_NODE, 7);
	launch(place, 2);
	assert_gpu(0, first, 2, 7, 2);
}

static void test_what_is_not_counted_is_not_in_flight(void **state)
{
	struct counts_place *place = begin(first);

	(void)state;
	launch(place, 5);
	counts_launch_nodes(place, 20);
	counts_note_uncounted(place, COUNTS_PLAIN, 2);
	counts_note_uncounted(place, COUNTS_NODE, 20);
	counts_note_gap(place, COUNTS_SLOT_USED);
	counts_note_gap(place, COUNTS_OLDER);
	assert_gpu(0, first, 25, 0, 3);
	assert_int_equal(counts.gpus[0].gaps, 1 << COUNTS_SLOT_USED | 1 << COUNTS_OLDER);
	assert_int_equal(counts.gaps, 0);
	counts_note_gap_everywhere(&segment, COUNTS_OFF);
	read_counts();
	assert_int_equal(counts.gaps, 1 << COUNTS_OFF);
	assert_string_equal(counts_gap_text(COUNTS_OFF), "counting is turned off (NVTASKSET_ACCOUNT)");
}

/* The hardware's line holds nothing else, and the CPU writes nothing into its page once a context uses it. */
static void test_what_the_hardware_writes_lies_apart(void **state)
{
	struct counts_place *place = begin(first), *next = begin(first);
	unsigned char before[COUNTS_PAGE];

	(void)state;
	for (int kind = 0; kind < COUNTS_KINDS; kind++)
		assert_int_equal((uintptr_t)counts_ended(place, kind) / 64 - (uintptr_t)place / 64, kind + 1);
	assert_int_equal((uintptr_t)place % COUNTS_PAGE, 0);
	memcpy(before, place, sizeof before);
	launch(place, 3);
	counts_launch_nodes(place, 2);
	counts_note_uncounted(place, COUNTS_NODE, 2);
	counts_note_gap(place, COUNTS_OLDER);
	counts_end(place);
	launch(next, 1);
	assert_memory_equal(before, place, sizeof before);
}

/* --- contexts that end ------------------------------------------------------------------------------------------ */

static void test_a_context_that_ended_has_nothing_in_flight(void **state)
{
	struct counts_place *place = begin(first);

	(void)state;
	launch(place, 5);
	counts_launch_nodes(place, 5);
	end(place, COUNTS_PLAIN, 3);
	counts_end(place);
	assert_gpu(0, first, 10, 3, 0);
}

static void test_the_next_context_goes_on_where_it_ended(void **state)
{
	struct counts_place *place = begin(first);

	(void)state;
	launch(place, 5);
	counts_launch_nodes(place, 9);
	end(place, COUNTS_PLAIN, 3);
	counts_end(place);
	assert_ptr_not_equal(take(second), place);
	assert_ptr_equal(take(first), place);
	assert_gpu(0, first, 14, 3, 0);
	end(place, COUNTS_PLAIN, 1); /* the former context is still being destroyed */
	counts_begin(place);
	assert_gpu(0, first, 14, 4, 0);
	launch(place, 2);
	assert_gpu(0, first, 16, 4, 2);
	end(place, COUNTS_PLAIN, 2);
	assert_gpu(0, first, 16, 6, 0);
}

/* The driver may refuse places whose former contexts are not quite gone. */
static void test_the_next_place(void **state)
{
	struct counts_place *places[] = {begin(first), begin(second), begin(first), begin(first)};
	struct error error;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		counts_end(places[i]);
	assert_ptr_equal(take(first), places[0]);
	assert_ptr_equal(counts_take(&areas, &segment, first, ANYWHERE, counts_number(places[0]) + 1, &error), places[2]);
	struct counts_place *unused = counts_take(&areas, &segment, first, ANYWHERE, counts_number(places[2]) + 1, &error);

	assert_non_null(unused);
	assert_int_equal(counts_number(unused), counts_number(places[3]) + 1);
}

static void test_many_contexts_one_after_the_other(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 10 * COUNTS_AREAS * COUNTS_PLACES; i++) {
		struct counts_place *place = begin(first);

		launch(place, 1);
		end(place, COUNTS_PLAIN, 1);
		counts_end(place);
	}
	assert_gpu(0, first, 10 * COUNTS_AREAS * COUNTS_PLACES, 10 * COUNTS_AREAS * COUNTS_PLACES, 0);
	assert_int_equal(areas.count, 1);
}

static void test_more_contexts_than_there_is_room_for(void **state)
{
	struct error error;

	(void)state;
	for (unsigned int i = 0; i < COUNTS_AREAS * COUNTS_PLACES; i++) {
		struct counts_place *place = begin(first);

		assert_int_equal(counts_number(place), i);
		launch(place, 1);
	}
	assert_null(counts_take(&areas, &segment, first, ANYWHERE, 0, &error));
	assert_string_equal(error.reason, "no room for more counts");
	assert_gpu(0, first, COUNTS_AREAS * COUNTS_PLACES, 0, COUNTS_AREAS * COUNTS_PLACES);
}

/* --- the file --------------------------------------------------------------------------------------------------- */

static void test_below_an_address(void **state)
{
	struct error error;
	struct counts_place *place = counts_take(&areas, &segment, first, UINT64_C(1) << 40, 0, &error);

	(void)state;
	assert_non_null(place);
	close(areas.list[0].file);
	place = counts_take(&areas, &segment, first, UINT64_C(1) << 40, 0, &error);
	assert_non_null(place);
	assert_true((uintptr_t)place < UINT64_C(1) << 40);
}

static void test_the_program_closes_the_file(void **state)
{
	struct counts_place *place = begin(first);

	(void)state;
	launch(place, 5);
	close(areas.list[0].file);
	read_counts();
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED);
	assert_int_equal(counts.count, 0);
	end(place, COUNTS_PLAIN, 5); /* the memory is still there */
	counts_end(place);
	struct counts_place *next = begin(first);

	assert_ptr_not_equal(next, place);
	launch(next, 2);
	assert_gpu(0, first, 2, 0, 2);
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED);
}

/* The program has opened a file of its own with the number. */
static void test_the_number_is_another_files(void **state)
{
	(void)state;
	begin(first);
	int place = areas.list[0].file;

	assert_int_equal(dup2(STDIN_FILENO, place), place);
	read_counts();
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED);
	counts_after_fork(&areas);
	assert_true(fcntl(place, F_GETFD) >= 0);
	close(place);
}

static void test_programs_do_not_inherit_it(void **state)
{
	(void)state;
	begin(first);
	assert_true(fcntl(areas.list[0].file, F_GETFD) & FD_CLOEXEC);
	assert_true(areas.list[0].file >= 64 - 16);
}

static void test_no_memory_for_it(void **state)
{
	struct rlimit before, none;
	struct error error;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	assert_null(counts_take(&areas, &segment, first, ANYWHERE, 0, &error));
	setrlimit(RLIMIT_NOFILE, &before);
	assert_string_equal(error.reason, "no shared memory: Too many open files");
	assert_int_equal(areas.count, 0);
	begin(first);
}

/* --- others ----------------------------------------------------------------------------------------------------- */

static void launch_and_end(char order)
{
	static struct counts_place *place;

	if (order == 0) {
		segment = make_segment();
		place = begin(second);
		launch(place, 7);
	} else {
		end(place, COUNTS_PLAIN, 1);
	}
}

static void test_another_process_reads_it(void **state)
{
	struct process process = process_start(launch_and_end);
	struct segment others;

	(void)state;
	assert_int_equal(segment_open(&others, process.pid, NULL), SEGMENT_FOUND);
	for (uint64_t ended = 0; ended < 3; ended++) {
		assert_int_equal(counts_read(&others, process.pid, &counts, NULL), 0);
		assert_int_equal(counts.count, 1);
		assert_int_equal(counts.gpus[0].launched, 7);
		assert_int_equal(counts.gpus[0].ended, ended);
		assert_int_equal(counts.gpus[0].in_flight, 7 - ended);
		process_order(&process, 1);
	}
	process_end(&process);
	assert_int_equal(counts_read(&others, process.pid, &counts, NULL), 0);
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED);
	segment_close(&others);
}

/* They say nothing about the process. */
static void test_the_readers_limits(void **state)
{
	int lowest = dup(STDIN_FILENO);
	unsigned int refused = 0;
	struct rlimit limit;
	struct error error;

	(void)state;
	close(lowest);
	begin(first);
	read_counts(); /* what is looked up once is known now */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned int free = 0; free < 6; free++) {
		struct rlimit low = {(rlim_t)lowest + free, limit.rlim_max};

		assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
		int result = counts_read(&segment, getpid(), &counts, &error);

		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (result < 0)
			assert_string_equal(error.reason, "counts of kernels: Too many open files");
		else
			assert_int_equal(counts.gaps, 0);
		refused += result < 0;
	}
	assert_int_equal(refused, 3);
}

static void test_the_child_of_a_fork_has_its_own(void **state)
{
	struct counts_place *place = begin(first);

	(void)state;
	launch(place, 3);
	struct process process = process_start(launch_and_end);

	assert_gpu(0, first, 3, 0, 3);
	process_end(&process);
}

/* After exec, it has none: nothing maps them any more. */
static void test_another_execution(void **state)
{
	struct segment found;

	(void)state;
	segment_set_at_work(&segment);
	begin(first);
	counts_note_gap_everywhere(&segment, COUNTS_NO_MEMORY);
	assert_true(segment_find_own(&found)); /* a second copy of the library shares them */
	assert_gpu(0, first, 0, 0, 0);
	atomic_fetch_add(&segment.memory->execution, 1);
	assert_true(segment_find_own(&found));
	read_counts();
	assert_int_equal(counts.count, 0);
	assert_int_equal(counts.gaps, 0);
}

/* Before the library is at work again, or if the program does not use the driver any more. */
static void test_right_after_an_exec(void **state)
{
	(void)state;
	segment_set_at_work(&segment);
	begin(first);
	counts_note_gap_everywhere(&segment, COUNTS_NO_MEMORY);
	close(areas.list[0].file); /* as the exec does */
	read_counts();
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED | 1 << COUNTS_NO_MEMORY);
	atomic_fetch_add(&segment.memory->execution, 1);
	read_counts();
	assert_int_equal(counts.count, 0);
	assert_int_equal(counts.gaps, 0);
}

/* --- hostile owners --------------------------------------------------------------------------------------------- */

/* Names this file as the first area. */
static void name_area(int file, uint64_t inode)
{
	segment.memory->areas[0].file = (uint64_t)file;
	segment.memory->areas[0].inode = inode;
}

static int make_area(size_t size, unsigned int seals)
{
	int file = memfd_create(COUNTS_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat status;

	assert_int_equal(ftruncate(file, (off_t)size), 0);
	assert_int_equal(fcntl(file, F_ADD_SEALS, seals), 0);
	assert_int_equal(fstat(file, &status), 0);
	name_area(file, status.st_ino);
	return file;
}

static void assert_refused(int file)
{
	read_counts();
	assert_int_equal(counts.count, 0);
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED);
	if (file >= 0)
		close(file);
}

static void test_files_that_are_no_areas(void **state)
{
	const unsigned int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	int pipes[2];

	(void)state;
	assert_refused(make_area(sizeof(struct counts_memory), 0));
	assert_refused(make_area(sizeof(struct counts_memory), F_SEAL_GROW));
	assert_refused(make_area(sizeof(struct counts_memory), F_SEAL_SHRINK));
	assert_refused(make_area(sizeof(struct counts_memory) - 1, seals));
	assert_refused(make_area(0, seals));
	assert_refused(make_area(sizeof(struct counts_memory), seals)); /* no magic */
	assert_int_equal(pipe(pipes), 0);
	name_area(pipes[0], 1);
	assert_refused(pipes[0]);
	close(pipes[1]);
	for (int i = 0; i < 3; i++) {
		const int numbers[] = {-1, 9999, INT32_MAX};

		name_area(numbers[i], 1);
		assert_refused(-1);
	}
	name_area(segment.file, segment.inode);
	assert_refused(-1);
	segment.memory->areas[0].file = UINT64_MAX;
	assert_refused(-1);
}

static struct counts_memory *make_hostile(void)
{
	int file = make_area(sizeof(struct counts_memory), F_SEAL_SHRINK | F_SEAL_GROW);
	struct counts_memory *memory =
		mmap(NULL, sizeof(struct counts_memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void set_header(struct counts_memory *memory)
{
	memory->magic = COUNTS_MAGIC;
	memory->version = COUNTS_VERSION;
	memory->size = sizeof *memory;
}

static void test_another_version(void **state)
{
	struct counts_memory *memory = make_hostile();

	(void)state;
	set_header(memory);
	memory->version++;
	assert_refused(-1);
	set_header(memory);
	memory->size++;
	assert_refused(-1);
	set_header(memory);
	read_counts();
	assert_int_equal(counts.gaps, 0);
	munmap(memory, sizeof *memory);
}

/* Sums do not wrap around, and there are not more GPUs than there is room for. */
static void test_any_content(void **state)
{
	struct counts_memory *memory = make_hostile();

	(void)state;
	memset(memory, 0xff, sizeof *memory);
	set_header(memory);
	for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
		memory->places[i].magic = COUNTS_MAGIC;
		memory->places[i].state = COUNTS_IN_USE;
		memory->places[i].pci.bus = (uint8_t)i;
	}
	segment.memory->gaps = UINT64_MAX;
	read_counts();
	assert_int_equal(counts.gaps, (1 << COUNTS_GAP_COUNT) - 1);
	assert_true(counts.count <= COUNTS_GPUS);
	for (unsigned int i = 0; i < counts.count; i++) {
		assert_int_equal(counts.gpus[i].launched, UINT64_MAX);
		assert_int_equal(counts.gpus[i].ended, UINT64_MAX);
		assert_int_equal(counts.gpus[i].gaps, (1 << COUNTS_GAP_COUNT) - 1);
	}
	munmap(memory, sizeof *memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, open_segment, close_segment)
		TEST(nothing_is_known_to_be_nothing),
		TEST(launched_ended_in_flight),
		TEST(slots_of_threads),
		TEST(each_gpu_for_itself),
		TEST(what_was_not_announced),
		TEST(more_ended_than_launched),
		TEST(what_is_not_counted_is_not_in_flight),
		TEST(what_the_hardware_writes_lies_apart),
		TEST(a_context_that_ended_has_nothing_in_flight),
		TEST(the_next_context_goes_on_where_it_ended),
		TEST(the_next_place),
		TEST(many_contexts_one_after_the_other),
		TEST(more_contexts_than_there_is_room_for),
		TEST(below_an_address),
		TEST(the_program_closes_the_file),
		TEST(the_number_is_another_files),
		TEST(programs_do_not_inherit_it),
		TEST(no_memory_for_it),
		TEST(another_process_reads_it),
		TEST(the_readers_limits),
		TEST(the_child_of_a_fork_has_its_own),
		TEST(another_execution),
		TEST(right_after_an_exec),
		TEST(files_that_are_no_areas),
		TEST(another_version),
		TEST(any_content),
#undef TEST
	};

	return cmocka_run_group_tests_name("counts", tests, NULL, NULL);
}
