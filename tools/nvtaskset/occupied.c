#include "occupied.h"

#include "clock.h"
#include "parent.h"
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* An abstract name: no file is left behind, and the kernel takes it back at an exec or the end of the process. */
#define LOCK_NAME "\0nvtaskset-choose"
#define LOCK_WAIT_MS 10000

/* For a file in /proc, at first; where that is not enough, twice as much, and so on. */
#define ROOM 65536

/* How long a process that is just becoming another program is waited for. */
#define EXEC_WAIT_MS 1000

/* --- the lock ------------------------------------------------------------------------------------------ */

int occupied_lock(struct error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = LOCK_NAME};
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + sizeof LOCK_NAME - 1;
	int lock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int result = lock >= 0 ? bind(lock, (struct sockaddr *)&address, length) : -1;

	for (int waited = 0; lock >= 0 && result < 0 && errno == EADDRINUSE && waited < LOCK_WAIT_MS; waited++) {
		clock_pause_us(1000);
		result = bind(lock, (struct sockaddr *)&address, length);
	}
	if (result < 0 && errno == EADDRINUSE)
		return error_set(error, "-n: another nvtaskset has been choosing TPCs for %d s; name them instead (-t)",
		                 LOCK_WAIT_MS / 1000);
	return result < 0 ? error_set_errno(error, "-n: no lock against others that choose") : 0;
}

/* --- programs that have not come to CUDA yet ------------------------------------------------------------- */

struct claims {
	size_t count;
	struct claim {
		pid_t pid, parent;
		struct segment_revision revision;
	} *list;
};

/* A file of /proc/PID as a string, to be freed; NULL where it cannot be read. By one call of the system: between two the
 * process can become another program, and the rest be missing. */
static char *read_at_once(pid_t pid, const char *name, size_t *length)
{
	char path[64], *text = NULL;
	ssize_t got = -1;
	bool is_whole = false;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	int file = open(path, O_RDONLY | O_CLOEXEC);

	for (size_t room = ROOM; file >= 0 && !is_whole; room *= 2) {
		free(text);
		text = malloc(room + 1);
		got = text ? pread(file, text, room, 0) : -1;
		is_whole = got < (ssize_t)room;
	}
	if (file >= 0)
		close(file);
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[got] = '\0';
	*length = (size_t)got;
	return text;
}

/* A number of /proc/PID/stat (proc(5) has them from 1 on), behind a name that may hold anything; 0 where there is none. */
static unsigned long read_field(const char *stat, int number)
{
	const char *at = strrchr(stat, ')');

	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoul(at, NULL, 10) : 0;
}

enum {
	STAT_CODE = 26, /* where it starts; set when the environment is (fs/binfmt_elf.c) */
	STAT_ENVIRONMENT = 50,
	STAT_ENVIRONMENT_END = 51
};

/* Whether a process whose environment was empty may have one all the same. In the middle of an exec the old descriptors are
 * closed, our lock among them, and the new environment is not there yet. Neither kernel threads nor the dead have a
 * program. */
static bool may_have_environment(pid_t pid)
{
	char path[64], program[8];
	size_t length;
	char *stat = read_at_once(pid, "stat", &length);
	bool may = stat && (read_field(stat, STAT_CODE) == 0 ||
	                    read_field(stat, STAT_ENVIRONMENT_END) > read_field(stat, STAT_ENVIRONMENT));

	free(stat);
	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	return may && readlink(path, program, sizeof program) > 0;
}

/* `is_empty`: it can be read, and there is no variable at all. */
static bool find_partition(pid_t pid, struct segment_revision *revision, bool *is_empty)
{
	static const char name[] = SEGMENT_ENVIRONMENT "=";
	size_t length;
	char *environment = read_at_once(pid, "environ", &length);
	bool found = false;

	*is_empty = environment && length == 0;
	for (const char *at = environment; at && at < environment + length && !found; at += strlen(at) + 1)
		found = strncmp(at, name, sizeof name - 1) == 0 &&
		        segment_revision_parse(revision, at + sizeof name - 1, NULL) == 0;
	free(environment);
	return found;
}

