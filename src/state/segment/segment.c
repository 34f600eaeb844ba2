/* Mapping and closing a segment. */
#include "layout.h"
#include "state/handle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct segment segment_closed = {.memory = NULL, .file = -1, .group = {.file = -1}};

struct segment segment_in(struct segment_memory *memory)
{
	return (struct segment){
		.memory = memory,
		.file = -1,
		.number = &memory->number,
		.group_number = group_number(&group_closed),
		.slots = memory->slots,
		.group = group_closed,
	};
}

static bool may_write(int file)
{
	return (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR;
}

bool segment_may_write(const struct segment *segment)
{
	return may_write(segment->file);
}

struct segment segment_map(int file)
{
	int protection = may_write(file) ? PROT_READ | PROT_WRITE : PROT_READ;
	struct segment_memory *memory = mmap(NULL, sizeof *memory, protection, MAP_SHARED, file, 0);
	struct segment segment;
	struct stat status;

	if (memory == MAP_FAILED || fstat(file, &status) < 0) {
		close(file);
		return segment_closed;
	}
	segment = segment_in(memory);
	segment.file = file;
	segment.inode = status.st_ino;
	return segment;
}

void segment_close(struct segment *segment)
{
	group_close(&segment->group);
	if (segment->memory)
		munmap(segment->memory, sizeof *segment->memory);
	/* The program may have closed our descriptor, and the number may now be a file of its own. */
	if (handle_leads_to(segment->file, segment->inode, sizeof *segment->memory))
		close(segment->file);
	*segment = segment_closed;
}

struct identity segment_owner(const struct segment *segment)
{
	return segment->memory->owner;
}

/* --- its group ------------------------------------------------------------------------------------------------------ */

void segment_use_group(struct segment *segment, const struct group *group)
{
	segment->group = *group;
	segment->group_number = group_number(group);
}

int segment_group_descriptor(const struct segment *segment)
{
	return segment->memory->group.inode != 0 ? (int)atomic_load(&segment->memory->group_descriptor) : -1;
}

void segment_open_group(struct segment *segment, pid_t pid, enum group_use use)
{
	struct group_lead lead = {.pid = pid, .number = segment_group_descriptor(segment), .identity = segment->memory->group};
	struct group group;
	struct stat status;

	if (lead.identity.inode == 0 || fstat(segment->file, &status) < 0)
		return;
	lead.user = status.st_uid;
	if (group_open_of(&group, &lead, use) || group_open_anywhere(&group, lead.identity, lead.user, use))
		segment_use_group(segment, &group);
}

bool segment_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number)
{
	uint64_t seen = atomic_load_explicit(segment->group_number, memory_order_acquire);
	bool whole = revisions_load(segment->memory->ring, &segment->memory->number, revision, number);

	whole = whole && group_resolve(&segment->group, revision);
	/* If the group changes meanwhile, the number is older than the revision, and the next look reads both anew. */
	*number += seen;
	return whole;
}
