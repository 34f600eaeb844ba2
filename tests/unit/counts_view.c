/* Another process's counts, read where they stand: of a process that the test makes, which may be hostile. */
#include "../cases.h"
#include "base/shared_file.h"
#include "process.h"
#include "state/segment/layout.h"

#include "../alone.h"
#include "../peer.h"
#include "state/kernels/counts_layout.h"
#include "state/kernels/counts_read.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>

#define CLOSED (UINT32_C(1) << COUNTS_CLOSED)

static const struct pci_address gpu = {.bus = 0x3b}, other_gpu = {.bus = 0x5e};

/* --- the other process -------------------------------------------------------------------------------------------- */

/* In memory that both have. */
static struct told {
	uint64_t segment, inode; /* its claim names these */
	struct counts_of_gpu read;
} *told;

static struct peer_process self;

static void tell(int file, ino_t inode)
{
	told->segment = (uint64_t)file;
	told->inode = inode;
}

/* More contexts than an area has places for. */
static void need_more_areas(void)
{
	struct counts_place *place = NULL;

	for (int i = 0; i < COUNTS_PLACES; i++) {
		place = counts_take(&self.areas, &self.segment, other_gpu, UINT64_MAX, 0, NULL);
		must(place != NULL);
	}
	counts_begin(place);
	counts_launch_shared(place);
}

static void fill_with_nonsense(void)
{
	static unsigned int seed = 7;
	_Atomic uint64_t *words = (void *)self.segment.memory->areas;

	for (size_t i = 0; i < sizeof self.segment.memory->areas / (sizeof *words); i++)
		atomic_store(&words[i], (uint64_t)rand_r(&seed) << 40 ^ (uint64_t)rand_r(&seed));
}

