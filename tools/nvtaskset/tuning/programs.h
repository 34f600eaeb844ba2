/*
 * Programs that are started beside this one, changed, and looked at. Functions return -1 with the reason.
 */
#ifndef NVTASKSET_TUNING_PROGRAMS_H
#define NVTASKSET_TUNING_PROGRAMS_H

#include "base/error.h"
#include "base/pids.h"
#include "cli/options.h"
#include "plan/curve.h"
#include "state/kernels/counts_read.h"
#include "state/segment/edit.h"

#include <sys/types.h>

/* --- one GPU, and its TPCs that nobody else has ------------------------------------------------------------------------------ */

struct room {
	const struct options *options; /* set by the caller */
	struct topology_list list;
	const struct topology *gpu;
	char name[PCI_ADDRESS_TEXT]; /* as -G has it */
	struct tpcset taken;         /* by others */
};

/* The GPU that the options name, or the partition, or else CUDA's first; and what others have there: all but `ours`. */
int room_open(struct room *room, const struct segment_revision *partition, const struct pids *ours, struct error *error);
unsigned int room_count(const struct room *room);

/* So many TPCs, as -n would choose them. They are chosen again unless the caller adds them to those that are taken. */
int room_choose(const struct room *room, unsigned int tpcs, struct segment_partition *place, struct error *error);

/* --- the keeper ---------------------------------------------------------------------------------------------------------------
 * Changes partitions for a while, or all together. A child of this process gives them back, and ends the programs that
 * were started: when told to, and also when this process ends in any way, by SIGKILL too. The child is in a session of
 * its own, so signals to our terminal's programs do not reach the child. Where the child was killed, this process gives
 * all back. If both are killed, with a whole container say, all stays as it is then. An edit by another program stays,
 * too: a quota, say, or the partition itself. */

#define PROGRAMS_MAX 64 /* no more than these are kept */

/* Before any editor is opened: the keeper would hold the lock with which this process is killed. From here on until
 * keeper_end, signals that tell this process to end are only noted. */
int keeper_start(struct error *error);

/* Whether a signal came. */
bool keeper_must_end(void);

/* Changes a program, as often as wanted; not if somebody else has changed its partition since, nor after a signal. */
int keeper_change(struct editor *editor, const struct segment_revision *wanted, struct error *error);

/* Gives all back, or leaves all as it is; and waits. After a signal, gives all back, and ends this process by the
 * signal. -1 with the command that gives a partition back, where that failed. */
int keeper_end(bool gives_back, struct error *error);

/* --- starting and opening ----------------------------------------------------------------------------------------------------- */

/* Reads a command line, words with a space between two: `nvtaskset -G 0 …`. COMMAND, which may be NULL, is to follow. The options'
 * texts are in the line. */
#define PROGRAM_LINE (TPCSET_TEXT + 256)
int program_parse(struct options *options, char *line, char *command[], struct error *error);

/* Starts a COMMAND so, without a terminal; what it prints goes to standard error. If it `is_kept`, the keeper knows of it from the
 * beginning. Where `nvtaskset` would refuse it, or it cannot be executed, the pid is 0. */
int program_start(pid_t *pid, char *line, char *command[], bool is_kept, struct error *error);

/* The value of --mps. */
const char *program_mps(const struct options *options);

/* Opens a program whose partition is in force; one that was started here, as soon as it has made a context on a GPU. */
#define PROGRAM_SECONDS 120 /* it may take so long */
int program_open(struct editor *editor, pid_t pid, bool is_new, struct error *error);

/* Ends a program that was started here, if there is one, and waits for its end; signal 0: just waits. Its pid stays its own. */
void program_end(pid_t pid, int signal);

/* The command's first argument, by which it is a neighbour that disturbs; what it does then, until it or its parent ends; and
 * starting one on these TPCs of a GPU, by its number, and waiting until it works: the caller ends it in any case. */
#define NEIGHBOUR_ARGUMENT "--neighbour"
int neighbour_main(const char *kind, const char *gpu);
int neighbour_start(pid_t *pid, const struct options *options, const char *gpu, const struct tpcset *tpcs, struct error *error);

/* --- looking -------------------------------------------------------------------------------------------------------------------
 * At running programs' counts, some 20000 times a second, to note when each is busy. The programs do nothing for it. */

/* One program, on one GPU. */
struct sampled {
	struct editor editor; /* has its partition open; sampled_close closes it */
	struct pci_address pci;
	/* As it was seen: */
	struct burst *bursts; /* those that have ended */
	size_t count;
	uint64_t kernels;     /* that have ended */
	uint64_t busy_ns, span_ns;
	/* For the sampler. */
	struct counts_view view;
	bool is_busy;
	uint64_t began_ns, launched, at_launched, at_ended;
};

/* The caller closes it also where it failed. */
int sampled_open(struct sampled *program, struct pci_address pci, struct error *error);
void sampled_close(struct sampled *program);
void sampler_watch(struct sampled *programs, size_t count, double ns);

#endif
