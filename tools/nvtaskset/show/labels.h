/*
 * Which letter stands for which process in a picture of GPUs. With --watch, a process keeps its letter.
 */
#ifndef NVTASKSET_LABELS_H
#define NVTASKSET_LABELS_H

#include "cli/gpus.h"
#include "processes.h"

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

#endif
