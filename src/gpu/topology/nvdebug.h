/*
 * What Joshua Bakita's kernel module nvdebug tells under /proc/gpu0, where it is loaded: the GPC of each TPC, without
 * the driver's ioctls.
 *
 * Sources: the names of the files are published with the module, and show registers in hexadecimal. What the registers
 * hold is published in NVIDIA's open-gpu-doc: NUM_GPCS and NUM_TPC_PER_GPC in manuals/turing/tu104/dev_top.ref.txt,
 * CWD_GPC_TPC_ID in manuals/ampere/ga100/pri_cwd.ref.txt: for each TPC, four to a register and the first in the lowest
 * bits, four bits of its number in its GPC and four of the GPC, which count what is there as the driver does. In the
 * masks of GPCs and TPCs a set bit means fused off. None of this was measured by us, and Hopper's registers are not
 * published: so everything that can be checked against something else is, and a contradiction is refused.
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

/* Reads /proc/gpu0. -1 where that does not work: with an empty reason where nvdebug is not loaded, else with what is
 * wrong. Where it shows several GPUs, nothing published says which is which, and none is believed. `root` is "" but in
 * tests: it goes before /proc. */
int nvdebug_read(const char *root, struct nvdebug *nvdebug, struct error *error);

/* The whole topology of the machine's one GPU, before Hopper: there a TPC's mask bit is its number, and the PCI device
 * id tells the compute capability. -1 with the reason otherwise. */
int nvdebug_describe(const struct nvdebug *nvdebug, const struct installed_gpu *installed, struct topology *gpu,
                     struct error *error);

/* Adds the chip's GPCs, and before Hopper its limits, to a topology that was measured. -1 with the reason, and `gpu`
 * as it was, where the two contradict each other. */
int nvdebug_add_gpcs(const struct nvdebug *nvdebug, struct topology *gpu, struct error *error);

#endif
