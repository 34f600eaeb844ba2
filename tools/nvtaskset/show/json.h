/*
 * The output of -l, -T and -p as JSON, for programs. json.md describes the documents.
 *
 * Functions that make a document return NULL if there is no memory. The other functions take NULL, and report it.
 */
#ifndef NVTASKSET_JSON_H
#define NVTASKSET_JSON_H

#include "activity.h"
#include "base/error.h"
#include "cli/gpus.h"
#include "gpu/topology/topology.h"
#include "groups.h"
#include "processes.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* -l */
json_t *json_list(const struct processes *processes, const struct groups *groups, const struct topology_list *gpus);

/* Adds `busy` to the kernels of the list's processes, which are those of this look. -1 with the reason if there is no memory. */
int json_add_busy(json_t *list, const struct activities *activities, struct error *error);

/* -T, of the chosen GPUs. */
json_t *json_topology(const struct gpu_choices *chosen, const struct processes *processes,
                      const struct topology_list *gpus);

/* -p: a document without partitions. json_add_partition adds them, one process at a time. */
json_t *json_partitions(void);

/* Adds the partition of a process on the chosen GPUs. `before` is the partition before the change, or NULL if there was
 * none. -1 with the reason if there is no memory. */
int json_add_partition(json_t *document, pid_t pid, const struct gpu_choices *chosen,
                       const struct segment_revision *revision, const struct segment_revision *before,
                       const struct segment_time *time, const struct topology_list *gpus, struct error *error);

/* The same for a group, as the document's member `group`. Its name may be "". */
int json_add_group(json_t *document, const char *name, const struct gpu_choices *chosen,
                   const struct segment_revision *revision, const struct segment_revision *before,
                   const struct topology_list *gpus, struct error *error);

/* --- for documents that others make ------------------------------------------------------------------------------------ */

/* False if there was no memory, now or when the value was made: then it is NULL. */
bool json_append(json_t *array, json_t *value);

/* Returns the array if it is complete. Otherwise frees it and returns NULL. */
json_t *json_finish(json_t *array, bool complete);

/* Returns `object` with the members of `more` added. Takes over both references. */
json_t *json_joined(json_t *object, json_t *more);

/* The members that say which GPU an object is about. */
json_t *json_gpu(struct pci_address pci, const struct topology_list *gpus);

/* The members `quota`, `rank` and `policy`, each null if it was never given. Without `time`, only what was given. */
json_t *json_time(const struct segment_revision *revision, const struct segment_time *time);

/* Milliseconds since 1970. */
json_int_t json_now(void);

/* ------------------------------------------------------------------------------------------------------------------------ */

/* Writes a document in ASCII, on one line or on many, and frees it. -1 with the reason if there is no memory. The
 * caller checks the file for write errors. */
int json_write(json_t *document, bool one_line, FILE *file, struct error *error);

#endif
