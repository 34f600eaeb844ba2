/* What a process has launched, and what of it has ended: counted by the process, read by others. */
#include "../cases.h"
#include "own_segment.h"
#include "state/kernels/counts_read.h"
#include "state/segment/layout.h"

#include "state/kernels/counts_layout.h"
#include "state/segment/find.h"
#include "state/segment/owner.h"

#define ANYWHERE (UINT64_C(1) << 57)

static const struct pci_address second = {.bus = 0x5e};

static struct segment segment;
static struct counts_areas areas;
static struct counts counts;
static struct error error;

FIXTURE(open_segment)
{
	segment = make_segment();
	segment_slots_forget();
}

/* What this process has mapped stays, as the hardware may write there. */
FIXTURE(close_segment)
{
	counts_after_fork(&areas);
	segment_close(&segment);
}

static struct counts_place *take(struct pci_address pci)
{
	struct counts_place *place = counts_take(&areas, &segment, pci, ANYWHERE, 0, &error);

	assert_non_null(place);
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
	const struct counts_of_gpu *gpu = &counts.gpus[entry];

	assert_true(pci_address_equal(gpu->pci, pci));
	assert_each(gpu->launched, launched, gpu->ended, ended, gpu->in_flight, in_flight);
}

/* --- counting --------------------------------------------------------------------------------------------------- */

