/*
 * The driver's callback table: how we hear of every launch. Nobody else knows it (FACTS 1 and 2).
 */
#ifndef NVTASKSET_SHIM_HOOK_H
#define NVTASKSET_SHIM_HOOK_H

#include "cuda.h"
#include "error.h"

struct hook_events {
	/* A kernel is about to be uploaded, on the launching thread; its descriptor may be changed. */
	void (*launch)(CUcontext context, CUfunction function, void *qmd);
	/* A context has been made, or is about to be destroyed: its handle may be used again. */
	void (*context_created)(CUcontext context);
	void (*context_destroyed)(CUcontext context);
};

/* Subscribes; no context and no cuInit is needed. From here on the events come, until the process ends.
 * -1 with the reason where the driver has no such table or the subscriber slot is taken. */
int hook_subscribe(const struct hook_events *events, struct error *error);

#endif
