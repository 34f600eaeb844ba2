/* A segment's file. */
#include "handle.h"
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

bool segment_is_file(int file)
{
	struct stat status;
	int seals = fcntl(file, F_GET_SEALS);

	return seals >= 0 && (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW) &&
	       fstat(file, &status) == 0 && status.st_size == (off_t)sizeof(struct segment_memory);
}

/* The kernel would end the process (SIGXFSZ) if the file became longer than its limit. */
static int check_file_limit(size_t size, struct error *error)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) {
		errno = EFBIG;
		return error_set(error, "no shared memory: it takes %zu bytes, and the limit for files (ulimit -f) is %llu",
		                 size, (unsigned long long)limit.rlim_cur);
	}
	return 0;
}

int segment_make_file(const char *name, size_t size, struct error *error)
{
	if (check_file_limit(size, error) < 0)
		return -1;
	int file = memfd_create(name, SEGMENT_FILE_FLAGS | MFD_NOEXEC_SEAL);

	if (file < 0 && errno == EINVAL)
		file = memfd_create(name, SEGMENT_FILE_FLAGS);
	if (file < 0)
		return error_set_errno(error, "no shared memory");
	if (fchmod(file, SEGMENT_FILE_MODE) < 0 || ftruncate(file, (off_t)size) < 0 ||
	    fcntl(file, F_ADD_SEALS, SEGMENT_FILE_SEALS) < 0) {
		error_set_errno(error, "shared memory cannot be set up");
		close(file);
		file = -1;
	}
	return file;
}

int segment_make(struct segment *segment, int in_place_of, struct error *error)
{
	int file = segment_make_file(SEGMENT_NAME, sizeof(struct segment_memory), error);

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
