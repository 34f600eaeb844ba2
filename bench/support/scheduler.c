#include "scheduler.h"

#include "bench.h"

#include <stdlib.h>

#define NONE UINT32_MAX
#define SIZES (CLUSTER_TPCS + CLUSTER_GPUS) /* 1 to 66 TPCs, 2 to 8 GPUs */

/* The jobs of one size that wait, the oldest first. */
struct line {
	struct need need;
	uint32_t first, last;
	uint32_t unreserved; /* the first without a reservation, or NONE */
	unsigned int waiting, reservations;
};

struct reservation {
	struct line *line;
	struct place place;
	double time;
};

struct end {
	double time;
	uint32_t job;
};

struct scheduler {
	struct job *jobs;
	struct cluster *cluster;
	struct line lines[SIZES];
	struct reservation reservations[SCHEDULER_RESERVATIONS]; /* the cluster knows them as 1 and up */
	unsigned int reserved, waiting;
	struct end *ends; /* a heap: the next one is in front */
	size_t running, room;
	double now;
};

/* --- the ends of running jobs ---------------------------------------------------------------------------------------- */

static void push_end(struct scheduler *scheduler, double time, uint32_t job)
{
	size_t at = scheduler->running++;

	if (scheduler->running > scheduler->room) {
		scheduler->room = scheduler->room * 2 + 1024;
		scheduler->ends = realloc(scheduler->ends, scheduler->room * sizeof *scheduler->ends);
		if (!scheduler->ends)
			bench_fail("out of memory");
	}
	for (; at > 0 && scheduler->ends[(at - 1) / 2].time > time; at = (at - 1) / 2)
		scheduler->ends[at] = scheduler->ends[(at - 1) / 2];
	scheduler->ends[at] = (struct end){time, job};
}

static struct end pop_end(struct scheduler *scheduler)
{
	struct end *ends = scheduler->ends;
	struct end first = ends[0], last = ends[--scheduler->running];
	size_t at = 0, below;

	for (; (below = 2 * at + 1) < scheduler->running; at = below) {
		if (below + 1 < scheduler->running && ends[below + 1].time < ends[below].time)
			below++;
		if (ends[below].time >= last.time)
			break;
		ends[at] = ends[below];
	}
	ends[at] = last;
	return first;
}

/* --- lines ----------------------------------------------------------------------------------------------------------- */

static struct line *line_of(struct scheduler *scheduler, struct need need)
{
	struct line *line = &scheduler->lines[need.gpus > 1 ? CLUSTER_TPCS + need.gpus - 1 : need.tpcs - 1];

	line->need = need;
	return line;
}

static void queue_up(struct scheduler *scheduler, struct line *line, uint32_t job)
{
	scheduler->jobs[job].next = NONE;
	if (line->waiting++ > 0)
		scheduler->jobs[line->last].next = job;
	else
		line->first = job;
	line->last = job;
	if (line->reservations == line->waiting - 1)
		line->unreserved = job;
	scheduler->waiting++;
}

/* The oldest leaves the line; the next one has its reservation, if it has one. */
static uint32_t call_up(struct scheduler *scheduler, struct line *line)
{
	uint32_t job = line->first;

	line->first = scheduler->jobs[job].next;
	line->waiting--;
	if (line->unreserved != NONE)
		line->unreserved = scheduler->jobs[line->unreserved].next;
	scheduler->waiting--;
	return job;
}

static void start(struct scheduler *scheduler, uint32_t number, struct place place)
{
	struct job *job = &scheduler->jobs[number];

	job->start = scheduler->now;
	job->place = place;
	cluster_take(scheduler->cluster, job->need, place, scheduler->now + job->limit);
	push_end(scheduler, scheduler->now + job->duration, number);
}

/* --- reservations ---------------------------------------------------------------------------------------------------- */

static void remove_reservation(struct scheduler *scheduler, unsigned int number)
{
	struct reservation *reservation = &scheduler->reservations[number];
	const struct reservation *last = &scheduler->reservations[--scheduler->reserved];

	cluster_keep(scheduler->cluster, reservation->place, 0);
	reservation->line->reservations--;
	if (reservation != last) {
		*reservation = *last;
		cluster_keep(scheduler->cluster, reservation->place, number + 1);
	}
}

/* The line whose job without a reservation has waited longest; NULL: there is none. */
static struct line *next_to_reserve(struct scheduler *scheduler)
{
	struct line *found = NULL;

	for (struct line *line = scheduler->lines; line < scheduler->lines + SIZES; line++)
		if (line->waiting > line->reservations &&
		    (!found || scheduler->jobs[line->unreserved].arrival < scheduler->jobs[found->unreserved].arrival))
			found = line;
	return found;
}

static void reserve(struct scheduler *scheduler)
{
	while (scheduler->reserved < SCHEDULER_RESERVATIONS && scheduler->reserved < scheduler->waiting) {
		struct reservation *reservation = &scheduler->reservations[scheduler->reserved];

		reservation->line = next_to_reserve(scheduler);
		if (!reservation->line || !cluster_find_soonest(scheduler->cluster, reservation->line->need.gpus,
		                                                &reservation->place, &reservation->time))
			return;
		cluster_keep(scheduler->cluster, reservation->place, ++scheduler->reserved);
		reservation->line->reservations++;
		reservation->line->unreserved = scheduler->jobs[reservation->line->unreserved].next;
	}
}