static bool read_claim(struct claim *claim, pid_t pid)
{
	bool is_empty, found = find_partition(pid, &claim->revision, &is_empty);

	for (int waited = 0; is_empty && waited < EXEC_WAIT_MS && may_have_environment(pid); waited++) {
		clock_pause_us(1000);
		found = find_partition(pid, &claim->revision, &is_empty);
	}
	claim->pid = pid;
	claim->parent = found ? parent_of(pid) : 0;
	return found;
}

static int add_claim(struct claims *claims, const struct claim *claim, struct error *error)
{
	struct claim *more = realloc(claims->list, (claims->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	claims->list = more;
	claims->list[claims->count++] = *claim;
	return 0;
}

static int find_claims(struct claims *claims, struct error *error)
{
	struct pids all;
	int result = pids_all(&all, error);

	if (result < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < all.count; i++) {
		struct claim claim;

		if (all.list[i] != getpid() && read_claim(&claim, all.list[i]))
			result = add_claim(claims, &claim, error);
	}
	free(all.list);
	return result;
}

/* --- both together ------------------------------------------------------------------------------------------ */

static void occupy(struct segment_revision *occupied, const struct topology_list *list,
                   const struct segment_revision *revision)
{
	for (uint32_t i = 0; i < revision->count; i++) {
		const struct segment_partition *partition = &revision->partitions[i];
		const struct topology *gpu = topology_find(list, partition->pci);
		struct tpcset all = gpu ? topology_all(gpu) : (struct tpcset){{0}};

		for (uint32_t place = 0; gpu && !tpcset_is_subset(&all, &partition->set) && place < occupied->count; place++) {
			struct segment_partition *taken = &occupied->partitions[place];

			if (pci_address_equal(taken->pci, partition->pci))
				taken->set = tpcset_or(&taken->set, &partition->set);
		}
	}
}

static const struct claim *find_claim(const struct claims *claims, pid_t pid)
{
	const struct claim *found = NULL;

	for (size_t i = 0; i < claims->count && !found; i++)
		found = claims->list[i].pid == pid ? &claims->list[i] : NULL;
	return found;
}

static bool has_segment(const struct processes *processes, pid_t pid)
{
	bool found = false;

	for (size_t i = 0; i < processes->count; i++)
		found = found || processes->list[i].pid == pid;
	return found;
}

/* What stands in a process's environment counts until it has a segment, or was started by one that has: it will begin
 * with that one's partition. Where it has started others, a shell for example, these count in its place. */
static bool counts(const struct claims *claims, const struct claim *claim, const struct processes *processes)
{
	bool does = true;

	for (size_t i = 0; i < claims->count; i++)
		does = does && claims->list[i].parent != claim->pid;
	for (const struct claim *at = claim; at && does; at = find_claim(claims, at->parent))
		does = !has_segment(processes, at->pid) && !has_segment(processes, at->parent);
	return does;
}

static void start_empty(struct segment_revision *occupied, const struct topology_list *list)
{
	*occupied = (struct segment_revision){.count = list->count};
	for (unsigned int i = 0; i < list->count; i++)
		occupied->partitions[i].pci = list->gpus[i].pci;
}

int occupied_find(struct segment_revision *occupied, const struct topology_list *list, const struct pids *except,
                  struct error *error)
{
	static const struct pids nobody;
	struct claims claims = {.count = 0};
	struct processes processes = {.count = 0};
	/* In this order: a claim can become a segment meanwhile, but not the other way round. */
	int result = find_claims(&claims, error);

	if (result == 0)
		result = processes_collect(&processes, false, error);
	except = except ? except : &nobody;
	start_empty(occupied, list);
	for (size_t i = 0; result == 0 && i < claims.count; i++) {
		if (counts(&claims, &claims.list[i], &processes) && !pids_have(except, claims.list[i].pid))
			occupy(occupied, list, &claims.list[i].revision);
	}
	for (size_t i = 0; result == 0 && i < processes.count; i++) {
		if (!pids_have(except, processes.list[i].pid))
			occupy(occupied, list, &processes.list[i].revision);
	}
	processes_free(&processes);
	free(claims.list);
	return result;
}