/* A file that is called as a segment is. */
static void offer_zeros(void)
{
	int file = memfd_create(SEGMENT_NAME, MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct stat status;

	must(file >= 0 && ftruncate(file, sizeof *self.segment.memory) == 0 && fcntl(file, F_ADD_SEALS, SHARED_FILE_SEALS) == 0);
	must(fstat(file, &status) == 0);
	tell(file, status.st_ino);
}

static void obey(char order)
{
	switch (order) {
	case 0:
		board_after_fork();
		peer_begin(&self, gpu);
		tell(self.segment.file, self.segment.inode);
		break;
	case 'l':
		peer_launch(&self);
		break;
	case 'e':
		peer_end(&self);
		break;
	case 'm':
		need_more_areas();
		break;
	case 'c':
		for (unsigned int i = 0; i < self.areas.count; i++)
			close(self.areas.list[i].area.file);
		break;
	case 's':
		close(self.segment.file);
		break;
	case 'N':
		fill_with_nonsense();
		break;
	case 'v':
	case 'V':
		self.segment.memory->version += order == 'v' ? 1 : -1u;
		break;
	case 'k':
		atomic_store(&self.segment.memory->magic, 1);
		break;
	case 'w':
		atomic_store(&self.segment.memory->execution, 0);
		break;
	case 'x':
		execlp("sleep", "sleep", "1000", NULL);
		_exit(1);
	case '0':
		offer_zeros();
		break;
	default:
		_exit(2);
	}
}

/* --- this one ----------------------------------------------------------------------------------------------------- */

static struct process other;
static struct counts_view view;

static bool open_view(void)
{
	return counts_view_open(&view, other.pid, told->segment, told->inode);
}

static void order(const char *orders)
{
	for (; *orders; orders++)
		process_order(&other, *orders);
}

static void assert_counts(struct pci_address pci, uint64_t launched, uint64_t ended, uint32_t gaps)
{
	struct counts_of_gpu read = counts_view_read(&view, pci);

	assert_true(pci_address_equal(read.pci, pci));
	assert_each(read.launched, launched, read.ended, ended, read.in_flight, launched - ended, read.gaps, gaps);
}

/* The segment, and its areas. */
static void assert_mapped(unsigned int files)
{
	assert_int_equal(count_mappings("/memfd:" SEGMENT_NAME), files);
}

static int descriptors;

FIXTURE(begin)
{
	other = process_start(obey);
	descriptors = count_descriptors();
}

/* Nothing is left of a view, whatever was in it. */
FIXTURE(end)
{
	counts_view_close(&view);
	counts_view_close(&view);
	assert_int_equal(count_descriptors(), descriptors);
	assert_mapped(0);
	processes_end();
}

TEST(as_it_counts)
{
	errno = EDOM;
	assert_true(open_view());
	assert_counts(gpu, 0, 0, 0);
	order("lll");
	assert_counts(gpu, 3, 0, 0);
	order("e");
	assert_counts(gpu, 3, 1, 0);
	assert_counts(other_gpu, 0, 0, 0);
	assert_int_equal(count_descriptors(), descriptors);
	/* What the process closes later is still read. */
	order("csl");
	counts_view_follow(&view);
	assert_counts(gpu, 4, 1, 0);
	assert_int_equal(errno, EDOM);
}

/* In a process that may call only read, write and exit. */
TEST(no_system_call)
{
	if (SANITIZED)
		skip_because("a sanitizer makes system calls of its own");
	order("lle");
	assert_true(open_view());
	pid_t child = fork();

	if (child == 0) {
		must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
		counts_view_follow(&view);
		told->read = counts_view_read(&view, gpu);
		syscall(SYS_exit, 0);
	}
	assert_ends_well(child);
	assert_each(told->read.launched, 2, told->read.ended, 1, told->read.in_flight, 1);
}

TEST(areas_that_come_later)
{
	assert_true(open_view());
	assert_mapped(2);
	order("m");
	assert_counts(other_gpu, 0, 0, 0);
	counts_view_follow(&view);
	assert_counts(other_gpu, 1, 0, 0);
	assert_counts(gpu, 0, 0, 0);
	counts_view_follow(&view);
	assert_mapped(3);
	/* The last areas that there can be. */
	order("mmmmmm");
	counts_view_follow(&view);
	assert_counts(other_gpu, 7, 0, 0);
	assert_mapped(1 + SEGMENT_AREAS);
}

/* What was counted in an area that cannot be opened is a gap; what comes later is counted. */
TEST(closed_area)
{
	order("lc");
	assert_true(open_view());
	assert_counts(gpu, 0, 0, CLOSED);
	/* The new area has the descriptor that the former one had. */
	order("m");
	counts_view_follow(&view);
	assert_counts(other_gpu, 1, 0, CLOSED);
	counts_view_close(&view);
	assert_true(open_view());
	assert_counts(other_gpu, 1, 0, CLOSED);
}

/* With too few descriptors to spare, the area that has come is a gap, until it can be mapped. */
TEST(own_limits)
{
	unsigned int limited = 0;

	order("l");
	for (rlim_t spare = 0; spare < SEGMENT_AREAS - 1; spare++) {
		ROW("%d", (int)spare);
		assert_true(open_view());
		order("m");
		int lowest = dup(STDIN_FILENO);

		close(lowest);
		with_limit(RLIMIT_NOFILE, (rlim_t)lowest + spare, counts_view_follow(&view));
		uint32_t gaps = counts_view_read(&view, gpu).gaps;

		assert_true(gaps == 0 || gaps == CLOSED);
		limited += gaps == CLOSED;
		counts_view_follow(&view);
		assert_counts(gpu, 1, 0, 0);
		assert_counts(other_gpu, spare + 1, 0, 0);
		counts_view_close(&view);
	}
	/* For the directory, to look at the file, and to open it. */
	assert_in_range(limited, 3, SEGMENT_AREAS - 2);
}

TEST(gaps_of_all)
{
	assert_true(open_view());
	order("N");
	assert_int_equal(counts_view_read(&view, gpu).gaps, 0);
	counts_view_follow(&view);
	assert_counts(gpu, 0, 0, CLOSED);
	assert_mapped(1);
}

/* What is no area (tests/unit/counts.c) is no segment either; nor is what has another head. */
TEST(files_that_are_no_segments)
{
	const struct told right = *told;

	assert_false(counts_view_open(&view, other.pid, right.segment + 1, right.inode));
	assert_false(counts_view_open(&view, 4000000, right.segment, right.inode));
	order("0");
	assert_false(open_view());
	counts_view_follow(&view);
	assert_false(counts_view_is_current(&view));
	*told = right;
	order("v");
	assert_false(open_view());
	order("Vk");
	assert_false(open_view());
}

TEST(current)
{
	bool is_current;

	assert_false(counts_view_is_current(&view));
	assert_true(open_view());
	assert_true(counts_view_is_current(&view));
	with_limit(RLIMIT_NOFILE, 0, is_current = counts_view_is_current(&view));
	assert_true(is_current);
	order("w");
	assert_false(counts_view_is_current(&view));
}

TEST(executed)
{
	char answer;

	order("ll");
	assert_true(open_view());
	assert_int_equal(write(other.orders, "x", 1), 1);
	assert_int_equal(read(other.answers, &answer, 1), 0);
	assert_false(counts_view_is_current(&view));
	assert_counts(gpu, 2, 0, 0);
}

TEST(gone)
{
	order("l");
	assert_true(open_view());
	kill(other.pid, SIGKILL);
	process_wait(&other, WEXITED);
	assert_false(counts_view_is_current(&view));
	counts_view_follow(&view);
	assert_counts(gpu, 1, 0, 0);
}

FIXTURE(begin_all)
{
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(told, MAP_FAILED);
}

RUN_TESTS_ALONE(begin_all, NULL, begin, end)
