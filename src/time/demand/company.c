#include "company.h"

#include "base/pids.h"
#include "state/kernels/counts_read.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/layout.h"

#include <stdlib.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/* How often all processes are looked at, and how many at once: 20 to 50 us each. */
#define WALK_NS (5 * SECOND)
#define PROCESSES_AT_ONCE 8

/* How long a mark lasts without a program with a number. */
#define STAY_NS SECOND

/* --- the program with a number -------------------------------------------------------------------------------- */

static struct {
	struct pids all;
	size_t next;
	uint64_t began;
} walk;

static bool is_beside(const struct segment *segment, pid_t pid, const struct work *work)
{
	struct counts counts;
	bool is_so = false;

	bool is_read = counts_read(segment, pid, &counts, NULL) == 0;

	for (unsigned int i = 0; is_read && i < counts.count && !is_so; i++)
		is_so = pci_address_find(counts.gpus[i].pci, work->gpus, work->gpu_count, sizeof work->gpus[0]) != NULL;
	return is_so;
}

static bool is_without_number(const struct segment *segment)
{
	struct segment_revision revision;
	uint64_t number;

	return !segment_has_company(segment) && segment_read(segment, &revision, &number) &&
	       !segment_rank_is_given(revision.rank);
}

/* The mark comes first: a reader of the revision sees the mark. */
static void mark(struct segment *segment)
{
	struct error error;

	segment_set_company(segment, true);
	if (segment_raise(segment, &error) < 0)
		segment_set_company(segment, false);
}

static void mark_neighbour(pid_t pid, const struct work *work)
{
	struct segment segment;

	if (segment_open(&segment, pid, NULL, NULL) == SEGMENT_FOUND && segment_may_write(&segment) &&
	    is_without_number(&segment) && is_beside(&segment, pid, work))
		mark(&segment);
	segment_close(&segment);
}

void company_call(uint64_t now, const struct work *work)
{
	if (walk.next == walk.all.count && now - walk.began >= WALK_NS) {
		company_forget();
		pids_all(&walk.all, NULL);
		walk.began = now;
	}
	for (unsigned int i = 0; i < PROCESSES_AT_ONCE && walk.next < walk.all.count; i++) {
		pid_t pid = walk.all.list[walk.next++];

		if (pid != getpid())
			mark_neighbour(pid, work);
	}
}

/* --- the neighbour --------------------------------------------------------------------------------------------- */

static uint64_t seen; /* the last time with a program with a number; 0: none yet */

bool company_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number)
{
	bool is_read = segment_read(segment, revision, number);

	if (is_read && segment_has_company(segment) && !segment_rank_is_given(revision->rank))
		revision->rank.priority = segment_rank_of_priority(SEGMENT_PRIORITY_USUAL);
	return is_read;
}

bool company_has_left(const struct segment *segment, bool is_there, uint64_t now)
{
	if (is_there || seen == 0 || !segment_has_company(segment))
		seen = now;
	bool has_left = now - seen >= STAY_NS;

	if (has_left)
		segment_set_company(segment, false);
	return has_left;
}

void company_forget(void)
{
	free(walk.all.list);
	walk = (__typeof__(walk)){.began = 0};
	seen = 0;
}
