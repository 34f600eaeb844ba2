/* A segment's file. */
#include "base/shared_file.h"
#include "layout.h"
#include "state/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool segment_is_file(int file)
{
	struct stat status;
	int seals = fcntl(file, F_GET_SEALS);

	return seals >= 0 && (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW) &&
	       fstat(file, &status) == 0 && status.st_size == (off_t)sizeof(struct segment_memory);
}

int segment_make(struct segment *segment, int in_place_of, struct error *error)
{
	int file = shared_file_make(SEGMENT_NAME, sizeof(struct segment_memory), error);

	*segment = segment_closed;
	if (file < 0)
		return -1;
	*segment = segment_map(file);
	if (!segment->memory)
		return error_set_errno(error, "shared memory cannot be mapped");
	segment->file = handle_make(file, in_place_of);
	if (segment->file < 0) {
		error_set_errno(error, "no shared memory");
		segment_close(segment);
		return -1;
	}
	return 0;
}