TEST(launched_ended_in_flight)
{
	struct counts_place *place = begin(first);

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

/* A graph runs before its kernels are counted as launched: from the begin of the call on, somebody is in flight. Any launch is seen by
 * the number, also one that has ended between two looks. */
TEST(at_any_moment)
{
	struct counts_place *place = begin(first);
	uint64_t launches = counts_place_launches(place);

	assert_int_equal(counts_place_in_flight(place), 0);
	counts_graph_begins(place);
	assert_int_equal(counts_place_in_flight(place), 1);
	assert_true(counts_place_launches(place) != launches);
	end(place, COUNTS_NODE, 4);
	assert_int_equal(counts_place_in_flight(place), 1);
	counts_launch_nodes(place, 10);
	counts_graph_ended(place);
	assert_int_equal(counts_place_in_flight(place), 6);
	end(place, COUNTS_NODE, 6);
	assert_int_equal(counts_place_in_flight(place), 0);
	launches = counts_place_launches(place);
	launch(place, 1);
	end(place, COUNTS_PLAIN, 1);
	assert_true(counts_place_launches(place) != launches);
	launches = counts_place_launches(place);
	counts_note_gap(place, COUNTS_SLOT_USED);
	assert_true(counts_place_launches(place) != launches);
	assert_false(counts_place_is_exact(place));
	/* A call that never ended is its context's. */
	counts_graph_begins(place);
	counts_end(place);
	assert_int_equal(counts_place_in_flight(place), 0);
	counts_begin(place);
	assert_int_equal(counts_place_in_flight(place), 0);
}

/* A body that runs more often than its graph is launched hides nothing that is in flight. */
TEST(what_was_not_announced)
{
	struct counts_place *place = begin(first);

	launch(place, 3);
	end(place, COUNTS_UNHEARD, 1000);
	assert_gpu(0, first, 1003, 1000, 3);
	assert_each(counts.gpus[0].unheard, 1000, counts.gpus[0].gaps, 0);
}

TEST(what_is_not_counted_is_not_in_flight)
{
	struct counts_place *place = begin(first);

	launch(place, 5);
	counts_launch_nodes(place, 20);
	counts_note_uncounted(place, COUNTS_PLAIN, 2);
	counts_note_uncounted(place, COUNTS_NODE, 20);
	counts_note_gap(place, COUNTS_SLOT_USED);
	counts_note_gap(place, COUNTS_OLDER);
	assert_gpu(0, first, 25, 0, 3);
	assert_each(counts.gpus[0].gaps, 1 << COUNTS_SLOT_USED | 1 << COUNTS_OLDER, counts.gaps, 0);
	counts_note_gap_everywhere(&segment, COUNTS_OFF);
	read_counts();
	assert_int_equal(counts.gaps, 1 << COUNTS_OFF);
	assert_string_equal(counts_gap_text(COUNTS_OFF), "counting is turned off (NVTASKSET_ACCOUNT)");
}

/* --- contexts that end ------------------------------------------------------------------------------------------ */

TEST(the_next_context_goes_on_where_it_ended)
{
	struct counts_place *place = begin(first);

	launch(place, 5);
	counts_launch_nodes(place, 9);
	end(place, COUNTS_PLAIN, 3);
	counts_end(place);
	assert_gpu(0, first, 14, 3, 0); /* nothing is in flight */
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
TEST(the_next_place)
{
	struct counts_place *places[] = {begin(first), begin(second), begin(first), begin(first)};

	for (unsigned int i = 0; i < 3; i++)
		counts_end(places[i]);
	assert_ptr_equal(take(first), places[0]);
	assert_ptr_equal(counts_take(&areas, &segment, first, ANYWHERE, counts_number(places[0]) + 1, &error), places[2]);
	struct counts_place *unused = counts_take(&areas, &segment, first, ANYWHERE, counts_number(places[2]) + 1, &error);

	assert_non_null(unused);
	assert_int_equal(counts_number(unused), counts_number(places[3]) + 1);
}

TEST(more_contexts_than_there_is_room_for)
{
	for (unsigned int i = 0; i < SEGMENT_AREAS * COUNTS_PLACES; i++) {
		struct counts_place *place = begin(first);

		assert_int_equal(counts_number(place), i);
		launch(place, 1);
	}
	assert_null(counts_take(&areas, &segment, first, ANYWHERE, 0, &error));
	assert_string_equal(error.reason, "no room for more counts");
	assert_gpu(0, first, SEGMENT_AREAS * COUNTS_PLACES, 0, SEGMENT_AREAS * COUNTS_PLACES);
}

/* --- the file --------------------------------------------------------------------------------------------------- */

TEST(below_an_address)
{
	struct counts_place *place = counts_take(&areas, &segment, first, UINT64_C(1) << 40, 0, &error);

	assert_non_null(place);
	close(areas.list[0].area.file);
	place = counts_take(&areas, &segment, first, UINT64_C(1) << 40, 0, &error);
	assert_non_null(place);
	assert_true((uintptr_t)place < UINT64_C(1) << 40);
}

TEST(the_program_closes_the_file)
{
	struct counts_place *place = begin(first);

	launch(place, 5);
	close(areas.list[0].area.file);
	read_counts();
	assert_each(counts.gaps, 1 << COUNTS_CLOSED, counts.count, 0);
	end(place, COUNTS_PLAIN, 5); /* the memory is still there */
	counts_end(place);
	struct counts_place *next = begin(first);

	assert_ptr_not_equal(next, place);
	launch(next, 2);
	assert_gpu(0, first, 2, 0, 2);
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED);
}

/* The program has opened a file of its own with the number. */
TEST(the_number_is_another_files)
{
	begin(first);
	int place = areas.list[0].area.file;

	assert_int_equal(dup2(STDIN_FILENO, place), place);
	read_counts();
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED);
	counts_after_fork(&areas);
	assert_true(fcntl(place, F_GETFD) >= 0);
	close(place);
}

TEST(programs_do_not_inherit_it)
{
	begin(first);
	assert_true(fcntl(areas.list[0].area.file, F_GETFD) & FD_CLOEXEC);
	assert_true(areas.list[0].area.file >= 64 - 16);
}

TEST(no_memory_for_it)
{
	const struct counts_place *none;

	with_limit(RLIMIT_NOFILE, 0, none = counts_take(&areas, &segment, first, ANYWHERE, 0, &error));
	assert_null(none);
	assert_string_equal(error.reason, "no shared memory: Too many open files");
	assert_int_equal(areas.count, 0);
	begin(first);
}

/* --- others ----------------------------------------------------------------------------------------------------- */

/* They say nothing about the process. */
TEST(the_readers_limits)
{
	int lowest = dup(STDIN_FILENO);
	unsigned int refused = 0;

	close(lowest);
	begin(first);
	read_counts(); /* what is looked up once is known now */
	for (unsigned int free = 0; free < 6; free++) {
		int result;

		with_limit(RLIMIT_NOFILE, (rlim_t)lowest + free, result = counts_read(&segment, getpid(), &counts, &error));
		if (result < 0)
			assert_string_equal(error.reason, "counts of kernels: Too many open files");
		else
			assert_int_equal(counts.gaps, 0);
		refused += result < 0;
	}
	assert_int_equal(refused, 3);
}

