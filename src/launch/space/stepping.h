/*
 * Stepping aside, under MPS: while a program of a higher priority that shares TPCs with this one wants to run, or did a while
 * ago, launches get the TPCs of their own partition that the higher one does not have. Where there are none, they keep the
 * partition, and are held back instead (time/gate/turnstile.h).
 *
 * A change of the TPCs raises the epoch; so graphs follow as they follow an edit, which is dear: each TPC that launches leave to
 * others is kept for STEPPING_NS after a higher one last wanted to run there, unless nothing would remain then.
 *
 * What is left is as a smaller partition to the program's own masks and green contexts; one that lies in the partition, but has
 * none of what is left, is overruled for as long, and not counted. Launches whose blocks must run at once, and that the partition
 * holds, but not what is left of it, get what they would have got otherwise (residency.h, stepping_fit.h). A node of a graph
 * that cannot be uploaded again keeps what it has, which is inside the partition, and is not counted.
 *
 * stepping_see, stepping_end: our thread. stepping_decide: a decider (HACKING.md), in the launch path.
 */
#ifndef NVTASKSET_LAUNCH_SPACE_STEPPING_H
#define NVTASKSET_LAUNCH_SPACE_STEPPING_H

#include "decision.h"
#include "driver/hook.h"
#include "time/demand/peers.h"

#include <stdbool.h>
#include <stdint.h>

#define STEPPING_NS UINT64_C(100000000)

struct gpu;

struct stepping {
	bool is_aside;      /* launches step aside, so that nobody has to be waited for */
	struct tpcset rest; /* of the process's TPCs, those that launches get now */
	uint64_t next;      /* when to say again what others want, at the latest, if nothing changes; UINT64_MAX: no need */
};

/* What others want on one GPU is seen now. */
struct stepping stepping_see(const struct peers_on_gpu *neighbours, uint64_t now);

/* No launch steps aside any more. May be repeated. */
void stepping_end(void);

/* After the partition, and before masks of the program's own. Costs one comparison where nobody steps aside. */
void stepping_decide(const struct launch *launch, struct decision *decision);

/* The TPCs of a GPU that launches leave to others now; none where nobody steps aside. From any thread. */
struct tpcset stepping_left(const struct gpu *gpu);

/* In the child of a fork. */
void stepping_after_fork(void);

#endif
