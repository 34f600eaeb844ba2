#include "window.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/gpus.h"
#include "driver/pushbuffer/queue.h"
#include "launch/space/epoch.h"
#include "state/kernels/timestamps.h"
#include "time/demand/wakeup.h"

#include <string.h>

/* A launch of unknown length is decided about once at most so many launches are ahead: the length may become known
 * meanwhile. */
#define NEAR 12

/* A length that is too long falls by this part each time, unless the length in the own part is too long as well. */
#define DOUBT_PART 4096

/* No kernel takes longer with more TPCs: so a launch that took longer than in the own part was disturbed. */
#define DISTURBED_PART 8

/* --- one launch --------------------------------------------------------------------------------------------------- */

bool window_is_idle(const struct gate *gate)
{
	return gate->claims.own_is_known && claims_own_in_flight(&gate->claims) == 0 &&
	       atomic_load(&gate_state.entering) == 0;
}

static uint64_t longest_limit(const struct gate *gate)
{
	uint64_t limit_ns = 0;

	for (unsigned int i = 0; i < gate->claims.count; i++)
		limit_ns = max_u64(limit_ns, gate->claims.list[i].limit_ns / gate->claims.list[i].borrowers);
	return limit_ns;
}

void window_sweep(struct gate *gate)
{
	bool matters = atomic_load_explicit(&gate->in_flight.until_idle, memory_order_relaxed) > 0;
	uint64_t longest = in_flight_sweep(&gate->in_flight, matters && window_is_idle(gate));

	if (longest > 0 && gate->claims.count > 0 && longest > longest_limit(gate))
		atomic_fetch_add(&gate_state.overruns, 1);
}

/* Odd, since the call and the walk often ask in turn. */
#define DUE_EACH 5

bool window_is_due(struct gate *gate, const struct length *length, enum length_place place)
{
	return lengths_ns(length, place) == 0 || gate->follows++ % DUE_EACH == 0;
}

const struct gate_tpcs *window_tpcs(struct gate *gate, uint32_t open)
{
	struct gate_tpcs *answer = open != 0 ? &gate->wide : &gate->part;

	if (answer->open != open || !answer->is_known) {
		struct tpcset all = topology_all(gate->gpu->topology), tpcs = claims_tpcs(&gate->claims, open);

		answer->tpcs = tpcset_and(&tpcs, &all);
		answer->count = tpcset_count(&answer->tpcs);
		topology_disable_mask(gate->gpu->topology, &answer->tpcs, answer->disable.words, QMD_MASK_BITS);
		answer->is_known = true;
		answer->open = open;
	}
	return answer;
}

/* A single claim always does. */
bool window_gives_more(struct gate *gate, uint32_t open)
{
	return open != 0 &&
	       (gate->claims.count == 1 || window_tpcs(gate, open)->count > window_tpcs(gate, 0)->count);
}

uint32_t window_allows(struct gate *gate, const struct claims_idle *idle, uint64_t ns)
{
	uint32_t allowed = 0;

	for (unsigned int i = 0; ns != 0 && i < gate->claims.count; i++) {
		const struct claim *it = &gate->claims.list[i];
		uint64_t window_ns = lending_window_ns(idle->ns[i], it->limit_ns, it->borrowers);
		bool fits = idle->ns[i] > 0 && gate->in_flight.wide + ns <= window_ns;

		allowed |= (uint32_t)fits << i;
	}
	return in_flight_has_room(&gate->in_flight) && window_gives_more(gate, allowed) ? allowed : 0;
}

uint64_t window_length(struct gate *gate, struct length *length, uint32_t open)
{
	uint64_t ns = lengths_ns(length, LENGTH_MORE), part_ns = lengths_ns(length, LENGTH_PART);

	if (ns == 0 && part_ns != 0)
		ns = lending_guess_ns(part_ns, window_tpcs(gate, 0)->count, window_tpcs(gate, open)->count);
	return ns;
}

bool window_refuses(const struct gate *gate, struct length *length, uint64_t ns)
{
	uint64_t limit_ns = longest_limit(gate), part_ns = lengths_ns(length, LENGTH_PART);

	if (ns > limit_ns) {
		atomic_store_explicit(&gate_state.is_too_long, true, memory_order_relaxed);
		if (part_ns / 2 <= limit_ns)
			lengths_fall(length, part_ns != 0 && ns > part_ns ? DISTURBED_PART : DOUBT_PART);
	}
	return ns > limit_ns;
}

uint64_t window_follow(struct gate *gate, const struct length *length, struct launch_end end)
{
	return in_flight_add(&gate->in_flight, 0, lengths_ns(length, LENGTH_PART), end);
}

static void count_lent(struct gate *gate, uint32_t open, int64_t ns)
{
	for (unsigned int i = 0; open >> i != 0; i++)
		gate->lent_ns[i] += open >> i & 1 ? ns : 0;
}

