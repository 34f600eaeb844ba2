/*
 * Which letter stands for which process in a picture of GPUs. A process keeps its letter from look to look.
 */
#ifndef NVTASKSET_LABELS_H
#define NVTASKSET_LABELS_H

#include "gpus.h"
#include "processes.h"

#define LABELS_MAX 52

/* Starts with all zero. */
struct labels {
	pid_t pids[LABELS_MAX]; /* 0: free */
};

/* Takes the letters back from processes that are gone from the shown GPUs, and gives one to each that is new there. */
void labels_update(struct labels *labels, const struct processes *processes, const struct gpu_choices *shown);

/* Below LABELS_MAX; or LABELS_MAX, for those that came when all letters were taken. */
unsigned int labels_find(const struct labels *labels, pid_t pid);

/* 'A' to 'Z', 'a' to 'z', and '?'. */
char labels_letter(unsigned int label);

#endif
