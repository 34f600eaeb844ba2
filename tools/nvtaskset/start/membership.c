#include "membership.h"

#include "select/set.h"
#include "select/turn.h"
#include "state/group/file.h"
#include "state/group/find.h"
#include "state/segment/owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- which group --------------------------------------------------------------------------------------------------- */

static int open_file(struct membership *membership, const struct options *options, struct error *error)
{
	const char *path = membership->path;
	bool makes = !options->dry_run && access(path, F_OK) < 0 && errno == ENOENT;
	struct error why = {.reason = ""};
	int result = makes ? group_file_make(&membership->group, path, "", &why) : group_file_open(&membership->group, path, &why);

	if (result < 0)
		error_reword(&why, GROUP_FILE_ENVIRONMENT ": %.250s", why.reason);
	return result < 0 ? error_pass(error, &why) : 0;
}

static int open_named(struct membership *membership, const struct options *options, struct error *error)
{
	if (!options->dry_run && turn_wait("--group", "end it", error) < 0)
		return -1;
	int found = group_open_named(&membership->group, options->group, geteuid());

	return found < 2 ? 0 : error_set(error, "--group %s: there are several, in other PID namespaces too", options->group);
}

/* The group that this process is in. One of a file is not left, also if the environment was cleared. */
static void look_at_own(struct membership *membership)
{
	struct segment segment;
	int handle;

	membership->descriptor = -1;
	segment_open_source(&segment, &handle);
	if (segment.memory) {
		membership->descriptor = segment_group_descriptor(&segment);
		membership->former = segment.group.identity;
	}
	if (segment.group.is_file && group_is_trusted(&segment.group)) {
		membership->group = segment.group;
		segment.group = group_closed;
	}
	segment_close(&segment);
}

int membership_find(struct membership *membership, const struct options *options, struct error *error)
{
	uint64_t number;
	int result = 0;

	*membership = (struct membership){.group = group_closed};
	look_at_own(membership);
	membership->path = group_file_named();
	if (options->group && (membership->group.memory || membership->path))
		return error_set(error, "--group %s: this program was started in the group of a file (" GROUP_FILE_ENVIRONMENT
		                        "), which it cannot leave", options->group);
	if (membership->path) {
		group_close(&membership->group);
		result = open_file(membership, options, error);
	} else if (options->group) {
		result = open_named(membership, options, error);
	}
	if (result == 0 && membership->group.memory && !group_read(&membership->group, &membership->partition, &number))
		result = error_set(error, "the group is damaged");
	return result;
}

/* --- which partition ------------------------------------------------------------------------------------------------- */

static int put_all(struct segment_revision *revision, const struct segment_revision *more, struct error *error)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < more->count; i++)
		result = segment_put(revision, &more->partitions[i], error);
	return result;
}

/* A member gets what the group has, whatever its SET: says so if that is something else. On a GPU that the group does not
 * name, it has all. */
static int take_groups(const struct membership *membership, struct segment_revision *revision, const struct options *options,
                       const struct gpu_choices *chosen, const struct topology_list *list, struct error *error)
{
	const struct set_limits limits = {.room = &membership->partition};
	struct segment_revision wanted = {.count = 0};
	char list_text[TPCSET_TEXT], pci[PCI_ADDRESS_TEXT];

	if (options->notation != NOTATION_COUNT && set_find(&wanted, options, chosen, list, &limits, error) < 0)
		return -1;
	*revision = membership->partition;
	for (uint32_t i = 0; i < wanted.count && !options->dry_run; i++) {
		struct pci_address gpu = wanted.partitions[i].pci;
		const struct segment_partition *has = segment_find(revision, gpu);
		struct tpcset set = has ? has->set : topology_all(topology_find(list, gpu));

		if (!tpcset_equal(&set, &wanted.partitions[i].set))
			fprintf(stderr, "nvtaskset: group %s has TPCs %s of GPU %s, and so has COMMAND; to change all of it: -p --group\n",
			        options->group, tpcset_format_list(&set, list_text), gpus_label(gpu, list, pci));
	}
	return 0;
}

/* A part of what a file's group has; on GPUs that it does not name, anything. */
static int take_part(const struct membership *membership, struct segment_revision *revision, const struct options *options,
                     const struct gpu_choices *chosen, const struct topology_list *list, struct error *error)
{
	const struct set_limits limits = {.group = &membership->group, .room = &membership->partition};
	struct segment_revision wanted;

	if (set_find(&wanted, options, chosen, list, &limits, error) < 0 ||
	    group_check_within(&membership->group, wanted.partitions, wanted.count, error) < 0)
		return -1;
	*revision = membership->partition;
	return put_all(revision, &wanted, error);
}

/* Gives the group its partitions only. */
static int begin(struct group *group, const struct segment_revision *revision, struct error *error)
{
	struct segment_revision first = {.count = revision->count};

	memcpy(first.partitions, revision->partitions, sizeof first.partitions);
	return group_begin(group, &first, error);
}

/* The first command in a file's group chooses for all, from what no other group of the directory has. */
static int claim(struct membership *membership, struct segment_revision *revision, const struct options *options,
                 const struct gpu_choices *chosen, const struct topology_list *list, struct error *error)
{
	uint64_t number;
	int lock = -1, result = -1;

	if (!membership->path)
		return error_set(error, "its group has no partition yet, and gets one from a command that finds the path of its file in "
		                        GROUP_FILE_ENVIRONMENT);
	result = set_find_in_group(revision, options, chosen, list, &membership->group, membership->path, &lock, error);
	if (result == 0 && !options->dry_run)
		result = begin(&membership->group, revision, error);
	/* Somebody else was first. */
	if (result == 1)
		result = group_read(&membership->group, &membership->partition, &number)
		                 ? take_part(membership, revision, options, chosen, list, error)
		                 : error_set(error, "the group is damaged");
	if (lock >= 0)
		close(lock);
	return result;
}

int membership_choose(struct membership *membership, struct segment_revision *revision, const struct options *options,
                      const struct gpu_choices *chosen, const struct topology_list *list, struct error *error)
{
	static const struct set_limits limits;
	int result;

	if (!membership->group.memory)
		result = set_find(revision, options, chosen, list, &limits, error);
	else if (!membership->group.is_file)
		result = take_groups(membership, revision, options, chosen, list, error);
	else if (membership->partition.count > 0)
		result = take_part(membership, revision, options, chosen, list, error);
	else
		result = claim(membership, revision, options, chosen, list, error);
	return result;
}

/* --- beginning ------------------------------------------------------------------------------------------------------- */

void membership_begin(struct membership *membership, const struct segment_revision *revision, const struct options *options)
{
	struct segment segment;
	int descriptor = -1;

	if (!membership->group.memory)
		group_create(&membership->group, options->group ? options->group : "", revision, NULL);
	if (membership->group.memory)
		descriptor = group_keep(&membership->group, membership->former, membership->descriptor);
	segment_create(&segment, revision, &membership->group, descriptor, SEGMENT_OF_BEFORE, NULL);
}
