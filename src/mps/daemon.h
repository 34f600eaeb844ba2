/*
 * NVIDIA MPS, which lets several processes' kernels run at the same time: finds, starts, questions and ends
 * its control daemon. Part of the command only; the shim never comes here.
 *
 * Facts (docs/facts.md, "MPS"; the paper, section 5; docs/hardware.md): a client takes CUDA_DEVICE_MAX_CONNECTIONS
 * hardware channels (MPS's default is 2, CUDA's without MPS 8), and a server has a bounded number of them.
 * One client too many fails when it makes its context, with an error that does not say why: so we count
 * first. The binaries are not always on PATH.
 */
#ifndef NVTASKSET_MPS_H
#define NVTASKSET_MPS_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

enum mps_mode {
	MPS_AUTO, /* use the control daemon that runs, or start one; fail where neither can be done */
	MPS_ON,   /* use the control daemon that runs; fail where none does */
	MPS_OFF   /* no MPS: the program gets time slices of the GPU */
};

#define MPS_CONNECTIONS_DEFAULT 8 /* what a program has without MPS */
#define MPS_CONNECTIONS_MAX 32    /* CUDA's own limit */

struct mps_request {
	enum mps_mode mode;
	/* Channels of this client, 1 … MPS_CONNECTIONS_MAX. 0: what CUDA_DEVICE_MAX_CONNECTIONS says where
	 * the user has set it (some programs need 1), else MPS_CONNECTIONS_DEFAULT. */
	unsigned int connections;
	/* UUIDs of the GPUs that it will use; none: whichever. A server has channels on each. */
	const char *const *gpus;
	unsigned int gpu_count;
};

enum mps_starter {
	MPS_STARTER_UNKNOWN, /* the daemon's process cannot be looked into */
	MPS_STARTED_BY_US,
	MPS_STARTED_BY_OTHERS
};

struct mps_status {
	bool running;          /* a control daemon answers */
	bool started;          /* and this call started it */
	pid_t server;          /* the server that serves this user, 0 where none has been needed yet */
	unsigned int clients;  /* of that server, on the GPU of the client's that has most */
	unsigned int all_clients; /* of all servers of the daemon, on all GPUs */
	unsigned int connections; /* that a client is to have */
	unsigned int capacity;    /* how many such clients fit */
	char pipe_directory[256];
	/* By mps_inspect and mps_stop alone: */
	pid_t daemon; /* 0 where it cannot be seen */
	uid_t owner;  /* of the daemon; where it can be seen */
	enum mps_starter starter;
};

/* Makes MPS ready for one more client, as `request` says, and puts what the client needs into this
 * process's environment (CUDA_DEVICE_MAX_CONNECTIONS, and CUDA_MPS_PIPE_DIRECTORY for MPS_OFF): call it
 * just before the exec. -1 with the reason: not found, not permitted, no answer, full. Never hangs: every
 * question to the daemon is bounded in time. */
int mps_prepare(const struct mps_request *request, struct mps_status *status, struct error *error);

/* The daemon takes 2 ms to answer. Asked early, it does so while the caller does something else, and the next mps_prepare
 * of this process takes that answer; without, it asks itself. What cannot be asked is found out, and told, by then.
 * Whoever asks early and does not come to mps_prepare must forget it. */
void mps_ask_early(const struct mps_request *request);
void mps_forget(void);

/* Looks, and changes nothing. -1 with the reason where no daemon runs, too. */
int mps_inspect(const struct mps_request *request, struct mps_status *status, struct error *error);

/* Ends the control daemon that mps_prepare started, for whichever program; without `force` only where nobody uses it.
 * With `force` whoever started it, and its clients' calls fail. `status` is what was found. -1 with the reason. */
int mps_stop(bool force, struct mps_status *status, struct error *error);

/* How many clients a server has room for on one GPU when each takes `connections` channels: as measured on an H200,
 * driver 580.159, for 1, 2, 3, 4, 8, 12, 16 and 32. */
unsigned int mps_capacity(unsigned int connections);

#endif
