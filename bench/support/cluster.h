/*
 * The GPUs of a simulated cluster: what is free, where a job finds room, and what is kept for whom. Time is in seconds.
 *
 * Room is looked for so that as much as possible stays whole: a part of a GPU where the least is left over, and a whole GPU
 * on the node with the fewest idle ones.
 */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_GPUS 8U /* of a node */
#define CLUSTER_TPCS 66U /* of a GPU */

struct cluster;

/* So many TPCs on each of so many GPUs of one node; all of them where there are several. */
struct need {
	unsigned int gpus, tpcs;
};

struct place {
	unsigned int node;
	unsigned int gpus; /* a bit for each */
};

struct cluster *cluster_open(unsigned int nodes);
void cluster_close(struct cluster *cluster);

/* Room for a job, outside of what is kept; on any node, or on this one. */
bool cluster_find(const struct cluster *cluster, struct need need, struct place *place);
bool cluster_find_on(const struct cluster *cluster, struct need need, unsigned int node, struct place *place);

/* Whether a job has room in this place, whoever it is kept for. */
bool cluster_has_room(const struct cluster *cluster, struct need need, struct place place);

/* A job begins there, and will have ended at this time; it ends, with the same time. */
void cluster_take(struct cluster *cluster, struct need need, struct place place, double until);
void cluster_give(struct cluster *cluster, struct need need, struct place place, double until);

/* The GPUs, outside of what is kept, which are idle soonest if all jobs stay as long as they may; and when that is. */
bool cluster_find_soonest(const struct cluster *cluster, unsigned int gpus, struct place *place, double *time);

/* Keeps GPUs for the owner of this number; 0 gives them back. */
void cluster_keep(struct cluster *cluster, struct place place, unsigned int owner);
unsigned int cluster_owner(const struct cluster *cluster, unsigned int node, unsigned int gpu);

#endif
