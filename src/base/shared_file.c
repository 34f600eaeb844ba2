#include "shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

int shared_file_make(const char *name, size_t size, struct error *error)
{
	if (check_file_limit(size, error) < 0)
		return -1;
	int file = memfd_create(name, SHARED_FILE_FLAGS | MFD_NOEXEC_SEAL);

	if (file < 0 && errno == EINVAL)
		file = memfd_create(name, SHARED_FILE_FLAGS);
	if (file < 0)
		return error_set_errno(error, "no shared memory");
	if (fchmod(file, SHARED_FILE_MODE) < 0 || ftruncate(file, (off_t)size) < 0 ||
	    fcntl(file, F_ADD_SEALS, SHARED_FILE_SEALS) < 0) {
		error_set_errno(error, "shared memory cannot be set up");
		close(file);
		file = -1;
	}
	return file;
}
