/* Streams; and captures: the launches that a stream records in a graph, and the calls that are not allowed meanwhile. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "api.h"

struct CUstream_st {
	CUcontext context;
	unsigned int channel;    /* of pushbuffer.h */
	struct capture *capture; /* NULL unless launches are recorded */
	CUstream next;           /* in the list of all */
};

CUresult stream_create(CUstream *stream, CUcontext context);

/* The context takes all streams along, unannounced. */
void streams_end(CUcontext context);

/* The context of a launch into this stream. For the streams that every context has, it is the current one. */
CUcontext stream_context(CUstream stream);

/* Whether it was created, and is none of those that every context has. */
bool stream_is_real(CUstream stream);

/* The graph in which this stream's launches are recorded; NULL if they run. */
CUgraph capture_of(CUstream stream);

/* A call begins that is not allowed during captures (hardware.md, "Releases"). CUDA_SUCCESS if there is none that
 * counts for this thread, or it said that it knows (cuThreadExchangeStreamCaptureMode). Otherwise they are invalid now. */
CUresult capture_allows(void);

/* The stream is about to be destroyed. */
void capture_forget(CUstream stream);

#endif
