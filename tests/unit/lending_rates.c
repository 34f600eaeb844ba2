/*
 * What lending brings: a decoder that pauses and a neighbour that borrows its half of the GPU, by the clock of a model. It has the
 * rules and the measured lengths, and does for them what the gate does (time/gate/passing.c).
 *
 * link: -Wl,--wrap=process_clock_ns
 */
#include "../cases.h"

#include "base/clock.h"
#include "launch/account/lengths.h"
#include "time/rules/flight.h"
#include "time/rules/lending.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define TICK (5 * US)
#define LOOK (20 * US)    /* between two looks of one that waits, */
#define LATENCY (10 * US) /* and from a launch until it runs */
#define STEP MS
#define PAUSE (300 * US)
#define LIMIT (2 * MS)
#define TURN (250 * MS)
#define SECONDS 20
#define QUEUE 2 /* launches that the neighbour keeps in flight */

static uint64_t now;

uint64_t __wrap_process_clock_ns(void);
uint64_t __wrap_process_clock_ns(void)
{
	return now;
}

static struct decoder {
	uint64_t busy, idle, ends_burst, next;   /* the moment of its next step */
	uint64_t launches, left, began, worst_first; /* the current step: of its work; 0: none */
	bool is_first;
	struct lending_owner seen; /* by the neighbour */
} decoder;

static struct neighbour {
	uint64_t ns[2];        /* a launch takes so long, by enum length_place */
	struct flying {
		enum length_place place;
		uint64_t left, from;
	} queue[QUEUE];        /* the first one runs */
	unsigned int count;
	uint64_t waits_since, next_look, unseen, ended;
	struct flight flight;
	struct measure measure;
} neighbour;

static bool is_borrowing(void)
{
	return neighbour.count > 0 && neighbour.queue[0].place == LENGTH_MORE && now >= neighbour.queue[0].from;
}

/* --- the GPU ---------------------------------------------------------------------------------------------------------- */

/* Where both run, each has half of the time. */
static void run_decoder(void)
{
	if (decoder.left > 0)
		decoder.left -= min_u64(decoder.left, is_borrowing() ? TICK / 2 : TICK);
	else if (now >= decoder.next) {
		decoder.launches++;
		decoder.left = STEP;
		decoder.began = now;
		return;
	}
	if (decoder.left > 0 || decoder.began == 0)
		return;
	if (decoder.is_first)
		decoder.worst_first = max_u64(decoder.worst_first, now - decoder.began);
	decoder.is_first = now >= decoder.ends_burst && decoder.idle > 0;
	decoder.next = now + PAUSE;
	if (decoder.is_first) {
		decoder.next = now + decoder.idle;
		decoder.ends_burst = decoder.next + decoder.busy;
	}
	decoder.began = 0;
}

static void run_neighbour(void)
{
	struct flying *first = neighbour.queue;

	if (neighbour.count == 0 || now < first->from)
		return;
	first->left -= min_u64(first->left, is_borrowing() && decoder.left > 0 ? TICK * 3 / 4 : TICK);
	if (first->left == 0) {
		memmove(first, first + 1, sizeof *first * --neighbour.count);
		neighbour.ended++;
	}
}

/* --- the gate --------------------------------------------------------------------------------------------------------- */

static void go(struct length *length, const struct lending_view *view, const struct flight_seen *seen, enum length_place place)
{
	uint64_t longest = lengths_longest(length, place), left = 0;

	for (unsigned int i = 0; i < neighbour.count; i++)
		left += neighbour.queue[i].left;
	/* The first step waits for one launch, and no other one goes there before it has ended. */
	if (place == LENGTH_MORE) {
		assert_each(decoder.left, 0);
		assert_true(neighbour.count == 0 || left + longest <= view->batch_ns);
	}
	flight_add(&neighbour.flight, seen, longest != 0 ? longest : FLIGHT_NEVER, 7);
	const struct measured launch = {length, place, 7, view->is_new, place == LENGTH_MORE};

	if (neighbour.count == 0)
		measure_begin(&neighbour.measure, &launch, neighbour.ended);
	neighbour.queue[neighbour.count++] = (struct flying){place, neighbour.ns[place], now + LATENCY};
	neighbour.waits_since = 0;
}

static uint64_t opens_in(void)
{
	return lending_opens_in(&decoder.seen, decoder.launches, decoder.left > 0, now, LIMIT);
}

