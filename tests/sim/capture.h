/* Captures: the launches that a stream records in a graph, and the calls that are not allowed meanwhile. */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "api.h"

/* The graph in which this stream's launches are recorded; NULL if they run. */
CUgraph capture_of(CUstream stream);

/* A call begins that is not allowed during captures (hardware.md, "Releases"). CUDA_SUCCESS if there is none that
 * counts for this thread, or it said that it knows (cuThreadExchangeStreamCaptureMode). Otherwise they are invalid now. */
CUresult capture_allows(void);

/* The stream is about to be destroyed. */
void capture_forget(CUstream stream);

#endif
