/*
 * What -l, -T and -p show, as JSON for programs. docs/json.md describes the documents.
 *
 * Functions return NULL where memory lacks; json_write takes that for an answer.
 */
#ifndef NVTASKSET_JSON_H
#define NVTASKSET_JSON_H

#include "error.h"
#include "gpus.h"
#include "processes.h"
#include "topology/topology.h"

#include <jansson.h>
#include <stdio.h>

/* -l */
json_t *json_list(const struct processes *processes, const struct topology_list *gpus);

/* -T, of the chosen GPUs. */
json_t *json_topology(const struct gpu_choices *chosen, const struct processes *processes,
                      const struct topology_list *gpus);

/* -p: the partition of one process on the chosen GPUs, and the one before where it was changed (else NULL); several
 * make a document. */
json_t *json_partition(pid_t pid, const struct gpu_choices *chosen, const struct segment_revision *revision,
                       const struct segment_revision *before, const struct topology_list *gpus);
json_t *json_partitions(json_t *array);

/* Writes a document, on one line or on many, and lets go of it. -1 with the reason. */
int json_write(json_t *document, bool one_line, FILE *file, struct error *error);

#endif
