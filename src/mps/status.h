/* The state of NVIDIA MPS at one moment, as its control daemon reports it. */
#ifndef NVTASKSET_MPS_STATUS_H
#define NVTASKSET_MPS_STATUS_H

#include <stdbool.h>
#include <sys/types.h>

enum mps_starter {
	MPS_STARTER_UNKNOWN, /* the daemon's process cannot be inspected */
	MPS_STARTED_BY_US,
	MPS_STARTED_BY_OTHERS
};

struct mps_status {
	bool running;          /* a control daemon answers */
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

#endif
