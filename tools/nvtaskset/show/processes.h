/*
 * The processes that have a partition, as they are at one moment, as far as this user may look at them.
 */
#ifndef NVTASKSET_PROCESSES_H
#define NVTASKSET_PROCESSES_H

#include "base/error.h"
#include "state/segment.h"

#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid;
	uid_t uid;
	char *user;    /* its name, or its number where it has none; harmless text (text.h), as is the command */
	char *command; /* its arguments with spaces between, at most PROCESS_COMMAND_MAX bytes of them; "?" where gone */
	struct segment_revision revision; /* no partition, and */
	struct segment_counters counters; /* nothing counted, where the process is */
	struct identity identity; /* 0 where it has no segment */
	bool is_at_work; /* our library is there; otherwise it has not come to CUDA yet, and perhaps never will, as a shell */
	bool has_heirs;  /* it is not, and processes that it has started have partitions of their own */
	const char *not_in_force;               /* has or should have a partition that is not in force, for this reason; else NULL */
};

#define PROCESS_COMMAND_MAX 4096

/* TPCs of one GPU that the same two or more processes have in their partitions: a mistake more often than not. */
struct shared {
	struct pci_address gpu;
	struct tpcset tpcs;
};

struct processes {
	size_t count;
	struct process *list; /* by rising pid */
	size_t shared_count;
	struct shared *shared; /* each TPC at most once; by GPU, and for each by the first TPC */
};

/* Looks at every process; those that end meanwhile, and those of others, are left out. To find those too whose partition is
 * not in force takes several times as long. The caller frees what is found. -1 with the reason, and nothing to free. */
int processes_collect(struct processes *processes, bool not_in_force_too, struct error *error);
void processes_free(struct processes *processes);

/* NULL where it is not among them. */
struct process *processes_find(const struct processes *processes, pid_t pid);

/* Kernels uploaded: one launched by itself for each launch, one of a graph when it is uploaded and not at each replay. How
 * often one ran outside the partition, whole or in part: the sum of the reasons for that. */
uint64_t process_uploads(const struct process *process);
uint64_t process_outside(const struct process *process);

/* The TPCs that a process may use on a GPU by its partition; NULL where that says nothing, or what it has started uses them
 * in its place. */
const struct tpcset *process_set(const struct process *process, struct pci_address gpu);

/* Whether it is one of those that share them. */
bool process_shares(const struct process *process, const struct shared *shared);

/* Finds out what is shared by the processes of the list: processes_collect has done so. -1 where memory lacks. */
int processes_find_shared(struct processes *processes, struct error *error);

#endif
