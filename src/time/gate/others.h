/*
 * Those who have a higher claim to TPCs that this process may use. Our thread makes a view of them from the board
 * (time/demand/peers.h); threads of the program read it at the entry of launches, and in it what the others have in
 * flight, where it stands. Nothing but `owners` is changed once it is published.
 */
#ifndef NVTASKSET_TIME_GATE_OTHERS_H
#define NVTASKSET_TIME_GATE_OTHERS_H

#include "state/kernels/counts.h"
#include "time/demand/peers.h"
#include "time/rules/lending.h"

#include <stdbool.h>
#include <stdint.h>

#define OTHERS_MAX 16   /* what more of them have is not used */
#define OTHERS_PLACES 4 /* contexts of each on this GPU; who has more always wants */

struct others_on_gpu {
	uint32_t generation; /* of the view */
	unsigned int count;
	struct other {
		pid_t pid;
		unsigned int place_count;
		const struct counts_place *places[OTHERS_PLACES];
		const _Atomic uint64_t *number; /* counts_view_number: as it was then; */
		uint64_t number_then;           /* with another one it may have more places */
		struct tpcset gives; /* TPCs that this process may use while it is idle, */
		struct tpcset takes; /* and those that it may not while it is not */
		uint64_t hold_ns;    /* it must have been idle for so long */
		bool is_unknown;     /* when it is idle; then it is taken to be, or not: */
		bool is_open;
	} list[OTHERS_MAX];
	const struct counts_place *own[OTHERS_PLACES];
	unsigned int own_count;
	bool own_is_unknown;      /* what this process has in flight */
	bool may_open;            /* it is known of one of them when it is idle */
	bool has_part, is_narrow; /* some of `all_own`; not all of it: */
	struct tpcset all_own;    /* TPCs of this process, */
	struct tpcset part;       /* and those of them that nobody has a higher claim to */
	uint64_t limit_ns, batch_ns;
	struct lending_owner owners[OTHERS_MAX]; /* of each in the list */
};

/* What this process may do. */
struct others_rules {
	uint32_t priority;
	bool borrows;
	struct tpcset borrow;
	bool is_known; /* when its own kernels end, on this GPU */
};

/* Makes the view that comes after `before`: whether anything is new. For our thread, after peers_look. */
bool others_see(struct others_on_gpu *made, const struct others_on_gpu *before, struct pci_address pci,
                const struct others_rules *rules);

/* For a launch that takes so long there; 0: not known. */
struct others_now {
	uint32_t open;        /* a bit for each of them whose TPCs are; */
	uint64_t opens_in_ns; /* those of another one will be in so long; LENDING_NEVER: not soon */
	uint64_t idle_ns;     /* one that is open early has been idle for so long; LENDING_NEVER: there is none */
};
struct others_now others_look(struct others_on_gpu *others, uint64_t length_ns);

/* What this process has in flight, and how many of its kernels have ended. */
uint64_t others_own_in_flight(const struct others_on_gpu *others);
uint64_t others_own_ended(const struct others_on_gpu *others);

/* Its part, and the TPCs that are open by these bits. */
struct tpcset others_tpcs(const struct others_on_gpu *others, uint32_t open);

/* Adds the words that rise with others' launches, and the process's own but for this one; false if one has launched since. */
bool others_words(const struct others_on_gpu *others, const _Atomic uint64_t *but, struct counts_words *words);

#endif
