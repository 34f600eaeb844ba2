#include "shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel would end the process (SIGXFSZ) if the file exceeded the limit. */
static int check_file_limit(size_t size, struct error *error)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) {
		errno = EFBIG;
		return error_set(error,
		                 "no shared memory: it takes %zu bytes, and the limit for files (ulimit -f) is %llu",
		                 size, (unsigned long long)limit.rlim_cur);
	}
	return 0;
}

bool shared_file_is_sealed(int file)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(file, F_GET_SEALS);

	return seals >= 0 && (seals & size) == size;
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

bool shared_file_may_write(int file)
{
	return (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* The kernel takes another address if there is memory at `hint`. */
static void *map_at(uint64_t hint, int file, off_t at, size_t size, bool to_write)
{
	int protection = PROT_READ | (to_write ? PROT_WRITE : 0);
	void *memory = mmap((void *)(uintptr_t)hint, size, protection, MAP_SHARED, file, at);

	return memory == MAP_FAILED ? NULL : memory;
}

void *shared_file_map(int file, off_t at, size_t size, bool to_write)
{
	return map_at(0, file, at, size, to_write);
}

/* Addresses for low memory: low enough for the release slots of every version, and far from loaded programs; then below
 * the memory of sanitizers. */
#define LOW_ATTEMPTS 64

static uint64_t low_address(unsigned int attempt)
{
	return attempt < LOW_ATTEMPTS / 2 ? UINT64_C(0x2000000000) + attempt * UINT64_C(0x10000000)
	                                  : UINT64_C(0x20000000) + (attempt - LOW_ATTEMPTS / 2) * UINT64_C(0x1000000);
}

void *shared_file_map_low(int file, size_t size, uint64_t reach)
{
	void *memory = map_at(0, file, 0, size, true);

	for (unsigned int i = 0; memory && (uintptr_t)memory + size > reach && i < LOW_ATTEMPTS; i++) {
		munmap(memory, size);
		memory = map_at(low_address(i), file, 0, size, true);
	}
	return memory;
}

/* The longest wait for the lock. An edit takes microseconds: an editor that holds the lock for longer is stopped. */
#define LOCK_WAIT_MS 2000

/* Editors take a write lock on the first byte (other bytes: state/ledger.h), which needs a file open for writing. Read
 * locks do not count: a process with an inherited segment for reading could keep editors out by a read lock. */
static int try_lock(int file)
{
	struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1}, held = wanted;
	int locked = fcntl(file, F_OFD_SETLK, &wanted);

	if (locked < 0 && errno == EAGAIN && fcntl(file, F_OFD_GETLK, &held) == 0) {
		locked = held.l_type == F_RDLCK ? 0 : -1;
		errno = EAGAIN;
	}
	return locked;
}

void shared_file_unlock(int file)
{
	fcntl(file, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1});
}

int shared_file_lock_within(int file, struct purse *purse, unsigned int patience_ms, struct error *error)
{
	int locked = try_lock(file), failure = errno;

	while (locked < 0 && failure == EAGAIN && purse_wait(purse, &patience_ms)) {
		locked = try_lock(file);
		failure = errno;
	}
	errno = failure;
	if (locked < 0 && errno == EAGAIN)
		return error_set_code(error, NVTASKSET_ERROR_BUSY,
		                      "another process keeps the partition locked: try again later");
	if (locked < 0)
		return error_set_errno(error, "the partition cannot be locked");
	return 0;
}

int shared_file_lock(int file, struct purse *purse, struct error *error)
{
	return shared_file_lock_within(file, purse, LOCK_WAIT_MS, error);
}
