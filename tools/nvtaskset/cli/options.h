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

enum action {
	ACTION_RUN,    /* SET COMMAND [ARG…] */
	ACTION_SHOW,   /* -p PID */
	ACTION_CHANGE, /* -p SET PID */
	ACTION_LIST,   /* -l */
	ACTION_TOPOLOGY, /* -T */
	ACTION_MEASURE, /* measure */
	ACTION_MPS_STATUS, /* mps, mps status */
	ACTION_MPS_STOP, /* mps stop */
	ACTION_SYSTEM_STATUS, /* system, system status */
	ACTION_SYSTEM_ENABLE, /* system enable */
	ACTION_SYSTEM_DISABLE, /* system disable */
	ACTION_TOP, /* top [PID] */
	ACTION_METRICS, /* metrics */
	ACTION_HELP,
	ACTION_VERSION
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
	METRICS_PROMETHEUS,
	METRICS_ANY /* as a client asks for; OpenMetrics where none does */
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
	const char *output;   /* metrics: the file, or NULL */
	unsigned int gpu_count; /* 0: the default GPU */
	const char *gpus[TOPOLOGY_GPUS_MAX]; /* the arguments of -G: GPU or GPU:SET */
	const char *group;      /* --group: its name, NULL without; with -p also a path, or the pid of one in it */
	uint64_t memory;        /* --memory: mebibytes of each GPU; 0: no limit */
	const char *set;        /* NULL where every -G has its own, and with ACTION_SHOW */
	const char *pid;        /* with ACTION_SHOW and ACTION_CHANGE; with ACTION_TOP it may be NULL */
	char **command;         /* with ACTION_RUN, ended by NULL */
};

#endif
