/* What a program wants of NVIDIA MPS. */
#ifndef NVTASKSET_MPS_REQUEST_H
#define NVTASKSET_MPS_REQUEST_H

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

#endif
