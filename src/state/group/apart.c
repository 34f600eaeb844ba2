#include "group.h"

#include "base/clock.h"
#include "base/memfd_find.h"
#include "base/shared_file.h"
#include "state/handle.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "nvtaskset-memory" /* of the memfd */
#define MAGIC UINT64_C(0x6d656d6f72766e01) /* not text */
#define VERSION 1

struct apart {
	_Atomic uint64_t magic; /* written last */
	uint64_t version;
	struct group_identity group;
	_Alignas(64) struct ledger ledger;
};

/* --- the file ----------------------------------------------------------------------------------------------------- */

static int make_ledger(const struct group *group)
{
	int file = shared_file_make(NAME, sizeof(struct apart), NULL);
	struct apart *memory = file >= 0 ? shared_file_map(file, 0, sizeof *memory, true) : NULL;

	if (memory) {
		memory->version = VERSION;
		memory->group = group->identity;
		atomic_store(&memory->magic, MAGIC);
		munmap(memory, sizeof *memory);
	} else if (file >= 0) {
		close(file);
		file = -1;
	}
	return file;
}

static bool is_wanted(int file, int number, void *context)
{
	const struct group *group = context;
	struct apart header;
	struct stat status;
	const size_t length = offsetof(struct apart, ledger);

	(void)number;
	return shared_file_is_sealed(file) && fstat(file, &status) == 0 && status.st_size == (off_t)sizeof header &&
	       status.st_uid == geteuid() && pread(file, &header, length, 0) == (ssize_t)length &&
	       header.magic == MAGIC && header.version == VERSION && group_is_same(header.group, group->identity);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static bool lock(int file)
{
	double end = clock_ms() + APART_PATIENCE_MS;
	int locked = flock(file, LOCK_EX | LOCK_NB);

	while (locked < 0 && clock_ms() < end) {
		clock_pause_us(1000);
		locked = flock(file, LOCK_EX | LOCK_NB);
	}
	return locked == 0;
}

/* A waiter for the lock finds the ledger when the lock is given back. */
int apart_open(const struct group *group, int group_file, struct ledger **ledger)
{
	const struct memfd_search memfds = {
		.link = MEMFD_LINK(NAME),
		.lowest_of = handle_lowest_of,
		.is_sought = is_wanted,
		.context = (void *)(uintptr_t)group,
	};
	int file = -1;

	*ledger = NULL;
	if (lock(group_file)) {
		file = memfd_find_anywhere(&memfds, NULL);
		if (file < 0)
			file = make_ledger(group);
		file = file >= 0 ? handle_move_up(file) : -1;
		flock(group_file, LOCK_UN);
	}
	struct apart *memory = file >= 0 ? shared_file_map(file, 0, sizeof *memory, true) : NULL;

	if (memory) {
		*ledger = &memory->ledger;
	} else if (file >= 0) {
		close(file);
		file = -1;
	}
	return file;
}

void apart_unmap(struct ledger *ledger)
{
	munmap((char *)ledger - offsetof(struct apart, ledger), sizeof(struct apart));
}