/* Where a job has room in a reservation's place, and will have ended before its time. */
static bool fits_before(const struct scheduler *scheduler, const struct reservation *reservation, const struct job *job,
                        struct place *place)
{
	unsigned int missing = job->need.gpus;

	if (reservation->time < scheduler->now + job->limit)
		return false;
	*place = (struct place){.node = reservation->place.node};
	for (unsigned int left = reservation->place.gpus; left > 0 && missing > 0; left &= left - 1) {
		struct place first = {place->node, left & -left};

		if (cluster_has_room(scheduler->cluster, job->need, first)) {
			place->gpus |= first.gpus;
			missing--;
		}
	}
	return missing == 0;
}

static bool find_hole(const struct scheduler *scheduler, const struct job *job, struct place *place)
{
	for (unsigned int i = 0; i < scheduler->reserved; i++)
		if (fits_before(scheduler, &scheduler->reservations[i], job, place))
			return true;
	return false;
}

static bool find_hole_on(const struct scheduler *scheduler, const struct job *job, unsigned int node, struct place *place)
{
	for (unsigned int i = 0; i < CLUSTER_GPUS; i++) {
		unsigned int owner = cluster_owner(scheduler->cluster, node, i);

		if (owner > 0 && fits_before(scheduler, &scheduler->reservations[owner - 1], job, place))
			return true;
	}
	return false;
}

/* --- a node has room ------------------------------------------------------------------------------------------------- */

static void fill(struct scheduler *scheduler, unsigned int node);

/* The one that began elsewhere needs its reservation no more. */
static void drop_superfluous(struct scheduler *scheduler, struct line *line)
{
	unsigned int number = scheduler->reserved;

	if (line->reservations <= line->waiting)
		return;
	while (scheduler->reservations[--number].line != line)
		;
	unsigned int node = scheduler->reservations[number].place.node;

	remove_reservation(scheduler, number);
	fill(scheduler, node);
}

static bool start_reserved(struct scheduler *scheduler, unsigned int node)
{
	for (unsigned int i = 0; i < CLUSTER_GPUS; i++) {
		unsigned int owner = cluster_owner(scheduler->cluster, node, i);
		struct reservation reservation = {.line = NULL};

		if (owner > 0)
			reservation = scheduler->reservations[owner - 1];
		if (reservation.line && cluster_has_room(scheduler->cluster, reservation.line->need, reservation.place)) {
			uint32_t unreserved = reservation.line->unreserved;

			remove_reservation(scheduler, owner - 1);
			start(scheduler, call_up(scheduler, reservation.line), reservation.place);
			reservation.line->unreserved = unreserved;
			return true;
		}
	}
	return false;
}

static bool start_oldest(struct scheduler *scheduler, unsigned int node)
{
	struct line *oldest = NULL;
	struct place place, found;

	for (struct line *line = scheduler->lines; line < scheduler->lines + SIZES; line++) {
		const struct job *job = line->waiting > 0 ? &scheduler->jobs[line->first] : NULL;

		if (job && (!oldest || job->arrival < scheduler->jobs[oldest->first].arrival) &&
		    (cluster_find_on(scheduler->cluster, job->need, node, &found) || find_hole_on(scheduler, job, node, &found))) {
			oldest = line;
			place = found;
		}
	}
	if (oldest) {
		start(scheduler, call_up(scheduler, oldest), place);
		drop_superfluous(scheduler, oldest);
	}
	return oldest;
}

static void fill(struct scheduler *scheduler, unsigned int node)
{
	while (scheduler->waiting > 0 && (start_reserved(scheduler, node) || start_oldest(scheduler, node)))
		;
}

/* --- events ---------------------------------------------------------------------------------------------------------- */

static void arrive(struct scheduler *scheduler, uint32_t number)
{
	const struct job *job = &scheduler->jobs[number];
	struct line *line = line_of(scheduler, job->need);
	struct place place;

	scheduler->now = job->arrival;
	if ((line->waiting == 0 && cluster_find(scheduler->cluster, job->need, &place)) ||
	    find_hole(scheduler, job, &place))
		start(scheduler, number, place);
	else
		queue_up(scheduler, line, number);
	reserve(scheduler);
}

static void finish(struct scheduler *scheduler)
{
	struct end end = pop_end(scheduler);
	const struct job *job = &scheduler->jobs[end.job];

	scheduler->now = end.time;
	cluster_give(scheduler->cluster, job->need, job->place, job->start + job->limit);
	fill(scheduler, job->place.node);
	reserve(scheduler);
}

void scheduler_run(struct job *jobs, size_t count, unsigned int nodes)
{
	struct scheduler scheduler = {.jobs = jobs, .cluster = cluster_open(nodes)};
	uint32_t next = 0;

	for (unsigned int i = 0; i < SIZES; i++)
		scheduler.lines[i].unreserved = NONE;
	while (next < count || scheduler.running > 0) {
		if (scheduler.running == 0 || (next < count && jobs[next].arrival < scheduler.ends[0].time))
			arrive(&scheduler, next++);
		else
			finish(&scheduler);
	}
	if (scheduler.waiting > 0)
		bench_fail("%u jobs never begin", scheduler.waiting);
	free(scheduler.ends);
	cluster_close(scheduler.cluster);
}
