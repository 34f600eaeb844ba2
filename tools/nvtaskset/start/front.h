/*
 * The directory with our library in the place of the driver.
 */
#pragma once

#include "base/error.h"

#include <limits.h>

/* Finds or makes a directory with our library as libcuda.so.1, and with a link to `driver` under the name that our
 * library loads. If the link in our installed directory leads to `driver`, finds the installed directory. Otherwise
 * makes a directory of this user, closed to changes by anybody else. 0, or -1 with the reason. */
int front_directory(const char *driver, char directory[PATH_MAX], struct error *error);

/* 0 if a program after a change of its user can still reach our library and the driver through the directory, or if
 * programs started here cannot change the user. -1 with the reason. */
int front_check_others(const char *directory, struct error *error);
