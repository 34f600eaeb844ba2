/*
 * Any content in a group's memory, or in its file. Who reads it gets a partition that is whole, or is told that the group is
 * damaged; a change that succeeds is in force afterwards, and one that fails has changed nothing. Names are printable.
 */
#include "fuzz.h"
#include "state/segment/layout.h"

#include "state/group/group.h"
#include "state/revision_text.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEADER 16 /* magic number, version and size */

/* Bits of the input's first byte. */
enum {
	KEEP_HEADER = 1, IS_FILE = 2, OTHER_SIZE = 4, NO_SEALS = 8,
	NUMBER_IS_SMALL = 16 /* so that the ring's places agree with it more often */
};

static uint8_t good[GROUP_FILE_SIZE]; /* a group as it is made */

static void set_up(void)
{
	static const struct segment_revision nothing;
	struct group group;

	must(group_create(&group, "fuzz", &nothing, NULL) == 0);
	must(pread(group.file, good, sizeof good, 0) == sizeof good);
	group_close(&group);
}

static int make_file(uint8_t choices, const uint8_t *data, size_t size)
{
	static uint8_t content[GROUP_FILE_SIZE * 2];
	size_t room = choices & OTHER_SIZE ? size % sizeof content : GROUP_FILE_SIZE;
	int file = choices & IS_FILE ? open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
	                             : memfd_create(GROUP_MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	fill(content, room, data, size);
	if (choices & KEEP_HEADER && room >= HEADER)
		memcpy(content, good, HEADER);
	if (choices & NUMBER_IS_SMALL && room >= 392)
		memset(content + 385, 0, 7);
	must(file >= 0 && pwrite(file, content, room, 0) == (ssize_t)room);
	if (!(choices & (IS_FILE | NO_SEALS)))
		must(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	return file;
}

static void check_revision(const struct segment_revision *revision)
{
	char text[SEGMENT_ENVIRONMENT_MAX];

	must(revision->count <= SEGMENT_GPUS);
	for (uint32_t i = 0; i < revision->count; i++)
		must(revision_find_partition(revision, revision->partitions[i].pci) != NULL);
	must(strlen(revision_format(revision, text)) < sizeof text);
}

static void check_texts(const struct group *group)
{
	char name[GROUP_NAME_MAX], cgroup[GROUP_CGROUP_MAX];

	must(*group_name(group, name) == '\0' || group_name_is_valid(name));
	must(strlen(group_cgroup(group, cgroup)) < sizeof cgroup);
}

/* What a member makes of it, beside its own. */
static void check_member(const struct group *group, const struct segment_partition *own)
{
	struct segment_revision revision = {.count = 0};

	must(revision_put(&revision, own, NULL) == 0);
	if (group_resolve(group, &revision)) {
		check_revision(&revision);
		must(revision.count == SEGMENT_GPUS || revision_find_partition(&revision, own->pci));
	}
}

static void check_change(struct group *group, const struct segment_partition *wanted)
{
	struct segment_revision before, after;
	struct error error = {.reason = ""};
	uint64_t number, raised;
	bool was_whole = group_read(group, &before, &number);
	int result = group_change(group, &(struct segment_revision){.count = 1, .partitions[0] = *wanted}, &error);

	must(result == 0 ? was_whole : error.reason[0] != '\0');
	if (result == 0) {
		must(group_read(group, &after, &raised) && raised != number && raised != 0);
		const struct segment_partition *found = revision_find_partition(&after, wanted->pci);

		check_revision(&after);
		must(found && tpcset_equal(&found->set, &wanted->set));
	} else if (was_whole) {
		must(group_read(group, &after, &raised) && raised == number);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct segment_partition wanted;
	struct error error = {.reason = ""};
	struct segment_revision revision;
	struct group group;
	uint64_t number;

	if (!good[0])
		set_up();
	if (size == 0)
		return 0;
	uint8_t choices = data[0];

	fill(&wanted, sizeof wanted, data + 1, size - 1);
	if (group_map(&group, make_file(choices, data + 1, size - 1), &error) == 0) {
		must(choices & OTHER_SIZE || choices & IS_FILE || !(choices & NO_SEALS));
		check_texts(&group);
		if (group_read(&group, &revision, &number))
			check_revision(&revision);
		check_member(&group, &wanted);
		group_check_within(&group, &wanted, 1, &error);
		check_change(&group, &wanted);
	} else {
		must(error.reason[0] && !group.memory);
		must(choices & (OTHER_SIZE | NO_SEALS) || !(choices & KEEP_HEADER));
	}
	group_close(&group);
	return 0;
}