uint64_t window_add(struct gate *gate, uint32_t open, uint64_t ns, struct launch_end end)
{
	uint64_t ticket = in_flight_add(&gate->in_flight, open, ns, end);

	if (ticket != 0) {
		atomic_store_explicit(&gate_state.has_more, true, memory_order_relaxed);
		if (open & ~gate->opened)
			segment_count_opening(time_news.segment);
		gate->opened |= open;
		count_lent(gate, open, (int64_t)ns);
	}
	return ticket;
}

/* For watchers: a launch changes between the own part, for 0, and the TPCs of the claims `open`. */
static void tell_tpcs(struct gate *gate, struct launch_end end, uint32_t open)
{
	if (segment_is_watched(time_news.segment))
		timestamps_set_tpcs(end.at, end.number, window_tpcs(gate, open)->count);
}

/* Of a launch that is the next to start. */
static uint32_t room_for_next(struct gate *gate, struct length *length, uint64_t *ns)
{
	struct claims_idle idle;

	window_sweep(gate);
	window_look(gate, &idle);
	*ns = window_length(gate, length, idle.open);
	uint32_t open = window_allows(gate, &idle, *ns);

	if (open == 0 && *ns != 0)
		window_refuses(gate, length, *ns);
	return open;
}

uint64_t window_admit(struct gate *gate, struct length *length, uint32_t *open)
{
	uint64_t ns;

	*open = room_for_next(gate, length, &ns);
	return *open != 0 ? window_add(gate, *open, ns, in_flight_called) : 0;
}

uint64_t window_widen(struct gate *gate, const struct launch *launch, const struct submission *submission,
                      struct length *length, struct launch_end end)
{
	uint64_t ns, ticket = 0;
	uint32_t open = room_for_next(gate, length, &ns);

	if (open != 0 && queue_widen(launch, submission, &window_tpcs(gate, open)->disable)) {
		ticket = window_add(gate, open, ns, end);
		tell_tpcs(gate, end, open);
	}
	return ticket;
}

/* --- the queue ---------------------------------------------------------------------------------------------------- */

_Static_assert(LENGTHS <= 1 << 13 && GPUS_MAX <= 1 << 8, "the cookie has room for both");

static union window_cookie cookie_of(uint64_t word)
{
	return (union window_cookie){.word = word};
}

struct move {
	struct gate *gate;
	struct claims_idle idle;
	struct launch_end newest;
	bool waits;               /* launches wait that may still be changed */
	int called_back;          /* launches that count in the window still */
	uint64_t ticket;          /* of the last such launch */
};

/* Whether the GPU has not fetched the launch. */
static bool can_be_changed(const struct move *move, const struct queued *launch)
{
	bool is_newest = launch->end.number == move->newest.number && launch->end.at == move->newest.at;

	return launch->ahead >= QUEUE_FETCHED || is_newest;
}

/* Since an earlier walk. */
static bool is_wide(const struct queued *launch)
{
	return memcmp(&launch->disable, &launch->noted, sizeof launch->noted) != 0;
}

/* The own part of the launch, and the TPCs of the claims `open`. */
static void widen(struct gate *gate, const struct queued *launch, uint32_t open, struct qmd_mask *disable)
{
	const struct gate_tpcs *wide = window_tpcs(gate, open);

	for (unsigned int i = 0; i < sizeof disable->words / sizeof disable->words[0]; i++)
		disable->words[i] = launch->noted.words[i] & wide->disable.words[i];
}

/* The launch stays in the own part. */
static void leave(struct gate *gate, const struct queued *launch)
{
	struct length *length = window_length_of(launch->cookie);

	if (window_is_due(gate, length, LENGTH_PART))
		in_flight_learn(&gate->in_flight, window_follow(gate, length, launch->end), length, launch->front, 0);
}

static enum queue_answer decide(struct move *move, const struct queued *launch, struct qmd_mask *disable)
{
	struct gate *gate = move->gate;
	struct length *length = window_length_of(launch->cookie);
	uint64_t ns = window_length(gate, length, move->idle.open);
	uint32_t open = window_allows(gate, &move->idle, ns);
	enum queue_answer answer = QUEUE_STOP;

	if (open != 0) {
		uint64_t ticket = window_add(gate, open, ns, launch->end);

		widen(gate, launch, open, disable);
		tell_tpcs(gate, launch->end, open);
		if (window_is_due(gate, length, LENGTH_MORE))
			in_flight_learn(&gate->in_flight, ticket, length, launch->front, 0);
		answer = QUEUE_CHANGE;
	} else if (ns == 0 ? launch->ahead <= NEAR : window_refuses(gate, length, ns)) {
		leave(gate, launch);
		answer = QUEUE_LEAVE;
	}
	return answer;
}

