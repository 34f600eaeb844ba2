/*
 * The output of -l, -T and -p as JSON, for programs. json.md describes the documents.
 *
 * Functions that make a value return NULL without memory, and if a given value is NULL.
 */
#pragma once

#include "activity.h"
#include "base/error.h"
#include "cli/gpus.h"
#include "gpu/topology/topology.h"
#include "groups.h"

#include <jansson.h>
#include <stdio.h>

/* -l; with the busy shares of the GPUs, if these are measured. */
json_t *json_list(const struct activities *activities, const struct groups *groups);

/* -T, of the chosen GPUs. */
json_t *json_topology(const struct gpu_choices *chosen, const struct processes *processes,
                      const struct topology_list *gpus);

/* -p: a document without partitions. json_add_partition adds them, one process at a time. */
json_t *json_partitions(void);

/* Adds a process's partition on the chosen GPUs. `before`: the partition before the change, or NULL. -1 with the
 * reason. */
int json_add_partition(json_t *document, pid_t pid, const struct gpu_choices *chosen,
                       const struct segment_revision *revision, const struct segment_revision *before,
                       const struct segment_time *time, const struct topology_list *gpus, struct error *error);

/* The same for a group, as the document's member `group`. `name` may be "". */
int json_add_group(json_t *document, const char *name, const struct gpu_choices *chosen,
                   const struct segment_revision *revision, const struct segment_revision *before,
                   const struct topology_list *gpus, struct error *error);

/* --- parts of other documents ------------------------------------------------------------------------------------ */

/* Returns `array` with one more value. Takes over both references. */
json_t *json_with(json_t *array, json_t *value);

/* Returns `object` with the members of `more`. Takes over both references. */
json_t *json_joined(json_t *object, json_t *more);

/* The members that name an object's GPU. */
json_t *json_gpu(struct pci_address pci, const struct topology_list *gpus);

/* The members of the given time and memory, each null if never given. Without `time`, only the given values. */
json_t *json_time(const struct segment_revision *revision, const struct segment_time *time);

/* A number; null if not known. */
json_t *json_reading(struct reading reading, bool is_integer);

/* A time of `ns`, written in ms; null for 0, which means not known. */
json_t *json_ms(double ns);

/* The members from the first number to the last. */
struct json_member {
	const char *name;
	bool is_integer;
};
json_t *json_members(const struct reading *numbers, const struct json_member *members, unsigned int first,
                     unsigned int last);
json_t *json_numbers(const struct reading numbers[NUMBER_COUNT], enum number first, enum number last);

/* Prints a table's row: an object's members in columns of nine characters, texts in sixteen. Names end with NULL. */
void json_print_row(const json_t *object, const char *const names[]);

/* Milliseconds since 1970. */
json_int_t json_now(void);

/* ------------------------------------------------------------------------------------------------------------------ */

/* Writes a document in ASCII, on one line or on many, and frees the document. -1 with the reason, without memory. The
 * caller checks the file for write errors. */
int json_write(json_t *document, bool one_line, FILE *file, struct error *error);
