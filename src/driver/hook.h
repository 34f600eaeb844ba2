/*
 * Subscribes to the driver's callbacks, by which we hear of every launch (facts.md, "The callback table" and
 * "Callbacks"). Only hook.c and slot.c know the callback table.
 */
#pragma once

#include "base/error.h"
#include "calls.h"
#include "cuda.h"

struct gpu;
struct releases;

/* A kernel about to be uploaded, on the launching thread. */
struct launch {
	CUcontext context;
	CUfunction function;
	void *qmd; /* the launch descriptor, open to changes */
	struct frame frame; /* of the API call; all 0 if the call is not announced */
	/* Set by the launch path at a decision. The values stay until the thread launches on a new context. */
	const struct gpu *gpu;
	const struct releases *releases; /* for counting the context's kernels */
	uint64_t edits;                  /* epoch_of_edits() at the decision */
};

/* Commands of this thread: of the last launch, or of different work. The commands are in the pushbuffer of a channel,
 * and the GPU has not been told (hardware.md, "Queued launches"). */
struct submission {
	CUcontext context;
	void *commands;
	uint32_t bytes;
	/* SYNC (0x80) stored here: the GPU fetches the commands only once all commands ahead are processed. */
	volatile unsigned char *sync; /* the last byte of the ring's entry, in the GPU's memory: never read */
};

struct hook_events {
	/* A kernel is about to be uploaded. The record lasts until the return. */
	void (*launch)(struct launch *launch);
	/* Another subscriber gets the launch's descriptor, and had the descriptor: the mask before, again in force. */
	struct qmd_mask (*mask)(const struct launch *launch);
	void (*keep_mask)(struct launch *launch, const struct qmd_mask *mask);
	/* We have the slot, and no event is announced yet. Slow work belongs here: later, it would delay launches. */
	void (*subscribed)(void);
	/* A context has been made, or is about to be destroyed. CUDA may give the handle of a destroyed context to a
	 * new context. */
	void (*context_created)(CUcontext context);
	void (*context_destroyed)(CUcontext context);
	/* Between the begin and the end of a call, on the calling thread; only while wanted (hook_want_submissions). */
	void (*submits)(struct launch *last, const struct submission *submission);
	/* The code of a program's module is loaded: an ELF file of `size` bytes, if the driver's layout is known. */
	void (*module_loaded)(const void *cubin, size_t size);
	/* The listeners of an API call: bits that come with the call; 0: nobody. Asked by hook_want_more and
	 * hook_want_less, and not for each call. */
	unsigned int (*wants_call)(int id);
	/* A wanted call begins, or has ended. In between, launches on this thread have the call's frame. */
	void (*call_begins)(const struct call *call);
	void (*call_ended)(const struct call *call);
	/* Another tool has the slot, and we wait. Later the tool has left, and we have subscribed. */
	void (*waits)(void);
	void (*subscribed_late)(void);
};

enum hook_state {
	HOOK_SUBSCRIBED, /* events come until the process ends */
	HOOK_WAITS,      /* another tool has the slot: events come after the tool's unsubscribe call */
	HOOK_FAILED      /* events never come */
};

/* Subscribes; needs neither a context nor cuInit. The reason is set unless the result is HOOK_SUBSCRIBED. */
enum hook_state hook_subscribe(const struct hook_events *events, struct error *error);

/* Whether this thread is in a callback of another subscriber, where the driver may hold locks. */
bool hook_is_in_other(void);

bool hook_is_subscribed(void);

/* From here on submissions are announced, or no more. False if the driver does not announce any. */
bool hook_want_submissions(bool wanted);

/* For `wants_call` with different bits than before: calls that begin from here on come with the new bits. The end of a
 * call comes with the bits of the begin. */
void hook_want_more(void);

/* The same for fewer bits: calls without a bit are not announced any more, but for calls that another tool may need. */
void hook_want_less(void);
