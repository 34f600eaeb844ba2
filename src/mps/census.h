/*
 * Counts the users of MPS, from its control daemon's answer.
 */
#ifndef NVTASKSET_MPS_CENSUS_H
#define NVTASKSET_MPS_CENSUS_H

#include "request.h"
#include "status.h"

/* The commands for the daemon: list its servers, and their clients. */
#define CENSUS_QUESTION "get_server_list\nps\n"

/* Fills in the server and the numbers of clients, which must be 0, from the answer. The answer is destroyed. */
void census_read(struct mps_status *status, const struct mps_request *request, char *answer);

#endif
