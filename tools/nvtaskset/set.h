/* SET, as the user gave it, on a GPU. */
#ifndef NVTASKSET_SET_H
#define NVTASKSET_SET_H

#include "error.h"
#include "gpus.h"
#include "options.h"
#include "segment.h"
#include "topology/topology.h"
#include "tpcset.h"

/* The TPCs of `gpu` that `text` means, "all" in every notation; never none. */
int set_parse(struct tpcset *set, const char *text, enum notation notation, const struct topology *gpu,
              struct error *error);

/* The partition that the command line asks for on the chosen GPUs: each one's own SET, or the one for all. */
int set_parse_all(struct segment_revision *revision, const struct options *options,
                  const struct gpu_choices *chosen, struct error *error);

/* What a notation calls its text in messages: "TPC mask", "TPC list". */
const char *set_noun(enum notation notation);

/* The set in the notation in which the user speaks; GPCs are answered by TPCs, which say it exactly. */
const char *set_format(const struct tpcset *set, enum notation notation, char text[TPCSET_TEXT]);

#endif
