/* For unit tests of the segment: makes, changes and reads this process's own. */
#ifndef NVTASKSET_TESTS_OWN_SEGMENT_H
#define NVTASKSET_TESTS_OWN_SEGMENT_H

#include "../cases.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/owner.h"

static const struct pci_address first = {.bus = 0x3b};

static struct segment_partition partition_of(struct pci_address pci, unsigned int from, unsigned int to)
{
	struct segment_partition partition = {.pci = pci};

	tpcset_add_range(&partition.set, from, to);
	return partition;
}

static struct segment_revision revision_of(const struct segment_partition *partition)
{
	return (struct segment_revision){.count = 1, .partitions[0] = *partition};
}

/* A segment with TPCs 0 to 7 of the first GPU. */
static struct segment make_segment(void)
{
	struct segment_partition partition = partition_of(first, 0, 7);
	struct segment_revision revision = revision_of(&partition);
	struct segment segment;

	assert_int_equal(segment_create(&segment, &revision, NULL, -1, -1, NULL), 0);
	return segment;
}

/* A fixture: such a segment, this process's own. */
static struct segment owner;

static inline int make_owner(void **state)
{
	owner = make_segment();
	return 0;
}

static inline int close_owner(void **state)
{
	segment_close(&owner);
	return 0;
}

/* As an editor does that has it open: these TPCs of a GPU. Inline, like assert_set, since some tests do not edit. */
static inline int change(struct segment *editor, struct pci_address pci, unsigned int from, unsigned int to)
{
	struct segment_partition partition = partition_of(pci, from, to);
	struct segment_revision revision = revision_of(&partition);

	return segment_change(editor, &revision, NULL, NULL);
}

static inline void assert_set(const struct segment *segment, struct pci_address pci, unsigned int from, unsigned int to)
{
	struct segment_partition expected = partition_of(pci, from, to);
	struct segment_revision revision;
	uint64_t number;
	char found[TPCSET_TEXT], wanted[TPCSET_TEXT];

	assert_true(segment_read(segment, &revision, &number));
	const struct segment_partition *partition = revision_find_partition(&revision, pci);

	assert_non_null(partition);
	assert_string_equal(tpcset_format_list(&partition->set, found), tpcset_format_list(&expected.set, wanted));
}

#endif
