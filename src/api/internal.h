/*
 * Conversions between the public API and our modules. Public structs keep a layout of their own when the modules'
 * layout changes. include/nvtaskset.h says what each function promises.
 */
#pragma once

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "nvtaskset.h"
#include "state/revisions.h"

#include <string.h>

_Static_assert(sizeof(struct nvtaskset_error) == 320, "the size in all versions");
_Static_assert(sizeof(struct nvtaskset_error) == sizeof(struct error), "the same failure");
_Static_assert(offsetof(struct nvtaskset_error, code) == offsetof(struct error, code), "the same code");
_Static_assert(offsetof(struct nvtaskset_error, system_error) == offsetof(struct error, system_error),
               "the same errno");
_Static_assert(sizeof(struct nvtaskset_set) == sizeof(struct tpcset), "the same words");
_Static_assert(NVTASKSET_TPCS_MAX == TPCSET_MAX, "the same numbers");
_Static_assert(NVTASKSET_SET_TEXT == TPCSET_TEXT, "the same text");

struct nvtaskset_topology {
	struct topology_list list;
	struct tpcset all[TOPOLOGY_GPUS_MAX]; /* TPCs of each GPU */
};

/* Both structs have the same layout, as asserted above. */
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

/* Sets `code` in place of OTHER: a module's own code stays. Returns -1. */
static inline int api_failed(struct nvtaskset_error *error, enum nvtaskset_error_code code)
{
	if (error && error->code == NVTASKSET_ERROR_OTHER)
		error->code = code;
	return -1;
}

/* The GPU with the number, or NULL with the reason. */
const struct topology *api_gpu(const struct nvtaskset_topology *topology, unsigned int gpu, struct error *error);

/* The set of the revision on an existing GPU. */
struct nvtaskset_set api_set_on(const struct nvtaskset_topology *topology, unsigned int gpu,
                                const struct segment_revision *revision);

/* Fills `wanted` with a change of the set alone. -1 with the reason: the set is empty, or the GPU or TPCs do not
 * exist. */
int api_want_set(struct segment_revision *wanted, const struct nvtaskset_topology *topology, unsigned int gpu,
                 const struct nvtaskset_set *set, struct error *error);

/* Fills a public struct. The first member is the struct's size for the caller. -1 with the reason if no version has the
 * size: the caller has not set it, and we might write beyond the struct. So far there is one version; later versions
 * must accept the size of this version, too. */
int api_fill(void *public, const void *filled, size_t size, struct error *error);
