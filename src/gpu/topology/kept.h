/*
 * The kernel driver's last answer about the GPUs, kept in this user's cache: to ask takes time for each GPU
 * (hardware.md, "Topology").
 *
 * An answer holds until the machine boots again, for the same version of the driver and the same GPUs. For each GPU
 * that the kernel module lists and this process may use, PCI address and UUID must be the same. No GPU has instances of
 * MIG.
 */
#pragma once

#include "topology.h"

/* Loads as `ask` does. If a kept answer holds, `ask` is not called; an answer of `ask` is kept, if possible. Returns
 * the result of `ask`, or 0. `root`, the root of the file system, is "" except in tests. */
int kept_load(const char *root, int (*ask)(struct topology_list *list, struct error *error), struct topology_list *list,
              struct error *error);
