/*
 * A GPU as a picture of characters. Each GPC is a row, each TPC a cell with its number and the letter of the process
 * there. A legend of the processes follows. A UTF-8 terminal gets lines and dots, any other terminal ASCII:
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

/* The letters of processes. With --watch, a process keeps its letter. */
#define LABELS_MAX 52

/* All zero before the first use. */
struct labels {
	pid_t pids[LABELS_MAX]; /* 0: free */
};

/* Frees the letters of processes that left the shown GPUs, and gives a letter to each new process. */
void labels_update(struct labels *labels, const struct processes *processes, const struct gpu_choices *shown);

/* Returns the label of a process, below LABELS_MAX; LABELS_MAX if all letters were taken when the process came. */
unsigned int labels_find(const struct labels *labels, pid_t pid);

/* Returns 'A' to 'Z' or 'a' to 'z', or '?' for LABELS_MAX. */
char labels_letter(unsigned int label);

/* `label` names the GPU as -G does. */
void picture_draw(const struct topology *gpu, const char *label, const struct processes *processes,
                  const struct labels *labels, const struct terminal *terminal, FILE *page);

#endif
