/*
 * MPS's processes, by /proc, without a question to the daemon. Unknown are those of other users, and in another PID
 * namespace.
 */
#pragma once

#include <sys/types.h>

/* The control daemon with the directory of pipes; 0 if unknown: the file with the pid may be old. */
pid_t mps_find_daemon(const char *pipe_directory);

/* The daemon's server for the user of this process; 0 if unknown, or if there are several. */
pid_t mps_find_server(pid_t daemon);

/* An upper bound for the server's clients: each client has a socket of the server or more (hardware.md, "MPS").
 * MPS_CLIENTS_UNKNOWN if the server's descriptors cannot be seen. */
#define MPS_CLIENTS_UNKNOWN 1000
unsigned int mps_clients_at_most(pid_t server);
