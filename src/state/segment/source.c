/* The segments among this process's descriptors: its own, and inherited ones. */
#include "kind.h"
#include "state/handle.h"

#include <sys/stat.h>
#include <unistd.h>

/* `file` is the handle's opened file; -1 if it cannot be opened. A descriptor that is not passed on is an editor's, of
 * another process's segment. */
static enum segment_source source_of(int file, int handle)
{
	struct stat status;
	struct segment_header header = {.magic = 0};
	enum segment_source source = SEGMENT_NONE;

	if (file >= 0 && fstat(file, &status) == 0)
		header = segment_read_header(file);
	enum segment_kind kind = segment_kind_for(&header, identity_own());

	if (file < 0)
		source = SEGMENT_WITHHELD;
	else if (kind == KIND_OWN && status.st_uid == geteuid())
		source = SEGMENT_OWN;
	else if (kind == KIND_OWN || kind == KIND_INHERITED)
		source = SEGMENT_INHERITED;
	else if (kind == KIND_LEFT)
		source = SEGMENT_LEFT;
	return source == SEGMENT_OWN || handle_is_passed_on(handle) ? source : SEGMENT_NONE;
}

static int next_handle(int first)
{
	return handle_next(first, SEGMENT_LINK, sizeof(struct segment_memory));
}

enum segment_source segment_open_source(struct segment *segment, int *handle)
{
	enum segment_source best = SEGMENT_NONE;

	*segment = segment_closed;
	*handle = -1;
	for (int next = next_handle(0); next >= 0 && best != SEGMENT_OWN; next = next_handle(next + 1)) {
		struct segment found = segment_closed;
		int file = handle_open(next);
		enum segment_source source = source_of(file, next);

		if (source >= best && file >= 0)
			close(file);
		if (source < best && (file < 0 || segment_map_found(&found, file, NULL) == SEGMENT_FOUND)) {
			segment_close(segment);
			if (found.memory)
				segment_open_group(&found, getpid(), GROUP_TO_OBEY);
			*segment = found;
			*handle = next;
			best = source;
		}
	}
	return best;
}
