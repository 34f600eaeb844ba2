/*
 * What -l, -T and -p show, as JSON for programs. docs/json.md describes the documents.
 *
 * Functions return NULL where memory lacks; json_write takes that for an answer.
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

/* -p: a document for partitions, to be added one by one. */
json_t *json_partitions(void);

/* Adds the partition of a process on the chosen GPUs, and the one before where it was changed (else NULL). -1 where memory
 * lacks, also for the document itself. */
int json_add_partition(json_t *document, pid_t pid, const struct gpu_choices *chosen,
                       const struct segment_revision *revision, const struct segment_revision *before,
                       const struct topology_list *gpus, struct error *error);

/* Writes a document in ASCII, on one line or on many, and lets go of it. -1 with the reason where memory lacks; what the
 * file says to it is the file's to know. */
int json_write(json_t *document, bool one_line, FILE *file, struct error *error);

#endif
