/*
 * The state of NVIDIA MPS for this process: the place of the control daemon, whether the daemon runs, the daemon's
 * report, and the room for clients.
 */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#define MPS_DIRECTORY_ENVIRONMENT "CUDA_MPS_PIPE_DIRECTORY"
#define MPS_ROOTS_DIRECTORY "/run/nvidia-mps"

/* The driver's directory without CUDA_MPS_PIPE_DIRECTORY: in /run for a daemon of root with interface 3. */
static inline const char *mps_usual_directory(void)
{
	bool is_roots =
		access("/tmp/nvidia-mps/control", F_OK) < 0 && access(MPS_ROOTS_DIRECTORY "/control", F_OK) == 0;

	return is_roots ? MPS_ROOTS_DIRECTORY : "/tmp/nvidia-mps";
}

#define MPS_CONNECTIONS_ENVIRONMENT "CUDA_DEVICE_MAX_CONNECTIONS"

/* --- a program's request ------------------------------------------------------------------------------------------ */

enum mps_mode {
	MPS_AUTO, /* use the running control daemon, or start a daemon; else fail */
	MPS_ON,   /* use the running control daemon; else fail */
	MPS_OFF   /* no MPS: the program gets time slices of the GPU */
};

/* MPS's own priorities, which act between blocks (hardware.md): for a client from its start to its end. */
enum mps_priority {
	MPS_PRIORITY_AS_IT_IS, /* by CUDA_MPS_CLIENT_PRIORITY, if the user has set the variable */
	MPS_PRIORITY_NORMAL,
	MPS_PRIORITY_BELOW
};

#define MPS_CONNECTIONS_DEFAULT 8 /* a program's number without MPS */
#define MPS_CONNECTIONS_USUAL 2   /* MPS's own default */
#define MPS_CONNECTIONS_MAX 32    /* CUDA's own limit */

struct mps_request {
	enum mps_mode mode;
	enum mps_priority priority;
	/* Channels of this client, 1 … MPS_CONNECTIONS_MAX. 0: CUDA_DEVICE_MAX_CONNECTIONS, if the user has set the
	 * variable (some programs need 1), else MPS_CONNECTIONS_DEFAULT. */
	unsigned int connections;
	/* UUIDs of the GPUs for the client; without a UUID, any GPU. A server has channels on each GPU. */
	const char *const *gpus;
	unsigned int gpu_count;
};

/* --- the state of MPS --------------------------------------------------------------------------------------------- */

enum mps_starter {
	MPS_STARTER_UNKNOWN, /* the daemon's process cannot be inspected */
	MPS_STARTED_BY_US,
	MPS_STARTED_BY_OTHERS
};

struct mps_status {
	bool running;          /* a control daemon answers */
	bool has_namespaces;   /* by its interface 3: neither a client's limits nor the room for clients are known */
	bool started;          /* by this call */
	pid_t server;          /* the server of this user; 0 before the first need */
	unsigned int clients;  /* of the server, on the requested GPU with the most */
	unsigned int all_clients; /* of all servers of the daemon, on all GPUs */
	unsigned int connections; /* for each client */
	unsigned int capacity;    /* the room for clients with as many connections */
	char pipe_directory[256];
	pid_t daemon; /* 0: cannot be seen; from here on, filled in only by mps_inspect and mps_stop (daemon.h) */
	uid_t owner;  /* of the daemon, if the daemon can be seen */
	enum mps_starter starter;
};

/* Inspects MPS without changes. Fills in `status`, except for the members of mps_inspect, and the path of the control
 * program. Without a running daemon, no failure. With MPS_OFF, the daemon is not asked. -1 with the reason: not found,
 * not permitted, no answer. */
int mps_look(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX], struct error *error);

/* Asks the same daemon again. */
int mps_look_again(const char *control, const struct mps_request *request, struct mps_status *status,
                   struct error *error);

/* The daemon needs some ms to answer. mps_ask_early asks now; the next mps_look of this process takes the answer, and
 * reports failures. Without an early question, mps_look asks. A caller that asks early without mps_look must call
 * mps_forget.
 *
 * If the processes of MPS show that one more client fits (processes.h), nobody asks, and the numbers of clients stay 0;
 * except with `wants_numbers`. */
void mps_ask_early(const struct mps_request *request, bool wants_numbers);
void mps_forget(void);

/* -1 with the reason for a `result` of mps_ask that is always a failure, otherwise 0. */
int mps_explain(int result, const char *control, const struct mps_status *status, struct error *error);

/* --- the room for clients ------------------------------------------------------------------------------------------
 * A client takes CUDA_DEVICE_MAX_CONNECTIONS hardware channels (MPS's default is 2, CUDA's without MPS 8), and a server
 * has a limited number of channels (docs/internals/facts.md, "MPS"; hardware.md). One client too many fails when
 * making the context, with an error that does not say why. So we count first. */

/* The room of a server for clients on a GPU, if each client takes `connections` channels. Measured on an H200, driver
 * 580.159, for 1, 2, 3, 4, 8, 12, 16 and 32. */
unsigned int mps_capacity(unsigned int connections);
