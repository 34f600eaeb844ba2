/* The command line, parsed. */
#pragma once

#include "base/error.h"
#include "gpus.h"
#include "mps/look.h"
#include "state/segment/segment.h"

/* X(identifier, function, name where an option is refused): the actions. Each function has its own file (actions.h). */
#define ACTIONS(X) \
	X(RUN, action_run, "a COMMAND") /* SET COMMAND [ARG…]: replaces this process by COMMAND */ \
	X(SHOW, action_partition, "-p") /* -p PID */ \
	X(CHANGE, action_partition, "-p SET") /* -p SET PID: and shows the new SET */ \
	X(LIST, action_list, "-l") /* the processes with a partition that this user may examine */ \
	X(TOPOLOGY, action_topology, "-T") /* draws each GPU, with the process on each TPC */ \
	X(MEASURE, action_measure, "'measure'") /* the topology by launching kernels, kept in a file */ \
	X(MPS_STATUS, action_mps_status, "'mps status'") /* mps, mps status */ \
	X(MPS_STOP, action_mps_stop, "'mps stop'") \
	X(SYSTEM_STATUS, action_system_status, "") /* system, system status */ \
	X(SYSTEM_ENABLE, action_system_enable, "'system enable'") /* new programs load our library */ \
	X(SYSTEM_DISABLE, action_system_disable, "") /* or do not; half done never stays */ \
	X(TOP, action_top, "'top'") /* top [PID] */ \
	X(TRACE, action_trace, "'trace'") /* trace [PID…] */ \
	X(METRICS, action_metrics, "'metrics'") /* to standard output, or to a file, once or again and again */ \
	X(CDI, action_cdi, "'cdi'") /* the devices of a specification for containers */ \
	X(CDI_ADD, action_cdi_add, "'cdi add'") /* cdi add SET NAME: makes or changes a device */ \
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

/* The fate of a launch that the partition cannot hold. */
enum misfit {
	MISFIT_WIDEN,
	MISFIT_FAIL
};

enum metrics_format {
	METRICS_OPENMETRICS,
	METRICS_PROMETHEUS
};

struct options {
	enum action action;
	const char *word;       /* the first word of the action, such as "mps"; or NULL */
	struct gpus_given gpus;
	struct set_given set;
	bool strategy_given; /* --strategy */
	enum misfit misfit;
	struct mps_request mps;
	bool mps_given; /* --mps */
	struct segment_revision settings; /* from --quota to --memory (state/settings.h); no partitions */
	bool all_tasks; /* -a: descendants too */
	bool attach;    /* load our library into a process that was started without it */
	bool busy;      /* -l, metrics: with the busy shares of the GPUs */
	bool dry_run;   /* only print the result */
	bool force;     /* MPS: stop the daemon, also of another user or in use */
	bool hide;      /* CUDA reports to COMMAND a GPU of its partition's size */
	bool json;
	bool once;      /* top: one look */
	bool strict;    /* start no program that can leave its partition, and end programs that do */
	bool verbose;
	double watch_seconds; /* between two displays; 0: display once */
	double delay_seconds; /* top: between two looks */
	enum metrics_format format;
	const char *output;   /* metrics, cdi, trace: the file, or NULL */
	double trace_seconds; /* 0: until a signal */
	bool terminal;        /* trace: draw */
	const char *beside;   /* curve: the neighbour's work, "memory" or "compute"; NULL: no neighbour */
	unsigned int kernels; /* of a job; 0: idle times tell */
	const char *svg;      /* a file for the picture, or NULL */
	const char *pool;     /* cdi add: the pool of the device, or NULL */
	bool apply;           /* plan: start and change programs */
	double check_seconds; /* 0: no check */
	const char *file;     /* with ACTION_PLAN */
	/* --group: the name, or NULL; with -p also a path, or the pid of a member; the device of cdi. */
	const char *group;
	const char *pid;        /* with ACTION_SHOW and ACTION_CHANGE; perhaps with ACTION_TOP and ACTION_CURVE */
	/* With ACTION_RUN, and ACTION_CURVE without pid; the pids of ACTION_TRACE; ended by NULL. */
	char **command;
};
