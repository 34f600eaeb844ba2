/*
 * A GPU as a picture of characters. Each GPC is a row, each TPC a cell with its number and the letter of the process
 * that has it. A legend of the processes follows. It is drawn with lines and dots on a UTF-8 terminal, and in ASCII
 * elsewhere:
 *
 *   GPC 1 |  0 A    8 A   16 #   24 . : 62 .
 *
 * A bar is in front of each virtual GPC, a dotted bar in front of each TPC that is in no virtual GPC. If only virtual
 * GPCs are known, they are the rows. Lines of cells fit the terminal, or 80 columns if there is no terminal.
 */
#ifndef NVTASKSET_PICTURE_H
#define NVTASKSET_PICTURE_H

#include "gpu/topology/topology.h"
#include "labels.h"
#include "processes.h"
#include "terminal/terminal.h"

#include <stdio.h>

/* `label` names the GPU as -G does. */
void picture_draw(const struct topology *gpu, const char *label, const struct processes *processes,
                  const struct labels *labels, const struct terminal *terminal, FILE *page);

#endif
