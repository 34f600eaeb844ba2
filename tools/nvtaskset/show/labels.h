/*
 * Which letter stands for which process in a picture of GPUs. A process keeps its letter from look to look.
 */
#ifndef NVTASKSET_MARKS_H
#define NVTASKSET_MARKS_H

#include "gpus.h"
#include "processes.h"

#define MARKS_MAX 52

/* Starts with all zero. */
struct marks {
	pid_t pids[MARKS_MAX]; /* 0: free */
};

/* Takes the letters back from processes that are gone from the shown GPUs, and gives one to each that is new there. */
void marks_update(struct marks *marks, const struct processes *processes, const struct gpu_choices *shown);

/* Below MARKS_MAX; or MARKS_MAX, for those that came when all letters were taken. */
unsigned int marks_find(const struct marks *marks, pid_t pid);

/* 'A' to 'Z', 'a' to 'z', and '?'. */
char marks_letter(unsigned int mark);

#endif