/* After exec, it has none: nothing maps them any more. */
TEST(another_execution)
{
	struct segment found;

	segment_set_at_work(&segment);
	begin(first);
	counts_note_gap_everywhere(&segment, COUNTS_NO_MEMORY);
	assert_true(segment_find_own(&found)); /* a second copy of the library shares them */
	assert_gpu(0, first, 0, 0, 0);
	atomic_fetch_add(&segment.memory->execution, 1);
	assert_true(segment_find_own(&found));
	read_counts();
	assert_each(counts.count, 0, counts.gaps, 0);
	segment_set_at_work(&found);
	read_counts();
	assert_each(counts.count, 0, counts.gaps, 0);
}

/* Before the library is at work again, or if the program does not use the driver any more. */
TEST(right_after_an_exec)
{
	segment_set_at_work(&segment);
	begin(first);
	counts_note_gap_everywhere(&segment, COUNTS_NO_MEMORY);
	close(areas.list[0].area.file); /* as the exec does */
	read_counts();
	assert_int_equal(counts.gaps, 1 << COUNTS_CLOSED | 1 << COUNTS_NO_MEMORY);
	atomic_fetch_add(&segment.memory->execution, 1);
	read_counts();
	assert_each(counts.count, 0, counts.gaps, 0);
}

/* --- hostile owners --------------------------------------------------------------------------------------------- */

/* Names this file as the first area. */
static void name_area(int file, uint64_t inode)
{
	segment.memory->areas[0].file = (uint64_t)file;
	segment.memory->areas[0].inode = inode;
}

static int make_area(size_t size, unsigned int seals, struct area_header header)
{
	int file = memfd_create(COUNTS_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat status;

	assert_true(pwrite(file, &header, sizeof header, 0) == sizeof header && ftruncate(file, (off_t)size) == 0);
	assert_int_equal(fcntl(file, F_ADD_SEALS, seals), 0);
	assert_int_equal(fstat(file, &status), 0);
	name_area(file, status.st_ino);
	return file;
}

static void assert_refused(int file)
{
	read_counts();
	assert_each(counts.count, 0, counts.gaps, 1 << COUNTS_CLOSED);
	if (file >= 0)
		close(file);
}

TEST(files_that_are_no_areas)
{
	const struct area_header right = {COUNTS_MAGIC, COUNTS_VERSION, sizeof(struct counts_memory)};
	const unsigned int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	const struct {
		size_t size;
		unsigned int seals;
		struct area_header header;
	} rows[] = {{right.size, 0, right}, {right.size, F_SEAL_GROW, right}, {right.size, F_SEAL_SHRINK, right},
	            {right.size - 1, seals, right}, {0, seals, right}, {right.size, seals, {0, right.version, right.size}},
	            {right.size, seals, {right.magic, right.version + 1, right.size}},
	            {right.size, seals, {right.magic, right.version, right.size + 1}}};
	int pipes[2], file = make_area(right.size, seals, right);

	read_counts();
	assert_int_equal(counts.gaps, 0);
	close(file);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		ROW("%zu", i);
		assert_refused(make_area(rows[i].size, rows[i].seals, rows[i].header));
	}
	assert_int_equal(pipe(pipes), 0);
	name_area(pipes[0], 1);
	assert_refused(pipes[0]);
	close(pipes[1]);
	name_area(segment.file, segment.inode);
	assert_refused(-1);
}

/* What names an area leads to another file, or nowhere. */
TEST(names_that_lead_nowhere)
{
	begin(first);
	const uint64_t file = segment.memory->areas[0].file, inode = segment.memory->areas[0].inode, high = UINT64_C(1) << 32;
	const uint64_t files[] = {file + 1, UINT64_MAX, high - 1, high / 2, high | file};

	for (size_t i = 0; i < COUNT_OF(files); i++) {
		ROW("%zu", i);
		segment.memory->areas[0].file = files[i];
		assert_refused(-1);
	}
	name_area((int)file, inode + 1);
	assert_refused(-1);
	name_area((int)file, inode);
	assert_gpu(0, first, 0, 0, 0);
	assert_int_equal(counts.gaps, 0);
}

RUN_TESTS(open_segment, close_segment)
