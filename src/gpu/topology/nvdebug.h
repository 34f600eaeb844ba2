/*
 * Reads the GPC of each TPC from Joshua Bakita's kernel module nvdebug, under /proc/gpu0, without the driver's
 * ioctls.
 *
 * Sources: the names of the files are published with the module, and show registers in hexadecimal. The registers are
 * described in NVIDIA's open-gpu-doc: NUM_GPCS and NUM_TPC_PER_GPC in manuals/turing/tu104/dev_top.ref.txt,
 * CWD_GPC_TPC_ID in manuals/ampere/ga100/pri_cwd.ref.txt. CWD_GPC_TPC_ID has for each TPC, four to a register and the
 * first in the lowest bits, four bits of its number in its GPC and four of the GPC; it counts only present GPCs, like
 * the driver. In the masks of GPCs and TPCs a set bit means fused off. We measured none of this, and Hopper's
 * registers are not published: so all that can be checked against something else is checked, and a contradiction is
 * refused.
 */
#ifndef NVTASKSET_TOPOLOGY_NVDEBUG_H
#define NVTASKSET_TOPOLOGY_NVDEBUG_H

#include "base/error.h"
#include "procfs.h"
#include "topology.h"

#include <stdint.h>

struct nvdebug {
	uint16_t gpc_limit;
	uint16_t tpc_limit;
	uint16_t tpc_count;
	uint8_t gpcs[TPCSET_MAX]; /* of each TPC */
};

/* Reads /proc/gpu0. -1: with an empty reason if nvdebug is not loaded, else with what is wrong. If it shows several
 * GPUs, none is used: nothing published says which is which. `root` is put before /proc; "" except in tests. */
int nvdebug_read(const char *root, struct nvdebug *nvdebug, struct error *error);

/* The whole topology of the machine's one GPU, before Hopper: there a TPC's mask bit is its number, and the compute
 * capability follows from the PCI device id. -1 with the reason otherwise. */
int nvdebug_describe(const struct nvdebug *nvdebug, const struct procfs_gpu *installed, struct topology *gpu,
                     struct error *error);

/* Adds the chip's GPCs, and before Hopper its limits, to a measured topology. If the two contradict each other, -1 with
 * the reason, and `gpu` is unchanged. */
int nvdebug_add_gpcs(const struct nvdebug *nvdebug, struct topology *gpu, struct error *error);

#endif
