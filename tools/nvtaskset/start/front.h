/*
 * The directory that puts our library in front of the driver.
 */
#ifndef NVTASKSET_FRONT_H
#define NVTASKSET_FRONT_H

#include "base/error.h"

#include <limits.h>

/* Finds or makes a directory with our library as libcuda.so.1, and with a link to `driver` under the name by which our
 * library loads it. It is the directory where we are installed, if the link there leads to this driver. Otherwise it
 * makes one that belongs to this user, and in which no other user can change anything. 0, or -1 with the reason. */
int front_directory(const char *driver, char directory[PATH_MAX], struct error *error);

/* Whether a program that changes its user can still reach our library and the driver through this directory. 0 if it
 * can, or if programs that we start cannot change their user; -1 with the reason. */
int front_check_others(const char *directory, struct error *error);

#endif