/* On a different GPU. */
static bool is_elsewhere(const struct move *move, const struct queued *launch)
{
	return launch->cookie != 0 && cookie_of(launch->cookie).gpu != move->gate->gpu->number;
}

/* A launch behind other work than launches may wait for any time. */
static enum queue_answer visit(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	struct move *move = data;
	union window_cookie cookie = {.word = launch->cookie}, now = {.edits = epoch_of_edits()};
	bool can_be_wide = !cookie.stays && cookie.edits == now.edits;
	bool is_narrow = launch->cookie != 0 && !launch->keeps_mask && !is_wide(launch);
	enum queue_answer answer = QUEUE_LEAVE;

	if (is_elsewhere(move, launch) || cookie_of(launch->front_cookie).waits) {
		answer = QUEUE_STOP;
	} else if (is_narrow && !can_be_changed(move, launch)) {
		leave(move->gate, launch);
	} else if (is_narrow && can_be_wide) {
		move->waits = true;
		answer = move->idle.open != 0 ? decide(move, launch, disable) : QUEUE_STOP;
	}
	return answer;
}

/* --- calling back ------------------------------------------------------------------------------------------------- */

static enum queue_answer make_narrow(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	struct move *move = data;
	bool stops = is_elsewhere(move, launch);
	enum queue_answer answer = stops || launch->is_behind_changes ? QUEUE_STOP : QUEUE_LEAVE;

	if (!stops && launch->cookie != 0 && !launch->keeps_mask && is_wide(launch) && can_be_changed(move, launch)) {
		*disable = launch->noted;
		tell_tpcs(move->gate, launch->end, 0);
		answer = QUEUE_CHANGE;
	}
	return answer;
}

/* The GPU had not fetched the launch when the narrow mask was written, if the GPU has not by now. One launch more than
 * the GPU has fetched: the end of a launch is seen a little after the next fetch. */
static bool is_surely_narrow(const struct queued *launch)
{
	return launch->was_changed && !is_wide(launch) && launch->ahead > QUEUE_FETCHED && !launch->is_behind_foreign;
}

static enum queue_answer forget(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	struct move *move = data;
	const struct flying *was = NULL;

	(void)disable;
	if (move->called_back > 0 && is_surely_narrow(launch))
		was = in_flight_forget(&move->gate->in_flight, launch->end, &move->ticket);
	if (was) {
		count_lent(move->gate, was->open, -(int64_t)was->ns);
		move->called_back--;
	}
	return move->called_back > 0 && !launch->is_behind_changes ? QUEUE_LEAVE : QUEUE_STOP;
}

/* False while a second thread walks. */
static bool leave_claims(struct gate *gate)
{
	struct move move = {.gate = gate};

	move.called_back = queue_walk(true, make_narrow, &move);
	atomic_thread_fence(memory_order_seq_cst);
	if (move.called_back > 0)
		queue_walk(true, forget, &move);
	in_flight_disturb(&gate->in_flight);
	return move.called_back >= 0;
}

bool window_begin_anew(struct gate *gate)
{
	bool begins = leave_claims(gate) || gate->opened == 0;

	if (begins) {
		gate->opened = 0;
		gate->part.is_known = gate->wide.is_known = false;
	}
	return begins;
}

void window_tell(const struct gate *gate, unsigned int claim, struct segment_event event)
{
	event.pci = gate->gpu->pci;
	event.other = gate->claims.list[claim].lender;
	segment_note(time_news.segment, &event);
}

/* Some claims with wide launches came back: waiting launches leave the TPCs of claims, or do at the next look, which
 * the next launch of a claim asks for. Fetched launches keep the claims waiting. */
static void call_back(struct gate *gate, uint32_t back)
{
	uint32_t left = leave_claims(gate) ? back : 0;
	uint64_t now = process_clock_ns(), left_ns = gate->in_flight.wide;

	gate->opened &= ~left;
	if (left == 0)
		segment_count_opening(time_news.segment);
	for (unsigned int i = 0; left >> i != 0 && left_ns > 0; i++) {
		if (left >> i & 1)
			window_tell(gate, i, (struct segment_event){SEGMENT_KEEPS_WAITING, .begin_ns = now,
			                                            .end_ns = now + left_ns});
	}
}

void window_look(struct gate *gate, struct claims_idle *idle)
{
	claims_look(&gate->claims, idle);
	if (gate->opened & ~idle->open)
		call_back(gate, gate->opened & ~idle->open);
}

bool window_move(struct gate *gate, struct launch_end newest)
{
	struct move move = {.gate = gate, .newest = newest};

	window_sweep(gate);
	window_look(gate, &move.idle);
	queue_walk(false, visit, &move);
	return move.waits;
}
