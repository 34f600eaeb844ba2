/*
 * The state of NVIDIA MPS for this process: where its control daemon would be, whether it runs, what it reports, and how many
 * clients it has room for.
 */
#ifndef NVTASKSET_MPS_LOOK_H
#define NVTASKSET_MPS_LOOK_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#define MPS_DIRECTORY_ENVIRONMENT "CUDA_MPS_PIPE_DIRECTORY"
#define MPS_ROOTS_DIRECTORY "/run/nvidia-mps"

/* Where the driver looks if the environment does not say: a newer root's daemon is not in /tmp (interface 3). */
static inline const char *mps_usual_directory(void)
{
	bool is_roots = access("/tmp/nvidia-mps/control", F_OK) < 0 && access(MPS_ROOTS_DIRECTORY "/control", F_OK) == 0;

	return is_roots ? MPS_ROOTS_DIRECTORY : "/tmp/nvidia-mps";
}

#define MPS_CONNECTIONS_ENVIRONMENT "CUDA_DEVICE_MAX_CONNECTIONS"

/* --- what a program requests ------------------------------------------------------------------------------------- */

enum mps_mode {
	MPS_AUTO, /* use the running control daemon, or start one; fail if neither is possible */
	MPS_ON,   /* use the running control daemon; fail if there is none */
	MPS_OFF   /* no MPS: the program gets time slices of the GPU */
};

/* MPS's own priorities, which act between blocks (hardware.md): for a client from its start to its end. */
enum mps_priority {
	MPS_PRIORITY_AS_IT_IS, /* as CUDA_MPS_CLIENT_PRIORITY says, if the user has set it */
	MPS_PRIORITY_NORMAL,
	MPS_PRIORITY_BELOW
};

#define MPS_CONNECTIONS_DEFAULT 8 /* a program's number without MPS */
#define MPS_CONNECTIONS_USUAL 2   /* MPS's own default */
#define MPS_CONNECTIONS_MAX 32    /* CUDA's own limit */

struct mps_request {
	enum mps_mode mode;
	enum mps_priority priority;
	/* Channels of this client, 1 … MPS_CONNECTIONS_MAX. 0: as CUDA_DEVICE_MAX_CONNECTIONS says, if the user has set
	 * it (some programs need 1), else MPS_CONNECTIONS_DEFAULT. */
	unsigned int connections;
	/* UUIDs of the GPUs that the client will use; if none, it may use any. A server has channels on each GPU. */
	const char *const *gpus;
	unsigned int gpu_count;
};

/* --- what there is ----------------------------------------------------------------------------------------------- */

enum mps_starter {
	MPS_STARTER_UNKNOWN, /* the daemon's process cannot be inspected */
	MPS_STARTED_BY_US,
	MPS_STARTED_BY_OTHERS
};

struct mps_status {
	bool running;          /* a control daemon answers */
	bool has_namespaces;   /* by its interface 3: which limits a client gets is not known here, nor how many clients fit */
	bool started;          /* this call started it */
	pid_t server;          /* the server of this user; 0 if none was needed yet */
	unsigned int clients;  /* of that server, on the requested GPU that has most */
	unsigned int all_clients; /* of all servers of the daemon, on all GPUs */
	unsigned int connections; /* for each client */
	unsigned int capacity;    /* how many such clients fit */
	char pipe_directory[256];
	/* Filled in only by mps_inspect and mps_stop (daemon.h): */
	pid_t daemon; /* 0 if it cannot be seen */
	uid_t owner;  /* of the daemon, if it can be seen */
	enum mps_starter starter;
};

/* Inspects MPS, and changes nothing. Fills in all of `status` except what only mps_inspect fills in, and the control
 * program's path. It is no failure if no daemon runs. With MPS_OFF the daemon is not asked. -1 with the reason: not
 * found, not permitted, no answer. */
int mps_look(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX], struct error *error);

/* Asks the same daemon once more. */
int mps_look_again(const char *control, const struct mps_request *request, struct mps_status *status,
                   struct error *error);

/* The daemon needs 2 ms to answer. mps_ask_early asks now; the next mps_look of this process takes the answer, and
 * reports failures. If there is no early question, mps_look asks itself. Whoever asks early and does not call mps_look
 * must call mps_forget. */
void mps_ask_early(const struct mps_request *request);
void mps_forget(void);

/* For what mps_ask returned, if that is always a failure, -1 with the reason. Otherwise 0. */
int mps_explain(int result, const char *control, const struct mps_status *status, struct error *error);

/* --- how many clients there is room for ----------------------------------------------------------------------------
 * A client takes CUDA_DEVICE_MAX_CONNECTIONS hardware channels (MPS's default is 2, CUDA's without MPS 8), and a
 * server has a limited number of them (facts.md, "MPS"; the paper, section 5; hardware.md). If there is one
 * client too many, it fails when it makes its context, with an error that does not say why. So we count first. */

/* How many clients a server has room for on one GPU, if each takes `connections` channels. Measured on an H200, driver
 * 580.159, for 1, 2, 3, 4, 8, 12, 16 and 32. */
unsigned int mps_capacity(unsigned int connections);

#endif
