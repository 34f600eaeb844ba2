#include "shim.h"

#include "base/log.h"
#include "base/proc.h"
#include "launch/account/violation.h"
#include "state/group/file.h"
#include "state/group/find.h"
#include "state/revision_text.h"
#include "state/segment/find.h"
#include "state/segment/owner.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Another user's group is not ours, although we start with the group's partition. */
static void take_group(struct inheritance *inheritance, struct segment *segment)
{
	inheritance->descriptor = segment_group_descriptor(segment);
	if (group_is_trusted(&segment->group)) {
		inheritance->group = segment->group;
		segment->group = group_closed;
	}
}

static bool read_and_close(struct segment *segment, bool is_open, struct inheritance *inheritance)
{
	uint64_t number;
	bool found = is_open && segment_read(segment, &inheritance->revision, &number);

	group_close(&inheritance->group);
	if (found)
		take_group(inheritance, segment);
	segment_close(segment);
	return found;
}

/* --- by the inherited descriptor, also if its owner has ended ----------------------------------------------------- */

/* The origin of the segment; SEGMENT_NONE if unreadable. */
static enum segment_source read_inherited(struct inheritance *inheritance)
{
	struct segment segment;
	int handle;
	enum segment_source source = segment_open_source(&segment, &handle);
	bool is_open = segment.memory != NULL;

	return read_and_close(&segment, is_open, inheritance) || !is_open ? source : SEGMENT_NONE;
}

/* --- by /proc ----------------------------------------------------------------------------------------------------- */

/* `is_out_of_reach`: the process has a segment, or may have a segment, and we are not permitted to read there. */
static bool read_segment_of(pid_t pid, struct inheritance *inheritance, bool *is_out_of_reach)
{
	struct segment segment;
	struct error error; /* makes segment_open search everywhere */
	bool found = read_and_close(&segment, segment_open(&segment, pid, NULL, &error) == SEGMENT_FOUND, inheritance);

	if (!found) {
		enum segment_state state = segment_read_mapped(pid, &inheritance->revision);

		found = state == SEGMENT_FOUND;
		*is_out_of_reach = state == SEGMENT_NOT_PERMITTED;
	}
	return found;
}

/* Searches the ancestors up to `root`. `out_of_reach`: an ancestor with an unreadable segment, which is the last. */
static bool read_ancestor(pid_t root, struct inheritance *inheritance, pid_t *out_of_reach)
{
	pid_t pid = getpid();
	bool found = false, is_out_of_reach = false;

	for (int generation = 0;
	     generation < PARENT_GENERATIONS && !found && !is_out_of_reach && pid > 1 && pid != root; generation++) {
		pid = proc_parent(pid);
		found = pid > 1 && read_segment_of(pid, inheritance, &is_out_of_reach);
	}
	*out_of_reach = is_out_of_reach ? pid : 0;
	return found;
}

/* --- both, then the environment ----------------------------------------------------------------------------------- */

/* The partition from the environment may be out of date: nvtaskset -p may have changed the ancestors' partition. */
static void warn_of_start(bool is_withheld, pid_t out_of_reach)
{
	char reason[256];

	if (out_of_reach == 0 && !is_withheld)
		return;
	if (out_of_reach != 0)
		snprintf(reason, sizeof reason, "the partition of pid %d, which started this program, cannot be read",
		         (int)out_of_reach);
	else
		strcpy(reason, "the partition that this program was started in cannot be read without /proc");
	violation_refuse(reason);
	log_warning("%s: this program starts with the one given to nvtaskset", reason);
}

/* If the owner of the inherited segment has moved to a new segment, the ancestors are searched. */
static bool find_partition(pid_t root, struct inheritance *inheritance)
{
	struct inheritance ancestors = {.group = group_closed};
	enum segment_source source = read_inherited(inheritance);
	pid_t out_of_reach = 0;
	bool found = source <= SEGMENT_LEFT;

	if (source >= SEGMENT_LEFT && root > 0 && read_ancestor(root, &ancestors, &out_of_reach)) {
		group_close(&inheritance->group);
		*inheritance = ancestors;
		return true;
	}
	if (!found)
		warn_of_start(source == SEGMENT_WITHHELD, out_of_reach);
	return found;
}

/* --- the group ---------------------------------------------------------------------------------------------------- */

/* The group of the file named by the environment replaces any other group. */
static void find_file(struct inheritance *inheritance)
{
	const char *path = group_file_named();
	struct group group;
	struct error error;

	if (!path)
		return;
	if (group_file_obey(&group, path, &error) < 0) {
		violation_refuse(error.reason);
		log_wake();
		log_warning(GROUP_FILE_ENVIRONMENT ": %s: this program does not obey that group", error.reason);
	} else if (group_is_same(group.identity, inheritance->group.identity)) {
		group_close(&group);
	} else {
		group_close(&inheritance->group);
		inheritance->group = group;
		inheritance->revision.group = 0;
	}
}

static void join_group(struct inheritance *inheritance)
{
	struct group_identity former = inheritance->group.identity;

	find_file(inheritance);
	if (inheritance->group.memory)
		inheritance->descriptor = group_keep(&inheritance->group, former, inheritance->descriptor);
	if (!group_resolve(&inheritance->group, &inheritance->revision))
		group_close(&inheritance->group);
}

int inherit_partition(struct inheritance *inheritance, struct error *error)
{
	const char *partition = secure_getenv(SEGMENT_ENVIRONMENT), *number = secure_getenv(SEGMENT_ROOT_ENVIRONMENT);
	pid_t root = partition && number ? (pid_t)strtol(number, NULL, 10) : 0;
	struct segment_revision given;
	int result = revision_parse(&given, partition ? partition : "", error);

	*inheritance = (struct inheritance){.group = group_closed, .descriptor = -1};
	if (result == 0 && !find_partition(root, inheritance)) {
		inheritance->revision = given;
		group_open_inherited(&inheritance->group);
	}
	if (result == 0)
		join_group(inheritance);
	return result;
}
