/*
 * Programs that this process starts, changes and watches. Functions return -1 with the reason.
 */
#pragma once

#include "base/error.h"
#include "base/pids.h"
#include "cli/gpus.h"
#include "mps/look.h"
#include "plan/curve.h"
#include "state/kernels/counts_read.h"
#include "state/segment/edit.h"

#include <sys/types.h>

/* --- one GPU, and its free TPCs ----------------------------------------------------------------------------------- */

struct space {
	const struct gpus_given *given; /* set by the caller */
	enum mps_mode mps;              /* set by the caller: of new programs */
	struct topology_list list;
	const struct topology *gpu;
	char name[PCI_ADDRESS_TEXT]; /* for -G */
	struct tpcset taken;         /* by foreign programs */
};

/* The given GPU, or the GPU of the partition, or else CUDA's first; and the TPCs there of all programs but `ours`. */
int programs_space_open(struct space *space, const struct segment_revision *partition, const struct pids *ours,
                        struct error *error);
unsigned int programs_space_count(const struct space *space);

/* Chooses TPCs like -n. A second call chooses the same TPCs, unless the caller adds them to `taken`. */
int programs_space_choose(const struct space *space, unsigned int tpcs, struct segment_partition *place,
                          struct error *error);

/* --- the restorer ----------------------------------------------------------------------------------------------------
 * Changes partitions for a while, or all together. The restorer, a child of this process, gives the partitions back,
 * and ends the programs that were started, with the process groups: when told, and also when this process
 * ends in any way, by SIGKILL too. The child is in a session of its own: signals to the programs of our terminal do
 * not reach the child. If the child was killed, this process gives all back. If both are killed, with a whole
 * container say, all stays. An edit by another program stays, too: a quota, say, or the partition itself. */

#define PROGRAMS_MAX 64 /* the most programs of a restorer */

/* To be called before any editor is opened: the restorer would hold the editor's lock after a kill of this process.
 * From here until programs_restorer_end, signals that end this process are only noted. */
int programs_restorer_start(struct error *error);

/* Whether a signal came. */
bool programs_restorer_must_end(void);

/* Changes a program, as often as wanted; fails after a change by another program, and after a signal. */
int programs_restorer_change(struct editor *editor, const struct segment_revision *wanted, struct error *error);

enum restorer_way {
	RESTORER_ENDS,       /* partitions are given back, and programs that were started here end */
	RESTORER_GIVES_BACK, /* partitions are given back, and programs go on */
	RESTORER_LEAVES      /* everything stays */
};

/* Goes the way, and waits. After a signal, RESTORER_ENDS, and ends this process by the signal. -1 with the command that
 * gives a partition back, if giving back failed. */
int programs_restorer_end(enum restorer_way way, struct error *error);

/* --- starting and opening ----------------------------------------------------------------------------------------- */

/* Starts COMMAND with a line for parse_line, without a terminal; output goes to standard error. With `is_kept`, the
 * restorer knows the program from the begin on. If `nvtaskset` refuses COMMAND, or the exec fails, the pid is 0. */
#define PROGRAM_LINE (TPCSET_TEXT + 256)
int program_start(pid_t *pid, char *line, char *command[], bool is_kept, struct error *error);

/* The value of --mps. */
const char *program_mps(enum mps_mode mode);

/* Opens a program with a partition in force; waits for the first context of a new program. */
#define PROGRAM_SECONDS 120 /* the longest wait */
int program_open(struct editor *editor, pid_t pid, bool is_new, struct error *error);

/* Ends a program started here, if any, with the process group, and waits for the program's end; signal
 * 0: only waits. The pid stays reserved. */
void program_end(pid_t pid, int signal);

/* A neighbour that disturbs. NEIGHBOUR_ARGUMENT: the first argument, by which the command becomes a neighbour.
 * neighbour_main works on the GPU with CUDA's number `gpu` until the parent ends. neighbour_start starts a neighbour on
 * `tpcs` of the space's GPU, and waits until the partition is in force; the caller ends the neighbour in any case. */
#define NEIGHBOUR_ARGUMENT "--neighbour"
int neighbour_main(const char *kind, const char *gpu);
int neighbour_start(pid_t *pid, const char *kind, const struct space *space, const struct tpcset *tpcs,
                    struct error *error);

/* --- watching --------------------------------------------------------------------------------------------------------
 * Reads counts of running programs, some 20000 times a second, to note when each is busy, at no cost to the
 * programs. */

/* A program, on one GPU. */
struct sampled {
	struct editor editor; /* with the partition; sampler_close closes it */
	struct pci_address pci;
	/* The samples: */
	struct burst *bursts; /* ended bursts */
	size_t count;
	uint64_t kernels;     /* ended kernels */
	uint64_t busy_ns, span_ns;
	/* For the sampler. */
	struct counts_view view;
	bool is_busy;
	uint64_t began_ns, launched, at_launched, at_ended;
};

/* The caller closes the program, also after a failure. sampler_watch: for `ns`, or until a signal. */
int sampler_open(struct sampled *program, struct pci_address pci, struct error *error);
void sampler_close(struct sampled *program);
void sampler_watch(struct sampled *programs, size_t count, double ns);
