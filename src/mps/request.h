/* A program's request to NVIDIA MPS. */
#ifndef NVTASKSET_MPS_REQUEST_H
#define NVTASKSET_MPS_REQUEST_H

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

#endif
