/*
 * The directory that puts our library in front of the driver.
 */
#ifndef NVTASKSET_FRONT_H
#define NVTASKSET_FRONT_H

#include "base/error.h"

#include <limits.h>

/* A directory that holds our library as libcuda.so.1, and beside it a link to `driver` under the name by
 * which our library asks for it: where we are installed, if the link there leads to this driver, else a
 * directory of this user's, made now, in which nobody else can change anything. */
int front_directory(const char *driver, char directory[PATH_MAX], struct error *error);

/* 0 where a program that changes its user, as root's can, still gets at all that this directory leads to; -1 with what keeps
 * it from that. */
int front_check_others(const char *directory, struct error *error);

#endif
