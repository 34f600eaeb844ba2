/*
 * A snapshot of the processes that have a partition and that this user may examine.
 */
#ifndef NVTASKSET_PROCESSES_H
#define NVTASKSET_PROCESSES_H

#include "base/error.h"
#include "state/kernels/counts_read.h"
#include "state/segment/memory.h"
#include "state/segment/segment.h"
#include "workload.h"

#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid;
	uint64_t started; /* when, since boot, in the kernel's ticks: tells it from another one that had its pid */
	uid_t uid;
	char *user;    /* the user's name, or number if it has no name; clean text (terminal/text.h), as is `command` */
	char *command; /* the arguments, separated by spaces, cut at PROCESS_COMMAND_MAX bytes; "?" if unknown */
	struct segment_revision revision; /* empty if the process has no segment, as are the counters */
	struct segment_counters counters;
	struct segment_time time;
	struct segment_borrowed borrowed;
	uint32_t streams;
	struct tpcset lent; /* its own TPCs, on all GPUs, that others have borrowed now */
	struct counts counts; /* of kernels; see rows.h */
	struct process_memory {
		struct pci_address pci; /* the partition's GPUs, and all in use */
		struct segment_memory_use use;
	} memory[SEGMENT_GPUS];
	unsigned int memory_count;
	struct process_group {
		struct group_identity identity; /* 0 if it is in none, or its group cannot be reached */
		char name[GROUP_NAME_MAX];      /* "" if it has none */
		bool is_file;
	} group;
	struct identity identity; /* 0 if it has no segment */
	bool is_at_work; /* our library is loaded; usually it is not while the process has not used CUDA */
	bool yields_to_descendants; /* our library is not loaded, and descendants have partitions: these count instead */
	struct workload workload;
	const char *not_in_force; /* the reason if it has, or should have, a partition that is not in force; else NULL */
};

#define PROCESS_COMMAND_MAX 4096

/* TPCs of one GPU that are in the partitions of the same two or more processes. Often that is a mistake. */
struct shared {
	struct pci_address gpu;
	struct tpcset tpcs;
};

struct processes {
	size_t count;
	struct process *list; /* by rising pid */
	size_t shared_count;
	struct shared *shared; /* empty before shared_find; each TPC is in one at most; of a GPU, by the lowest TPC */
	bool some_are_left_out; /* their user's have more open than one look may cost (base/purse.h) */
	bool some_are_hidden;  /* there are programs that this user may not examine; nobody knows whether they use a GPU */
};

/* Examines every process. Leaves out those that end meanwhile and those of other users. `not_in_force_too` also finds
 * processes that should have a partition but have no segment; that takes several times as long. The caller frees the
 * result. -1 with the reason, and nothing to free. */
int processes_collect(struct processes *processes, bool not_in_force_too, struct error *error);
void processes_free(struct processes *processes);

/* A line for people, below the list: programs may be missing. "" if the list has all. Every machine has programs that
 * the user may not examine: the line names hidden programs only where these programs `matter`. */
const char *processes_note(const struct processes *processes, bool matter);

/* Returns the process with this pid, or NULL. */
struct process *processes_find(const struct processes *processes, pid_t pid);

/* Returns the TPCs of a GPU in the partition of the process. NULL if the partition does not name the GPU, or the
 * process yields to its descendants. */
const struct tpcset *process_set(const struct process *process, struct pci_address gpu);

/* --- TPCs that several of them have ------------------------------------------------------------------------------------ */

/* Finds the TPCs that processes of the list share, and adds them to it. -1 with the reason if there is no memory. */
int shared_find(struct processes *processes, struct error *error);

/* Whether the process is one of those that share these TPCs. */
bool process_shares(const struct process *process, const struct shared *shared);

#endif
