/* The result of a look, for the rules: the program, and programs on one GPU with a claim to time; and the answer. Times
 * are ns of process_clock_ns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rules_view {
	bool wants;                /* work is in flight, or unknown */
	bool pauses;               /* now and then */
	bool is_present;           /* work is in flight, or the pause is short */
	unsigned int gpus_wanting; /* GPUs with work in flight */
};

struct suspension {
	bool is_on;
	uint64_t since; /* the GPU let go of the program or took the program up again */
};

struct rivals {
	bool any;
	bool has_lower;               /* a program of a lower priority is there */
	bool has_higher;              /* a program of a higher priority is there */
	unsigned int higher_wanting;  /* higher programs with work in flight, not suspended */
	uint64_t higher_idle_ns;      /* all higher programs have been idle for this time, at least */
	unsigned int lower_wanting;   /* foreign groups of no higher priority with work in flight */
	unsigned int equals_present;  /* of the same priority, not suspended: at work, or in a short pause */
	unsigned int equals_wanting;  /* of the same priority with work, also when suspended */
	bool equals_pause;            /* a present equal pauses now and then, by its own word: alike for all */
	bool group_is_present;        /* a member of the same group is present */
	uint64_t least_served_ns;     /* the least, by weight, of present equals of foreign groups; UINT64_MAX: none */
};

/* Of a rule, or of all rules (rules.h). */
struct rules_verdict {
	bool suspends;
	uint64_t slice_us; /* how long to run in one go beside peers with work; 0: the program's own slice */
	uint64_t until;    /* when to ask again at the latest; UINT64_MAX: at news */
	uint64_t soonest;  /* of all rules: no suspension before */
};

static const struct rivals rivals_none = {.least_served_ns = UINT64_MAX, .higher_idle_ns = UINT64_MAX};
