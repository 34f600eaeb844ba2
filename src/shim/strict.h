/*
 * --strict: where something would run outside its partition, the program ends, with the reason. This is the one place
 * where we end a program, and its user has asked for just that.
 */
#ifndef NVTASKSET_SHIM_STRICT_H
#define NVTASKSET_SHIM_STRICT_H

/* Reads the environment: before any other thread can change it. */
void strict_open(void);

/* Something is about to run unrestricted. Under --strict, says why, ends the process, and does not return; otherwise
 * does nothing. */
void strict_refuse(const char *reason);

#endif
