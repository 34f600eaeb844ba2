/* Streams, and the graph that one is capturing. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "api.h"

struct CUstream_st {
	CUcontext context;
	CUgraph capture; /* NULL while launches are run and not recorded */
};

CUresult stream_create(CUstream *stream, CUcontext context);

/* The context that a launch into this stream is for: the current one, for the streams that every context has. */
CUcontext stream_context(CUstream stream);

CUgraph stream_capture(CUstream stream);

#endif
