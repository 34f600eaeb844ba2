/* NVIDIA MPS at some moment, as its control daemon tells it. */
#ifndef NVTASKSET_MPS_STATUS_H
#define NVTASKSET_MPS_STATUS_H

#include <stdbool.h>
#include <sys/types.h>

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
	/* By mps_inspect and mps_stop (daemon.h) alone: */
	pid_t daemon; /* 0 where it cannot be seen */
	uid_t owner;  /* of the daemon; where it can be seen */
	enum mps_starter starter;
};

#endif
