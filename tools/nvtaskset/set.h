/* SET, as the user gave it, on a GPU. */
#ifndef NVTASKSET_SET_H
#define NVTASKSET_SET_H

#include "ancestry.h"
#include "base/error.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "gpus.h"
#include "options.h"
#include "state/segment.h"

/* The partition that the command line asks for on the chosen GPUs: each one's own SET, or the one for all; "all" in
 * every notation. Never an empty set. A number of TPCs gets some that nobody has; `except` (NULL: no process) may keep
 * what they have. Unless it is only asked what would be chosen, nobody else can choose from then on until this process
 * ends or becomes another program. */
int set_find(struct segment_revision *revision, const struct options *options, const struct gpu_choices *chosen,
             const struct topology_list *list, const struct pids *except, struct error *error);

/* Prints a partition as it can be pasted behind -t. */
void set_print(const struct segment_revision *revision);

/* What a notation calls its text in messages: "TPC mask", "TPC list". A number is answered with the list. */
const char *set_noun(enum notation notation);

/* The set in the notation in which the user speaks; GPCs are answered by TPCs, which say it exactly. */
const char *set_format(const struct tpcset *set, enum notation notation, char text[TPCSET_TEXT]);

#endif
