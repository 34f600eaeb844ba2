/*
 * Who uses MPS, counted from what its control daemon says.
 */
#ifndef NVTASKSET_MPS_CENSUS_H
#define NVTASKSET_MPS_CENSUS_H

#include "request.h"
#include "status.h"

/* What the daemon is to be asked: its servers, and their clients. */
#define CENSUS_QUESTION "get_server_list\nps\n"

/* Fills in the server and the clients, which were 0, from the answer. It is used up. */
void census_read(struct mps_status *status, const struct mps_request *request, char *answer);

#endif
