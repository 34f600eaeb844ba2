#include "kind.h"

#include <unistd.h>

struct segment_header segment_read_header(int file)
{
	struct segment_header header = {.magic = 0};

	if (!segment_is_file(file) || pread(file, &header, sizeof header, 0) != sizeof header)
		header.magic = 0;
	return header;
}

enum segment_kind segment_kind_for(const struct segment_header *header, struct identity who)
{
	bool is_own = identity_matches(header->owner, who);
	enum segment_kind kind = KIND_NOT_READY;

	if (header->magic == SEGMENT_MAGIC)
		kind = is_own ? KIND_OWN : KIND_INHERITED;
	else if (header->magic == SEGMENT_MOVED)
		kind = is_own ? KIND_NOBODYS : KIND_LEFT;
	return kind;
}

enum segment_state segment_map_found(struct segment *segment, int file, struct error *error)
{
	enum segment_state state = SEGMENT_NOT_READY;

	if (!segment_is_file(file)) {
		error_set_code(error, NVTASKSET_ERROR_DAMAGED, "its segment is not one that this version knows");
		close(file);
		return state;
	}
	*segment = segment_map(file);
	uint64_t magic = segment->memory ? atomic_load_explicit(&segment->memory->magic, memory_order_acquire) : 0;

	if (!segment->memory) {
		error_set_errno(error, "its segment cannot be mapped");
		state = SEGMENT_FAILED;
	} else if (magic != SEGMENT_MAGIC && magic != SEGMENT_MOVED) {
		error_set_code(error, NVTASKSET_ERROR_DAMAGED, "its segment is not one that this version knows");
	} else if (segment->memory->version != SEGMENT_VERSION || segment->memory->size != sizeof *segment->memory) {
		error_set_code(error, NVTASKSET_ERROR_DAMAGED,
		               "its segment has another version: use the nvtaskset that started it");
		state = SEGMENT_FAILED;
	} else {
		state = SEGMENT_FOUND;
	}
	if (state != SEGMENT_FOUND)
		segment_close(segment);
	return state;
}
