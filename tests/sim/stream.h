/* Streams. capture.h has what they capture. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "api.h"

struct CUstream_st {
	CUcontext context;
	struct capture *capture; /* NULL unless launches are recorded */
};

CUresult stream_create(CUstream *stream, CUcontext context);

/* The context of a launch into this stream. For the streams that every context has, it is the current one. */
CUcontext stream_context(CUstream stream);

/* Whether it was created, and is none of those that every context has. */
bool stream_is_real(CUstream stream);

#endif
