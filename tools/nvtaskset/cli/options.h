/* The command line, parsed. */
#ifndef NVTASKSET_CLI_OPTIONS_H
#define NVTASKSET_CLI_OPTIONS_H

#include "base/error.h"
#include "gpu/topology/select_tpcs.h"
#include "gpu/topology/topology.h"
#include "mps/look.h"
#include "state/segment/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* X(identifier, function, name where an option is refused): what the command does. Each function is in a file of its own
 * (actions.h). */
#define ACTIONS(X) \
	X(RUN, action_run, "a COMMAND") /* SET COMMAND [ARG…]: replaces this process by COMMAND */ \
	X(SHOW, action_partition, "-p") /* -p PID */ \
	X(CHANGE, action_partition, "-p SET") /* -p SET PID: and shows it */ \
	X(LIST, action_list, "-l") /* the processes with a partition that this user may examine */ \
	X(TOPOLOGY, action_topology, "-T") /* draws each GPU, with the process that has each TPC */ \
	X(MEASURE, action_measure, "'measure'") /* the topology by launching kernels, kept in a file */ \
	X(MPS_STATUS, action_mps_status, "'mps status'") /* mps, mps status */ \
	X(MPS_STOP, action_mps_stop, "'mps stop'") \
	X(SYSTEM_STATUS, action_system_status, "") /* system, system status */ \
	X(SYSTEM_ENABLE, action_system_enable, "'system enable'") /* every program that starts from now on loads our library */ \
	X(SYSTEM_DISABLE, action_system_disable, "") /* or none does; neither leaves its work half done */ \
	X(TOP, action_top, "'top'") /* top [PID] */ \
	X(METRICS, action_metrics, "'metrics'") /* to standard output, or to a file, once or again and again */ \
	X(CDI, action_cdi, "'cdi'") /* the devices of a specification for containers */ \
	X(CDI_ADD, action_cdi_add, "'cdi add'") /* cdi add SET NAME: makes or changes one */ \
	X(CDI_REMOVE, action_cdi_remove, "'cdi remove'") /* cdi remove NAME */ \
	X(CURVE, action_curve, "'curve'") /* curve PID, curve COMMAND [ARG…] */ \
	X(PLAN, action_plan, "'plan'") /* plan FILE */ \
	X(HELP, action_help, "") \
	X(VERSION, action_version, "")

enum action {
#define ACTION_ENUM(identifier, function, name) ACTION_##identifier,
	ACTIONS(ACTION_ENUM)
#undef ACTION_ENUM
};

enum notation {
	NOTATION_MASK,
	NOTATION_TPC_LIST,
	NOTATION_GPC_LIST,
	NOTATION_COUNT /* how many TPCs, not which: 20, 57% */
};

/* What happens to a launch that the partition cannot hold. */
enum misfit {
	MISFIT_WIDEN,
	MISFIT_FAIL
};

/* How metrics are written. */
enum metrics_format {
	METRICS_OPENMETRICS,
	METRICS_PROMETHEUS
};

struct options {
	enum action action;
	const char *word;       /* the first word of the action, such as "mps"; NULL: the action has none */
	enum notation notation;
	enum strategy strategy;
	bool strategy_given; /* --strategy */
	enum misfit misfit;
	struct mps_request mps;
	bool mps_given; /* --mps */
	struct segment_revision time; /* what --quota, --priority, --weight and --policy give; without partitions */
	bool all_tasks; /* -a: descendants too */
	bool attach;    /* load our library into a process that was started without it */
	bool busy;      /* -l, metrics: how busy the GPUs are */
	bool dry_run;   /* only print what would be done */
	bool force;     /* MPS: stop it, also if others started it or use it */
	bool hide;      /* CUDA reports to COMMAND a GPU of its partition's size */
	bool json;
	bool once;      /* top: one look */
	bool strict;    /* start nothing that cannot be kept inside its partition, and end what turns out not to be */
	bool verbose;
	double watch_seconds; /* between two displays; 0: display once */
	double delay_seconds; /* top: between two looks */
	enum metrics_format format;
	const char *output;   /* metrics, cdi: the file, or NULL */
	const char *beside;   /* curve: what a neighbour does meanwhile, "memory" or "compute"; NULL: there is none */
	unsigned int kernels; /* of a job; 0: as its idle times tell */
	const char *svg;      /* a file for the picture, or NULL */
	bool apply;           /* plan: start and change what it says */
	double check_seconds; /* 0: look at no program */
	const char *file;     /* with ACTION_PLAN */
	unsigned int gpu_count; /* 0: the default GPU */
	const char *gpus[TOPOLOGY_GPUS_MAX]; /* the arguments of -G: GPU or GPU:SET */
	const char *group;      /* --group: its name, NULL without; with -p also a path, or the pid of one in it; the device of cdi */
	const char *set;        /* NULL where every -G has its own, and with ACTION_SHOW */
	const char *pid;        /* with ACTION_SHOW and ACTION_CHANGE; with ACTION_TOP and ACTION_CURVE it may be NULL */
	char **command;         /* with ACTION_RUN, and ACTION_CURVE without pid; ended by NULL */
};

#endif
