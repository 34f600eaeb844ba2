/*
 * The driver's callback table: how we hear of every launch. Nobody else knows it (docs/facts.md, "The callback table"
 * and "Callbacks").
 */
#ifndef NVTASKSET_DRIVER_HOOK_H
#define NVTASKSET_DRIVER_HOOK_H

#include "base/error.h"
#include "calls.h"
#include "cuda.h"

#include <stdbool.h>
#include <stdint.h>

struct gpu;

/* A kernel that is about to be uploaded, on the launching thread: the one record of it, from here to its descriptor. */
struct launch {
	CUcontext context;
	CUfunction function;
	void *qmd;                   /* the launch descriptor, which may be changed */
	struct launch_origin origin; /* what the call says that it comes from, where we hear of that */
	const struct gpu *gpu;       /* for who takes the launch further: NULL until then, or where it is not known */
};

struct hook_events {
	/* A kernel is about to be uploaded. The record lasts until this returns. */
	void (*launch)(struct launch *launch);
	/* We have the slot, and nothing is announced yet: from here on, other threads' launches wait for what is done in
	 * theirs. */
	void (*subscribed)(void);
	/* A context has been made, or is about to be destroyed: its handle may be used again. */
	void (*context_created)(CUcontext context);
	void (*context_destroyed)(CUcontext context);
	/* The code of a module of the program comes onto the GPU: an ELF file of `size` bytes, if our reading is right. */
	void (*module_loaded)(const void *cubin, size_t size);
	/* A call of the driver begins, or has ended, of those for which `wants_call` says yes. What it says about launches is
	 * theirs from when its begin was told until its end is. */
	bool (*wants_call)(int id);
	void (*call_begins)(const struct call *call);
	void (*call_ended)(const struct call *call);
	/* Another tool has the slot, and we wait for it; it has left, on this thread or before anybody noticed that we
	 * wait, and the other events come. */
	void (*waits)(void);
	void (*comes_late)(void);
};

enum hook_state {
	HOOK_SUBSCRIBED, /* the events come, until the process ends */
	HOOK_WAITS,      /* another tool has the subscriber slot: as soon as it unsubscribes, they do */
	HOOK_FAILED      /* there is no such table, or none that we can use */
};

/* Subscribes; no context and no cuInit is needed. With the reason where the events do not come from here on. */
enum hook_state hook_subscribe(const struct hook_events *events, struct error *error);

/* `wants_call` says yes to more calls than before: from here on they are announced, too. */
void hook_want_more(void);

#endif
