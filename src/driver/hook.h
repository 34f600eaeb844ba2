/*
 * Subscribes to the driver's callbacks, by which we hear of every launch (facts.md, "The callback table" and
 * "Callbacks"). Only hook.c and slot.c know the callback table.
 */
#ifndef NVTASKSET_DRIVER_HOOK_H
#define NVTASKSET_DRIVER_HOOK_H

#include "base/error.h"
#include "calls.h"
#include "cuda.h"

#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct releases;

/* A kernel that is about to be uploaded, on the launching thread. */
struct launch {
	CUcontext context;
	CUfunction function;
	void *qmd; /* the launch descriptor, which may be changed */
	struct frame frame; /* of the API call; all 0 if we do not hear of that */
	/* Set by the launch path when it decides. They stay until this thread launches on another context. */
	const struct gpu *gpu;
	const struct releases *releases; /* what counts the context's kernels */
	uint64_t edits;                  /* the partition's number then */
};

/* Commands of this thread: of its last launch, or of other work. The commands are in the pushbuffer of a channel, and the
 * GPU has not been told of them (hardware.md, "Queued launches"). */
struct submission {
	CUcontext context;
	void *commands;
	uint32_t bytes;
	volatile unsigned char *sync; /* the byte with SYNC of the commands' entry, in the GPU's memory: it is stored, never read */
};

struct hook_events {
	/* A kernel is about to be uploaded. The record lasts until this returns. */
	void (*launch)(struct launch *launch);
	/* We have the slot, and no event is announced yet. Slow work belongs here: once events come, it would delay
	 * other threads' launches. */
	void (*subscribed)(void);
	/* A context has been made, or is about to be destroyed. Its handle may be used again. */
	void (*context_created)(CUcontext context);
	void (*context_destroyed)(CUcontext context);
	/* Between the begin and the end of a call, on its thread; only while they are wanted (hook_want_submissions). */
	void (*submits)(struct launch *last, const struct submission *submission);
	/* The code of one of the program's modules is loaded: an ELF file of `size` bytes, if the driver is as we know
	 * it. */
	void (*module_loaded)(const void *cubin, size_t size);
	/* Who wants an API call: bits that come with the call; 0: nobody. Asked by hook_want_more and hook_want_less, and
	 * not for each call. */
	unsigned int (*wants_call)(int id);
	/* A wanted call begins, or has ended. Between call_begins and call_ended, launches on this thread have the call's
	 * frame. */
	void (*call_begins)(const struct call *call);
	void (*call_ended)(const struct call *call);
	/* Another tool has the slot, and we wait for it. Then that tool has left, and we have subscribed. */
	void (*waits)(void);
	void (*subscribed_late)(void);
};

enum hook_state {
	HOOK_SUBSCRIBED, /* events come until the process ends */
	HOOK_WAITS,      /* another tool has the slot: events come once it has unsubscribed */
	HOOK_FAILED      /* events never come */
};

/* Subscribes; needs neither a context nor cuInit. The reason is set unless the result is HOOK_SUBSCRIBED. */
enum hook_state hook_subscribe(const struct hook_events *events, struct error *error);

/* Whether this thread is in a callback of another subscriber, where the driver may hold its locks. */
bool hook_is_in_other(void);

/* Whether events come. */
bool hook_is_subscribed(void);

/* From here on submissions are announced, or no more. False if the driver does not announce any. */
bool hook_want_submissions(bool wanted);

/* Call it when `wants_call` has more bits than before: from here on the calls are announced with these bits. */
void hook_want_more(void);

/* The same for fewer bits. Calls that another tool may need stay announced to the library, which ignores the calls. */
void hook_want_less(void);

#endif