static void look(void)
{
	struct length *length = lengths_find(&(struct launched_work){.what = &neighbour, .grid = {1, 1, 1}});
	uint64_t left = opens_in();
	uint64_t waited = neighbour.waits_since != 0 ? now - neighbour.waits_since : 0;
	const struct flight_seen seen = {
		.word = atomic_load(&neighbour.flight.word), .ended = neighbour.ended, .in_flight = neighbour.count};
	uint64_t in_flight_ns = flight_look(&seen);
	struct lending_view view = {
		.part_ns = lengths_longest(length, LENGTH_PART),
		.is_patient = waited < LIMIT + min_u64(flight_longest(&neighbour.flight), LENDING_EPISODE_NS / 2),
		.has_part = true,
		.may_open = true,
		.has_more = left == 0,
		.opens_in_ns = left == 0 ? LENDING_NEVER : left,
		.in_flight = neighbour.count,
		.is_behind = true,
		.in_flight_ns = in_flight_ns,
		.limit_ns = LIMIT,
		.batch_ns = LIMIT / LENDING_BATCH_PART,
	};

	view.length_ns = lengths_of(length, 33, left == 0 ? 66 : 33, LIMIT, &view.is_new);
	view.is_new = view.is_new && (view.has_more || view.part_ns == 0);
	enum lending_verdict verdict = neighbour.unseen > 0 ? LENDING_PART : lending_ask(&view);

	if (neighbour.unseen > 0)
		neighbour.unseen--;
	else if (verdict == LENDING_PART && left == LENDING_NEVER)
		neighbour.unseen = lending_unseen(&view);
	if (verdict == LENDING_PART || verdict == LENDING_MORE)
		go(length, &view, &seen, verdict == LENDING_MORE ? LENGTH_MORE : LENGTH_PART);
	else if (neighbour.waits_since == 0)
		neighbour.waits_since = now;
}

/* Returns the neighbour's rate, in thousandths of what fixed partitions give in the mean: its half while the decoder is busy, and
 * otherwise all. */
static uint64_t share_of_mean(uint64_t busy_ms, uint64_t idle_ms, uint64_t part_ns, uint64_t more_ns)
{
	decoder = (struct decoder){.busy = busy_ms * MS, .idle = idle_ms * MS, .next = MS};
	neighbour = (struct neighbour){.ns = {part_ns, more_ns}};
	lengths_forget();
	for (now = MS; now < SECONDS * 1000 * MS; now += TICK) {
		if (now % TURN == 0)
			atomic_fetch_add(&lengths_turn, 1);
		run_decoder();
		run_neighbour();
		if (now % LOOK == 0)
			measure_look(&neighbour.measure, neighbour.ended, neighbour.count, opens_in() == 0);
		while (neighbour.count < QUEUE && (neighbour.waits_since == 0 || now % LOOK == 0)) {
			uint64_t before = neighbour.count;

			look();
			if (neighbour.count == before)
				break;
		}
	}
	double fixed = (double)busy_ms / (double)part_ns + (double)idle_ms / (double)more_ns;
	double share = (double)neighbour.ended / (fixed * SECONDS * 1e9 / (double)(busy_ms + idle_ms));

	print_message("# %4d ms busy, %4d ms idle: %5.1f %% of the mean, first steps up to %.2f ms\n", (int)busy_ms, (int)idle_ms,
	              100 * share, (double)decoder.worst_first / 1e6);
	return (uint64_t)(1000 * share);
}

#define PART (2820 * US)
#define MORE (1650 * US)

TEST(products)
{
	static const struct {
		uint64_t busy, idle, least;
	} rows[] = {{100, 100, 950}, {20, 20, 920}, {500, 500, 960}, {20, 180, 950}, {180, 20, 950}, {100, 0, 980}};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		ROW("%d and %d ms", (int)rows[i].busy, (int)rows[i].idle);
		assert_true(share_of_mean(rows[i].busy, rows[i].idle, PART, MORE) >= rows[i].least);
		assert_true(decoder.worst_first <= STEP + MORE);
	}
}

/* Two of them are in flight. */
TEST(short_ones)
{
	assert_true(share_of_mean(20, 20, 163 * US, 100 * US) >= 920);
	assert_true(decoder.worst_first <= STEP + 200 * US);
}

RUN_TESTS(NULL, NULL)
