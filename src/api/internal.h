/*
 * Between the public API (include/nvtaskset.h, which says what each function promises) and the modules behind it: what is
 * public has a layout of its own, which stays when theirs changes.
 */
#ifndef NVTASKSET_API_INTERNAL_H
#define NVTASKSET_API_INTERNAL_H

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "nvtaskset.h"

#include <stddef.h>
#include <string.h>

_Static_assert(sizeof(struct nvtaskset_error) == 320, "the room that programs of all versions have");
_Static_assert(sizeof(struct nvtaskset_error) == sizeof(struct error), "the same failure");
_Static_assert(offsetof(struct nvtaskset_error, code) == offsetof(struct error, code), "the same code");
_Static_assert(offsetof(struct nvtaskset_error, system_error) == offsetof(struct error, system_error), "the same errno");
_Static_assert(sizeof(struct nvtaskset_set) == sizeof(struct tpcset), "the same words");
_Static_assert(NVTASKSET_TPCS_MAX == TPCSET_MAX, "the same numbers");
_Static_assert(NVTASKSET_SET_TEXT == TPCSET_TEXT, "the same text");

struct nvtaskset_topology {
	struct topology_list list;
	struct tpcset all[TOPOLOGY_GPUS_MAX]; /* TPCs of each GPU */
};

/* The same bytes, whichever it is called. */
static inline struct error *inside_error(struct nvtaskset_error *error)
{
	return (struct error *)error;
}

static inline struct tpcset inside(const struct nvtaskset_set *set)
{
	struct tpcset inner;

	memcpy(&inner, set, sizeof inner);
	return inner;
}

static inline struct nvtaskset_set outside(const struct tpcset *set)
{
	struct nvtaskset_set outer;

	memcpy(&outer, set, sizeof outer);
	return outer;
}

/* What failed in a module that gives reasons alone; a code that it did give stays. -1. */
static inline int api_failed(struct nvtaskset_error *error, enum nvtaskset_error_code code)
{
	if (error && error->code == NVTASKSET_ERROR_OTHER)
		error->code = code;
	return -1;
}

/* The GPU with this number, or NULL with the reason. */
const struct topology *api_gpu(const struct nvtaskset_topology *topology, unsigned int gpu, struct error *error);

/* Fills a public struct, whose first member says how large it is for the caller. -1 with the reason where that is no
 * version's: it was not set, and any other size would perhaps be written over what is the caller's. So far there is one
 * version; the next one knows this one's size, too. */
int api_fill(void *public, const void *filled, size_t size, struct error *error);

#endif
