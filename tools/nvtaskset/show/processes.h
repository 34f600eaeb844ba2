/*
 * A snapshot of the processes with a partition, as far as this user may examine them.
 */
#pragma once

#include "base/error.h"
#include "state/kernels/counts_read.h"
#include "state/segment/memory.h"
#include "state/segment/segment.h"

#include <sys/types.h>

/* --- workload.c --------------------------------------------------------------------------------------------------- */

/*
 * The job or container of a process, from its control group: under Slurm, in Kubernetes, in Docker and more.
 *
 * The names are as in dcgm-exporter's labels. A control group has the ids of a pod and of a container. Their names are
 * known if the container's log has a link in /var/log/containers, as on every node of Kubernetes.
 */

#define WORKLOAD_NAME 256

/* "" where not known. Names and numbers without characters that move a cursor. */
struct workload {
	char hpc_job[WORKLOAD_NAME]; /* the number of the Slurm job */
	char pod_uid[WORKLOAD_NAME];
	char pod[WORKLOAD_NAME];
	char namespace[WORKLOAD_NAME];
	char container[WORKLOAD_NAME]; /* the name, or the first 12 digits of the id, as in `docker ps` */
};

void workload_of(struct workload *workload, pid_t pid);

/* "namespace/pod/container", or the container alone; or "job 4711"; or "". Returns `text`. */
#define WORKLOAD_TEXT (3 * WORKLOAD_NAME + 8)
const char *workload_format(const struct workload *workload, char text[WORKLOAD_TEXT]);

/* workload_read: from the content of /proc/PID/cgroup; `container` gets the container's id. workload_find_names: the
 * names for the id `container`, from links in `directory`. */
void workload_read(struct workload *workload, const char *cgroup, char container[WORKLOAD_NAME]);
void workload_find_names(struct workload *workload, const char *container, const char *directory);

/* --- processes ---------------------------------------------------------------------------------------------------- */

struct process {
	pid_t pid;
	uint64_t started; /* in the kernel's ticks since boot: tells apart processes with one pid */
	uid_t uid;
	char *user;    /* the name, or else the number; clean text (terminal/text.h), like `command` */
	char *command; /* the arguments, separated by spaces, cut at PROCESS_COMMAND_MAX bytes; "?" if unknown */
	struct segment_revision revision; /* empty without a segment, like the counters */
	struct segment_counters counters;
	struct segment_time time;
	struct segment_borrowed borrowed;
	uint32_t streams;
	struct tpcset lent; /* the process's own TPCs, on all GPUs, that are borrowed now */
	struct counts counts; /* of kernels; see rows.h */
	struct process_memory {
		struct pci_address pci; /* a GPU of the partition, or one where memory is in use */
		struct segment_memory_use use;
		bool is_to_ask; /* by processes_ask_memory */
	} memory[SEGMENT_GPUS];
	unsigned int memory_count;
	struct process_group {
		struct group_identity identity; /* 0: in no group, or the group cannot be reached */
		char name[GROUP_NAME_MAX];      /* "": no name */
		bool is_file;
	} group;
	struct identity identity; /* 0: no segment */
	bool is_at_work; /* our library is loaded; usually not before the first use of CUDA */
	bool yields_to_descendants; /* our library is not loaded, and descendants have partitions */
	struct workload workload;
	const char *not_in_force; /* why a partition that is, or should be, there is not in force; else NULL */
};

#define PROCESS_COMMAND_MAX 4096

/* TPCs of one GPU in the partitions of the same two or more processes. Often a mistake. */
struct shared {
	struct pci_address gpu;
	struct tpcset tpcs;
};

struct processes {
	size_t count;
	struct process *list; /* by rising pid */
	size_t shared_count;
	/* Empty before processes_find_shared. Each TPC is in at most one; by rising GPU, and lowest TPC. */
	struct shared *shared;
	bool some_are_left_out; /* more files are open than one look may cost (base/purse.h) */
	/* There are programs that this user may not examine; whether they use a GPU is not known. */
	bool some_are_hidden;
};

/* Examines every process. Leaves out processes that end meanwhile, and processes of other users. With
 * `not_in_force_too`, also finds processes that lack an expected segment, and takes several times as long. The caller
 * frees the result. -1 with the reason, and nothing to free. */
int processes_collect(struct processes *processes, bool not_in_force_too, struct error *error);
void processes_free(struct processes *processes);

/* Counts the driver's own memory as well: asks the kernel driver, some milliseconds for each GPU in use. */
void processes_ask_memory(struct processes *processes);

/* A line for people, below the list: programs may be missing. "" if the list has all. Every machine has hidden
 * programs: the line names them only if they `matter`. */
const char *processes_note(const struct processes *processes, bool matter);

/* NULL: there is no process with this pid. */
struct process *processes_find(const struct processes *processes, pid_t pid);

/* The TPCs of a GPU in the process's partition. NULL for a GPU outside, or if the process yields to its descendants. */
const struct tpcset *process_set(const struct process *process, struct pci_address gpu);

/* --- shared TPCs ------------------------------------------------------------------------------------------------- */

/* Finds the TPCs shared by processes of the list, and adds the TPCs to the list. -1 with the reason, without memory. */
int processes_find_shared(struct processes *processes, struct error *error);

/* Whether the process shares the TPCs. */
bool process_shares(const struct process *process, const struct shared *shared);
