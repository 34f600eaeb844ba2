#include "turn.h"

#include "base/clock.h"
#include "base/memfd_find.h"
#include "base/pids.h"
#include "base/proc.h"
#include "base/shared_file.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICKET_NAME "nvtaskset-turn"
#define WAIT_MS 10000
#define LOOK_AGAIN_MS 2500 /* the longest wait before a new look at all tickets */

struct ticket {
	_Atomic uint64_t number; /* the lowest comes first; 0: the process is about to take a number */
	uint64_t self;           /* random: orders equal numbers, and tells tickets apart */
};

/* The result of a look at the tickets of all other processes. */
struct tickets_seen {
	const struct ticket *own;
	uint64_t highest;
	bool others_first;             /* a second process comes before this process */
	uint64_t first, first_of_self; /* the number and `self` of the very first ticket */
	/* The file of the process to wait for: about to take a number, or else the last before this process; or -1. */
	int before;
	uint64_t before_number, before_self;
};

static const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

/* NULL with the reason. The file stays open, to be found in /proc/PID/fd, and locked: the lock shows without a search
 * when the file is closed. */
static struct ticket *make_ticket(const char *option, struct error *error)
{
	struct error why = {.reason = ""};
	int file = shared_file_make(TICKET_NAME, sizeof(struct ticket), &why);
	struct ticket *ticket = MAP_FAILED;

	if (file >= 0 && fcntl(file, F_OFD_SETLK, &whole) == 0)
		ticket = mmap(NULL, sizeof *ticket, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (ticket != MAP_FAILED && getrandom(&ticket->self, sizeof ticket->self, 0) != sizeof ticket->self)
		ticket->self = (uint64_t)getpid();
	if (ticket == MAP_FAILED)
		error_set(error, "%s: %.200s", option, file < 0 ? why.reason : "no memory to share with other runs of "
		                                                               "nvtaskset");
	return ticket == MAP_FAILED ? NULL : ticket;
}

/* --- other processes ---------------------------------------------------------------------------------------------- */

static bool comes_before(uint64_t number, uint64_t self, uint64_t other_number, uint64_t other_self)
{
	return number < other_number || (number == other_number && self < other_self);
}

/* Whether to wait for this ticket, among all earlier tickets. */
static bool is_nearer(const struct tickets_seen *seen, uint64_t number, uint64_t self)
{
	return seen->before < 0 || number == 0 ||
	       (seen->before_number != 0 && comes_before(seen->before_number, seen->before_self, number, self));
}

static void wait_for_it(struct tickets_seen *seen, uint64_t number, uint64_t self, int file)
{
	int copy = is_nearer(seen, number, self) ? fcntl(file, F_DUPFD_CLOEXEC, 3) : -1;

	if (copy >= 0) {
		if (seen->before >= 0)
			close(seen->before);
		seen->before = copy;
		seen->before_number = number;
		seen->before_self = self;
	}
}

static void compare(struct tickets_seen *seen, uint64_t number, uint64_t self, int file)
{
	uint64_t own = atomic_load(&seen->own->number);

	if (number > seen->highest)
		seen->highest = number;
	/* A process that is about to take a number may take a lower number, or the same. */
	if (number == 0 || comes_before(number, self, own, seen->own->self)) {
		if (!seen->others_first || comes_before(number, self, seen->first, seen->first_of_self)) {
			seen->first = number;
			seen->first_of_self = self;
		}
		seen->others_first = true;
		wait_for_it(seen, number, self, file);
	}
}

/* Reads each ticket of a process. Always false: the search goes on. Skips our own ticket, also in forked children. */
static bool look_at_ticket(int file, int number, void *context)
{
	struct tickets_seen *seen = context;
	struct stat status;
	uint64_t words[2] = {0, 0}; /* 0 until they can be read */

	(void)number;
	if (fstat(file, &status) == 0 && status.st_uid == geteuid() &&
	    pread(file, words, sizeof words, 0) >= 0 && words[1] != seen->own->self)
		compare(seen, words[0], words[1], file);
	return false;
}

static bool may_have_ticket(pid_t pid)
{
	uid_t owner;

	return pid != getpid() && proc_owner(pid, &owner) && owner == geteuid();
}

/* Tickets of other users do not count. */
static int look_at_all(struct tickets_seen *seen, const struct ticket *own, struct error *error)
{
	const struct memfd_search tickets = {
		.link = MEMFD_LINK(TICKET_NAME),
		.is_meant = may_have_ticket,
		.is_sought = look_at_ticket,
		.context = seen,
	};
	struct pids pids;

	*seen = (struct tickets_seen){.own = own, .before = -1};
	if (pids_all(&pids, error) < 0)
		return -1;
	memfd_find_among(&pids, &tickets, NULL);
	free(pids.list);
	return 0;
}

/* --- waiting ----------------------------------------------------------------------------------------------------- */

static int take_number(struct ticket *ticket, const char *option, const char *instead, struct error *error)
{
	struct tickets_seen seen;

	if (look_at_all(&seen, ticket, error) < 0)
		return -1;
	if (seen.before >= 0)
		close(seen.before);
	if (seen.highest == UINT64_MAX)
		return error_set(error, "%s: a program of yours has damaged the order in which nvtaskset's runs take "
		                        "turns; %s", option, instead);
	atomic_store(&ticket->number, seen.highest + 1);
	return 0;
}

static bool is_still_before(const struct tickets_seen *seen)
{
	uint64_t number = 0;
	struct flock held = whole;

	return seen->before >= 0 && pread(seen->before, &number, sizeof number, 0) >= 0 &&
	       number == seen->before_number && fcntl(seen->before, F_OFD_GETLK, &held) == 0 && held.l_type != F_UNLCK;
}

/* Waits for the process right before ours. Then our turn comes, unless that process was ended. So most processes look
 * at all tickets only once more, however many wait. */
static void wait_for_one(struct tickets_seen *seen)
{
	double start = clock_ms();

	do
		clock_pause_us(1000);
	while (is_still_before(seen) && clock_ms() - start < LOOK_AGAIN_MS);
	if (seen->before >= 0)
		close(seen->before);
}

int turn_wait(const char *option, const char *instead, struct error *error)
{
	static struct ticket *ticket;
	struct tickets_seen seen = {.others_first = true};
	double start = clock_ms();

	if (ticket)
		return 0;
	ticket = make_ticket(option, error);
	if (!ticket)
		return -1;
	if (take_number(ticket, option, instead, error) < 0 || look_at_all(&seen, ticket, error) < 0)
		return -1;
	while (seen.others_first && clock_ms() - start < WAIT_MS) {
		uint64_t first = seen.first_of_self;

		wait_for_one(&seen);
		if (look_at_all(&seen, ticket, error) < 0)
			return -1;
		if (seen.first_of_self != first)
			start = clock_ms();
	}
	return seen.others_first ? error_set(error, "%s: another nvtaskset has been choosing TPCs for %d s; %s", option,
	                                     WAIT_MS / 1000, instead)
	                         : 0;
}
