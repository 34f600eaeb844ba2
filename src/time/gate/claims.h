/*
 * Programs with a higher claim to TPCs of this process, or to lent TPCs (rules/lending.h). Our thread finds the
 * programs on the board (time/demand/peers.h). The work in flight of each is read in the program's own memory. Under
 * the lock of the gate.
 */
#pragma once

#include "state/kernels/counts.h"
#include "time/demand/peers.h"
#include "time/rules/lending.h"

#define CLAIMS_MAX 16   /* further programs are not followed, and none of their TPCs borrowed */
#define CLAIMS_PLACES 4 /* contexts of a program on the GPU; a program with more always wants */

struct claims {
	unsigned int count;
	struct claim {
		uint64_t lender; /* as in struct segment_loan */
		unsigned int place_count;
		const struct counts_place *places[CLAIMS_PLACES];
		const _Atomic uint64_t *number; /* counts_view_number */
		uint64_t number_then;           /* with a new number the program may have more places */
		const struct pool_view *pooled; /* of a group in the pool, instead of places; NULL: a program */
		struct tpcset gives; /* TPCs for this process while the claim is idle */
		struct tpcset takes; /* no TPCs for this process while the claim wants */
		uint64_t limit_ns;   /* LIMIT, for all borrowers together */
		uint64_t borrowers;  /* with this process */
		bool is_unknown;     /* not known when the claim is idle */
		bool is_open;        /* with is_unknown: the claim is taken to be idle */
	} list[CLAIMS_MAX];
	const struct counts_place *own[CLAIMS_PLACES];
	unsigned int own_count;
	bool own_is_known;        /* the work in flight of this process */
	bool has_part, is_narrow; /* `part` is not empty; `part` is some of `all_own`, and not all */
	struct tpcset all_own;    /* TPCs of this process */
	struct tpcset part;       /* without the TPCs of higher claims */
	struct lending_claim idle[CLAIMS_MAX]; /* of each in the list; not compared */
};

/* The rights of this process. */
struct claims_rules {
	uint32_t priority;
	bool borrows;
	struct tpcset borrow;
	bool is_known; /* the ends of the own kernels on the GPU are known */
};

/* The claims on the board now. For our thread, after peers_look; without the lock. */
void claims_see(struct claims *made, struct pci_address pci, const struct claims_rules *rules);

/* But for `idle`. */
bool claims_are_equal(const struct claims *one, const struct claims *other);

/* Finds the places where this process counts on the GPU; `is_known`: exactly. */
void claims_see_own(struct claims *made, struct pci_address pci, bool is_known);

/* For each claim, the time for which the claim has been idle; 0: the claim wants. Longer times are cut to
 * lending_rest_ns of the limit. */
struct claims_idle {
	uint64_t now;            /* 0: all are at rest, and the clock was not read */
	uint32_t open;           /* a bit for each idle claim */
	uint64_t ns[CLAIMS_MAX];
};
void claims_look(struct claims *claims, struct claims_idle *idle);

/* The number of launches of this process in flight, as far as is known. */
uint64_t claims_own_in_flight(const struct claims *claims);

/* The own part, and the TPCs of the idle claims `open`, without TPCs that a further claim takes. */
struct tpcset claims_tpcs(const struct claims *claims, uint32_t open);
