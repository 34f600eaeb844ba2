/* Streams, and the graph that one is capturing. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "api.h"

struct CUstream_st {
	CUcontext context;
	CUgraph capture; /* NULL unless launches are recorded */
};

CUresult stream_create(CUstream *stream, CUcontext context);

/* The context of a launch into this stream. For the streams that every context has, it is the current one. */
CUcontext stream_context(CUstream stream);

CUgraph stream_capture(CUstream stream);

#endif
