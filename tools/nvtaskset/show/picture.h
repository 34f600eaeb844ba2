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

#include "cli/gpus.h"
#include "processes.h"
#include "terminal/terminal.h"

#include <stdio.h>

/* Which letter stands for which process: with --watch, it keeps its letter. */
#define LABELS_MAX 52

/* To be set to zero before the first use. */
struct labels {
	pid_t pids[LABELS_MAX]; /* 0: free */
};

/* Frees the letters of processes that are no longer on the shown GPUs, and gives one to each process that is new
 * there. */
void labels_update(struct labels *labels, const struct processes *processes, const struct gpu_choices *shown);

/* Returns the label of a process, below LABELS_MAX, or LABELS_MAX if it has none: all letters were taken when it
 * came. */
unsigned int labels_find(const struct labels *labels, pid_t pid);

/* Returns 'A' to 'Z' or 'a' to 'z', or '?' for LABELS_MAX. */
char labels_letter(unsigned int label);

/* `label` names the GPU as -G does. */
void picture_draw(const struct topology *gpu, const char *label, const struct processes *processes,
                  const struct labels *labels, const struct terminal *terminal, FILE *page);

#endif
