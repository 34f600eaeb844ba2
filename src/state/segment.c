/* Mapping and closing a segment. */
#include "handle.h"
#include "layout.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct segment segment_closed = {.memory = NULL, .file = -1};

struct segment segment_in(struct segment_memory *memory)
{
	return (struct segment){.memory = memory, .file = -1, .number = &memory->number, .slots = memory->slots};
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
