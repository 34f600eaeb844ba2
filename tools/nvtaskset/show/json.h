/*
 * The output of -l, -T and -p as JSON, for programs. docs/json.md describes the documents.
 *
 * Functions that make a document return NULL if there is no memory. The other functions take NULL, and report it.
 */
#ifndef NVTASKSET_JSON_H
#define NVTASKSET_JSON_H

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "gpus.h"
#include "processes.h"

#include <jansson.h>
#include <stdio.h>

/* -l */
json_t *json_list(const struct processes *processes, const struct topology_list *gpus);

/* -T, of the chosen GPUs. */
json_t *json_topology(const struct gpu_choices *chosen, const struct processes *processes,
                      const struct topology_list *gpus);

/* -p: a document without partitions. json_add_partition adds them, one process at a time. */
json_t *json_partitions(void);

/* Adds the partition of a process on the chosen GPUs. `before` is the partition before the change, or NULL if there was
 * none. -1 with the reason if there is no memory. */
int json_add_partition(json_t *document, pid_t pid, const struct gpu_choices *chosen,
                       const struct segment_revision *revision, const struct segment_revision *before,
                       const struct topology_list *gpus, struct error *error);

/* Writes a document in ASCII, on one line or on many, and frees it. -1 with the reason if there is no memory. The
 * caller checks the file for write errors. */
int json_write(json_t *document, bool one_line, FILE *file, struct error *error);

#endif
