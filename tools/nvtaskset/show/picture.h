/*
 * A GPU as a picture of characters: a row for each GPC, a cell for each TPC with its number and who has it, and below
 * it who they are. On a UTF-8 terminal with lines and dots, elsewhere in ASCII:
 *
 *   GPC 1 |  0 A    8 A   16 #   24 . : 62 .
 *
 * A bar stands in front of each virtual GPC, a dotted one in front of each TPC that is in none. Where only virtual GPCs
 * are known, the rows are those. Lines are as long as the terminal at most, or as 80 columns where it is none.
 */
#ifndef NVTASKSET_PICTURE_H
#define NVTASKSET_PICTURE_H

#include "gpu/topology/topology.h"
#include "labels.h"
#include "processes.h"
#include "terminal.h"

#include <stdio.h>

/* `label` is what -G calls the GPU. */
void picture_draw(const struct topology *gpu, const char *label, const struct processes *processes,
                  const struct labels *labels, const struct terminal *terminal, FILE *page);

#endif
