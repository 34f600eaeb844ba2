/*
 * The state of a thread from the begin of a call (driver/calls.h) to the end. The frame belongs to the hook, and each
 * part to the file named above the part. Calls nest: each call clears only its own settings. Calls in the callback of
 * another subscriber have a frame of their own (hook.c).
 */
#pragma once

#include "cuda.h"
#include "gpu/qmd.h"
#include "gpu/tpcset.h"

/* The GPU writes `number` to `at` when a launch has ended; from then on, the word is never less. The memory stays for
 * as long as the process. `number` 0: the GPU writes no end. */
struct launch_end {
	const volatile uint64_t *at;
	uint64_t number;
};

struct account; /* memory/account.h */
struct gate;    /* time/gate/gates.h */

/* CUDA_ARRAY3D_DESCRIPTOR. */
struct call_array {
	size_t width, height, depth;
	int format;
	unsigned int channels, flags;
};

struct frame {
	/* launch/launch.c: the decision about this thread's last launch; stays from call to call */
	struct recent {
		CUcontext context;
		uint64_t epoch;                    /* EPOCH_NEVER: the next launch must be decided anew */
		const struct qmd_release *release; /* of plain launches; NULL: no release */
		qmd_disabler *disable;             /* NULL: the launch may use the whole GPU */
		struct qmd_mask mask;
		unsigned int tpcs; /* of the launch; 0: not known */
		bool is_yielding;  /* other programs have a part of the partition for now */
		bool has_own_mask; /* the launch obeys a mask of the program's own */
		bool is_stamped;   /* the GPU says when the launch has ended */
		bool rings;        /* the launch wakes other programs (launch/space/bells.h) */
		bool has_more;     /* for calls that may use `more`, beyond the own part: the gate's answer, below */
		struct tpcset more;
		const struct gpu *gpu; /* NULL: there is no mask. Else `mask` is of the set, on the GPU */
		struct tpcset set;
	} recent;

	/* calls_enter fills, calls_leave clears (not begins_early): the call's launches; 0 if the call says nothing */
	bool uploads_nodes;     /* the launches are nodes of a graph */
	bool begins_early;      /* perhaps before the launch ahead has ended (programmatic dependent launch) */
	CUgraphExec exec;       /* the graph's instance; NULL while the instance is being made */
	CUstream stream;        /* of the launches; perhaps a stream of every context (cuda.h); NULL: several */
	struct qmd_shape shape; /* if the blocks of the launch may have to run at once */

	/* launch/queued.c */
	struct launch_end end; /* of the launch; valid until the GPU is told of the commands */
	uint64_t cookie, turn; /* from the gate; the launch's number in its queue (pushbuffer/notes.h), 0: none */
	bool is_noted;         /* the launch's mask can still be changed */
	bool keeps_mask;       /* nobody may change the mask */
	bool is_behind_unknown; /* what is ahead of the launch is not known */
	struct launch_end front; /* of the launch right in front */

	/* time/gate/gate.c: of the outermost call, until its end */
	unsigned int nested; /* calls inside of each other */
	bool has_more;       /* the launch may use `more`, beyond the program's own part */
	bool is_entering, is_cancellable; /* counted as `entering`; the thread may be cancelled after the call */
	bool is_blocked; /* the thread is counted as `blocked` */
	struct tpcset more;
	uint64_t ticket, launched_ns; /* of in_flight.h; the begin of a call whose length is to be learned, else 0 */
	uint64_t moves_since; /* when a graph began to move to other TPCs; else 0 */
	struct gate *gate; /* of gate_context, while the epoch is gate_epoch */
	CUcontext gate_context;
	uint64_t gate_epoch;

	/* launch/graphs/graphs.c */
	uint64_t masks; /* the masks' epoch at the call's begin: an instantiation may upload */
	bool runs_once; /* the instance that the call makes */
	bool refreshes; /* the call uploads nodes again, disabled and enabled by us */
	/* launch/graphs/counts.h: written descriptors */
	struct graph_descriptor *written;
	size_t written_count, written_room;
	/* launch/timestamps/nodes.c: the begin of the call; 0: nobody looks */
	uint64_t began_ns;

	union {
		/* launch/launch.c: of the last launch with clusters, by the decision in `recent` */
		struct fitted {
			uint16_t cluster;    /* blocks; 0: none */
			uint16_t tpcs;       /* of the launch */
			bool has_own_mask;   /* as above, or in a green context */
			uint32_t notes;      /* reasons to count (launch/space/decision.h) */
			struct qmd_mask own; /* the driver's, which `mask` replaces */
			struct qmd_mask mask;
		} fitted;
		/* launch/space/residency.h, during a call with a refusal: in place of the program's configuration, or
		 * of the program's list of launches */
		CUlaunchConfig refused;
		CUDA_LAUNCH_PARAMS refused_launch;
	};
	CUresult refusal; /* the program's result; CUDA_SUCCESS: the program gets the driver's */

	/* memory/memory.c: of a call about memory */
	struct call_memory {
		unsigned int depth;       /* calls within calls, as in a tool's callback; below: the outermost's */
		bool is_refused;
		bool is_managed;          /* the memory to give back */
		struct account *account;  /* of the GPU; NULL: nothing to do */
		uint64_t bytes;           /* reserved, or to give back */
		void *holding;            /* the pool, or the context of the memory to give back */
		struct call_array array;  /* in place of the program's */
	} memory;
};
