/*
 * The law of lending (src/time/rules/lending.h) on a virtual clock. The gate and the queue are real. The GPU and the
 * lenders are a model, and the model says when the program's host and our thread run. A launch takes its time alone,
 * whatever runs beside the launch. The GPU has fetched a launch with fewer than two launches ahead.
 *
 * A lender that comes back waits for the rest of wide launches in the lender's TPCs. So each test looks at the rest all
 * the time.
 *
 * link: -Wl,--wrap=process_clock_ns,--wrap=timestamps_set_tpcs
 */
#include "descriptor.h"
#include "noted.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/pushbuffer/queue.h"
#include "launch/space/epoch.h"
#include "state/segment/layout.h"
#include "state/segment/owner.h"
#include "time/gate/gate.h"
#include "time/gate/gates.h"
#include "time/gate/window.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define TICK (5 * US)
#define BEGIN (1000 * MS)
#define GAP US             /* between two launches of a stream */
#define LATENCY (5 * US)   /* from a launch until it runs */
#define AHEAD (77 * MS)    /* the GPU's clock is */
#define KEEPER (250 * US)  /* between two moves of our thread */
#define HOST (20 * US)     /* between two calls for a stream */
#define KNOWN (200 * MS)   /* by then, each kind has run in all places */
#define LIMIT (2 * MS)

#define OWN UINT64_C(0x00f) /* TPCs */
#define PRESENT UINT64_C(0xfff)
#define LENDERS 2

#define STREAMS 8
#define DEPTH 64
#define KINDS 40

static uint64_t now;
static unsigned int told, told_tpcs; /* to a watcher: changes of launches; the last one's TPCs */

WRAP(uint64_t, process_clock_ns, void)
{
	return now;
}

static uint64_t goes_on_ns; /* so long the GPU goes on in the middle of the next walk */
static void run_stream(unsigned int number_of_stream);

WRAP(void, timestamps_set_tpcs, const volatile uint64_t *timestamp, uint64_t of, unsigned int tpcs)
{
	uint64_t until = now + goes_on_ns;

	told++;
	told_tpcs = tpcs;
	for (goes_on_ns = 0; now < until; run_stream(0))
		now += TICK;
}

/* --- what is modelled --------------------------------------------------------------------------------------------- */

/* Kernels of the program, in the same order again and again. */
struct kind {
	uint64_t part_ns, more_ns;
};

static struct scenario {
	unsigned int streams, depth; /* launches of a stream in flight, at most */
	uint64_t borrowers;          /* 0: one */
	uint64_t busy_ns, idle_ns;   /* of a lender, in the mean; 0: the lender never works */
	uint64_t least_ns, most_ns;  /* of kernels that are wide */
	uint64_t lent[LENDERS];      /* TPCs */
	unsigned int kinds;
	uint64_t frozen_ns;          /* each 20 ms, the program is stopped for this time */
	bool waits;                  /* now and then a stream waits for the host */
	bool second_rests;           /* the second lender never works */
} scenario;

static struct lender {
	struct counts_place *place;
	bool works;
	uint64_t since, until;
	uint64_t left;   /* of wide launches in the lender's TPCs, at the last look */
	uint64_t waited; /* for wide launches, at most */
	_Atomic uint64_t number;
} lenders[LENDERS];

static struct launched {
	uint64_t number, came, begin, end; /* begin 0: not yet */
	const struct kind *kind;
	struct tpcset ran;                 /* once the launch is fetched */
	uint64_t host_returns;             /* a function of the host is ahead until then; 0: no function */
	bool is_fetched;
	unsigned char commands[512];
} launches[STREAMS][DEPTH];

static struct stream {
	uint64_t first, end;      /* of the stream's launches, in `launches` */
	uint64_t free_at;         /* the end of the last launch */
	uint64_t next;            /* launch of the host */
	uint64_t host_returns; /* the last function of the host in the stream */
} streams[STREAMS];

static struct kind kinds[KINDS];
static struct gate gate;
static struct topology topology;
static struct gpu gpu;
static struct releases releases;
static struct launch driver_record; /* the thread's */
static struct counts_place *own_place;
static volatile uint64_t *cells;
static uint64_t number, wide_ns, all_ns, wide_count, ended_count, behind_host;
static bool are_large;       /* commands, so that no descriptor is found */
static bool waited;          /* at the entry: the launch is uploaded for lent TPCs as well, and stays there */
static uint64_t last_edited; /* the last launch before the last edit */
static CUcontext context = (CUcontext)&gpu;

static CUstream handle(unsigned int stream)
{
	return (CUstream)(uintptr_t)(0x100000 + 0x80 * stream);
}

static struct launched *launched(unsigned int stream, uint64_t at)
{
	return &launches[stream][at % DEPTH];
}

static struct tpcset set_of(uint64_t tpcs)
{
	return (struct tpcset){{tpcs}};
}

/* Where the launch runs, or would run if the GPU fetched the commands now. */
static struct tpcset where(const struct launched *launch)
{
	struct qmd_mask mask;

	memcpy(&mask, launch->commands + 64 + DESCRIPTOR_MASK, sizeof mask);
	return launch->is_fetched ? launch->ran : topology_enabled(&topology, mask.words);
}

static bool is_wide(const struct launched *launch)
{
	struct tpcset own = set_of(OWN), ran = where(launch);

	return !tpcset_is_subset(&ran, &own);
}

/* --- the GPU ------------------------------------------------------------------------------------------------------ */

static void fetch(unsigned int stream)
{
	const struct stream *of = &streams[stream];

	for (uint64_t at = of->first; at < of->end && at < of->first + QUEUE_FETCHED; at++) {
		struct launched *launch = launched(stream, at);

		launch->ran = where(launch);
		launch->is_fetched = true;
	}
}

static void start(struct stream *stream, struct launched *launch)
{
	uint64_t begin = max_u64(launch->host_returns, max_u64(launch->came + LATENCY, stream->free_at + GAP));

	if (begin <= now) {
		launch->begin = begin;
		launch->end = begin + (is_wide(launch) ? launch->kind->more_ns : launch->kind->part_ns);
		assert_false(launch->number <= last_edited && is_wide(launch));
		behind_host += launch->host_returns != 0;
	}
}

static void end(struct stream *stream, const struct launched *launch)
{
	volatile uint64_t *cell = &cells[launch->number % (STREAMS * DEPTH) * 2];

	cell[1] = launch->end + AHEAD;
	cell[0] = launch->number;
	atomic_fetch_add(counts_ended(own_place, COUNTS_PLAIN), 1);
	stream->free_at = launch->end;
	stream->first++;
	ended_count++;
	all_ns += launch->kind->part_ns;
	if (is_wide(launch)) {
		wide_count++;
		wide_ns += launch->kind->part_ns;
	}
}

static void run_stream(unsigned int number_of_stream)
{
	struct stream *stream = &streams[number_of_stream];
	bool goes_on = true;

	while (goes_on && stream->first < stream->end) {
		struct launched *launch = launched(number_of_stream, stream->first);

		if (launch->begin == 0)
			start(stream, launch);
		goes_on = launch->begin != 0 && launch->end <= now;
		if (goes_on)
			end(stream, launch);
		fetch(number_of_stream);
	}
}

/* --- lenders ------------------------------------------------------------------------------------------------------ */

/* Of very different lengths. */
static uint64_t about(uint64_t ns)
{
	uint64_t part = 1 + some_below(64);

	return max_u64(TICK, ns / 16 * part * part / 64);
}

static void work(struct lender *lender, bool works)
{
	if (works && !lender->works) {
		counts_launch_shared(lender->place);
		lender->waited = max_u64(lender->waited, lender->left);
	} else if (lender->works && !works) {
		atomic_fetch_add(counts_ended(lender->place, COUNTS_PLAIN), 1);
	}
	lender->works = works;
	lender->since = now;
}

static void run_lender(struct lender *lender)
{
	bool rests = scenario.busy_ns == 0 || (scenario.second_rests && lender == &lenders[1]);

	if (rests || now < lender->until)
		return;
	work(lender, !lender->works);
	lender->until = now + about(lender->works ? scenario.busy_ns : scenario.idle_ns);
}

/* --- the program -------------------------------------------------------------------------------------------------- */

/* The commands of the announced launch are in the pushbuffer, and the GPU has not been told of the commands. */
static void submit(struct launched *launch)
{
	struct frame *frame = &driver_record.frame;
	volatile uint64_t *cell = &cells[launch->number % (STREAMS * DEPTH) * 2];
	volatile unsigned char sync;
	const uint32_t bytes = are_large ? 64 << 10 : sizeof launch->commands;
	const struct submission submission = {context, launch->commands, bytes, &sync};
	const struct tpcset own = set_of(waited ? PRESENT : OWN);
	uint32_t qmd[QMD_SIZE / 4];
	struct qmd_mask disable;

	topology_disable_mask(&topology, &own, disable.words, QMD_MASK_BITS);
	descriptor_make(qmd, &gpu, &releases, cell, launch->number, &disable);
	memcpy(launch->commands + 64, qmd, sizeof qmd);
	counts_launch_shared(own_place);
	driver_record.qmd = qmd;
	frame->end = (struct launch_end){cell, launch->number};
	enum queue_outcome outcome = queue_note(&driver_record, &submission);

	frame->is_noted = outcome == QUEUE_NOTED;
	frame->is_behind_unknown = outcome == QUEUE_UNKNOWN;
	gate_submits(&driver_record, &submission, frame->end);
	frame->end.number = 0;
}

/* As the driver announces a launch. */
static void announce(struct launched *launch, unsigned int stream, unsigned int kind)
{
	struct {
		CUfunction function;
		unsigned int grid[3], block[3], dynamic_bytes;
		CUstream stream;
	} arguments = {.function = (CUfunction)&kinds[kind], .grid = {1, 1, 1}, .stream = handle(stream)};
	CUresult result = CUDA_SUCCESS;
	struct frame *frame = &driver_record.frame;
	const struct call call = {.id = CALL_LAUNCH, .context = context, .arguments = (void **)&arguments,
	                          .result = &result, .frame = frame};

	frame->gate = &gate;
	frame->gate_context = context;
	frame->gate_epoch = epoch_now();
	frame->stream = handle(stream);
	gate_call_begins(&call);
	if (waited) {
		const union window_cookie stays = {.stays = true};

		frame->ticket = window_add(&gate, 1, kinds[kind].more_ns, in_flight_called);
		frame->has_more = true;
		frame->cookie |= stays.word;
	}
	submit(launch);
	gate_call_ended(&call);
}

static void launch(unsigned int stream)
{
	struct stream *in = &streams[stream];
	struct launched *launch = launched(stream, in->end++);
	unsigned int kind = (unsigned int)(number++ % scenario.kinds);

	*launch = (struct launched){.number = number, .came = now, .kind = &kinds[kind]};
	launch->host_returns = now < in->host_returns ? in->host_returns : 0;
	announce(launch, stream, kind);
	fetch(stream);
}

/* The stream waits until a function of the host has returned (launch/queued.c, time/gate/gate.c). */
static void wait_for_host(unsigned int stream)
{
	struct {
		CUstream stream;
	} arguments = {handle(stream)};
	CUresult result = CUDA_SUCCESS;
	struct frame *frame = &driver_record.frame;
	const struct call call = {.id = CALL_ADD_CALLBACK, .context = context, .arguments = (void **)&arguments,
	                          .result = &result, .frame = frame};

	streams[stream].host_returns = now + 300 * US;
	queue_interrupt();
	gate_call_begins(&call);
	gate_call_ended(&call);
}

static void run_program(unsigned int stream)
{
	struct stream *in = &streams[stream];

	if (in->end - in->first >= scenario.depth || now < in->next)
		return;
	if (scenario.waits && some_below(50) == 0)
		wait_for_host(stream);
	launch(stream);
	in->next = now + HOST / 2 + some_below(HOST);
}

/* As in keeper.c. */
static bool run_keeper(void)
{
	window_sweep(&gate);
	return window_move(&gate, (struct launch_end){.number = 0});
}

/* --- what must be so ---------------------------------------------------------------------------------------------- */

static unsigned int in_us(uint64_t ns)
{
	return (unsigned int)(ns / US);
}

static uint64_t left_of(const struct launched *launch)
{
	return launch->begin != 0 ? launch->end - min_u64(now, launch->end) : launch->kind->more_ns;
}

static uint64_t left_in(uint64_t tpcs)
{
	struct tpcset lent = set_of(tpcs);
	uint64_t left = 0;

	for (unsigned int i = 0; i < scenario.streams; i++) {
		for (uint64_t at = streams[i].first; at < streams[i].end; at++) {
			struct tpcset ran = where(launched(i, at));

			left += tpcset_overlap(&ran, &lent) ? left_of(launched(i, at)) : 0;
		}
	}
	return left;
}

static uint64_t window_of(const struct lender *lender)
{
	uint64_t idle = lender->works ? 0 : now - lender->since;

	return min_u64(idle, LIMIT) / scenario.borrowers;
}

/* No launch becomes wide beyond the window. */
static void check_lender(unsigned int i)
{
	struct lender *lender = &lenders[i];
	uint64_t left = left_in(scenario.lent[i]);

	if (now >= BEGIN + KNOWN && left > lender->left && left > window_of(lender))
		fail_msg("%u us are left in lender %u, not %u us", in_us(left), i, in_us(window_of(lender)));
	lender->left = left;
}

static bool is_known(const struct kind *kind)
{
	const struct length *length = lengths_find(&(struct launched_work){.what = kind, .grid = {1, 1, 1}});

	return lengths_ns(length, LENGTH_PART) != 0 || lengths_ns(length, LENGTH_MORE) != 0;
}

static void check_waiting(unsigned int stream, uint64_t at, const struct tpcset *wanted)
{
	const struct launched *launch = launched(stream, at);
	struct tpcset ran = where(launch);
	bool may_be_called_back = at >= streams[stream].first + QUEUE_FETCHED;

	assert_false(may_be_called_back && tpcset_overlap(&ran, wanted));
	assert_true(!is_wide(launch) || (is_known(launch->kind) && launch->host_returns <= now));
}

/* While a lender works, no wide launch could be called back. No launch of unknown length is wide, and no launch behind
 * the host. Our thread or a launch of the program has just moved the window. */
static void check_called_back(void)
{
	struct tpcset wanted = {{0}};

	for (unsigned int i = 0; i < gate.claims.count; i++)
		wanted.words[0] |= lenders[i].works ? scenario.lent[i] : 0;
	for (unsigned int i = 0; i < scenario.streams; i++) {
		for (uint64_t at = streams[i].first; at < streams[i].end; at++)
			check_waiting(i, at, &wanted);
	}
}

/* No kernel is taken to be shorter than the kernel is. */
static void check_lengths(void)
{
	for (unsigned int i = 0; i < scenario.kinds; i++) {
		struct length *length = lengths_find(&(struct launched_work){.what = &kinds[i], .grid = {1, 1, 1}});
		uint64_t part = lengths_ns(length, LENGTH_PART), more = lengths_ns(length, LENGTH_MORE);

		ROW("a kernel of %u and %u us", in_us(kinds[i].part_ns), in_us(kinds[i].more_ns));
		assert_true((part == 0 || part >= kinds[i].part_ns) && (more == 0 || more >= kinds[i].more_ns));
	}
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void make_claim(unsigned int i, struct counts_place *place)
{
	struct claim *claim = &gate.claims.list[i];

	lenders[i] = (struct lender){.place = place, .since = now, .until = now + 50 * MS};
	*claim = (struct claim){.lender = 1 + i, .place_count = 1, .places = {place}, .number = &lenders[i].number,
	                        .gives = set_of(scenario.lent[i]), .takes = set_of(scenario.lent[i]), .limit_ns = LIMIT,
	                        .borrowers = scenario.borrowers};
}

static struct segment segment;

static void make_places(void)
{
	static const struct segment_revision nothing;
	static struct counts_areas areas;
	static struct counts_place *places[LENDERS + 1];
	struct error error;

	if (!own_place) {
		assert_done(segment_create(&segment, &nothing, NULL, -1, -1, &error));
		for (unsigned int i = 0; i <= LENDERS; i++) {
			places[i] = counts_take(&areas, &segment, gpu.pci, UINT64_MAX, 0, &error);
			assert_non_null(places[i]);
			counts_begin(places[i]);
		}
		own_place = places[LENDERS];
		epoch_use(&segment);
	}
	for (unsigned int i = 0; i < LENDERS; i++)
		make_claim(i, places[i]);
}

static void make_gpu(void)
{
	topology = (struct topology){.tpc_count = 12, .sms_per_tpc = 2};
	for (uint16_t i = 0; i < topology.tpc_count; i++)
		topology.tpcs[i].mask_bit = i;
	gpu = (struct gpu){.topology = &topology, .has_masks = true, .present = {{PRESENT, 0}}};
	gpu.family = qmd_family_for(9, 0);
	if (!cells)
		cells = descriptor_cells(STREAMS * DEPTH * 2 * sizeof *cells);
}

static void make_kinds(void)
{
	for (unsigned int i = 0; i < scenario.kinds; i++) {
		uint64_t more = scenario.least_ns + some_below(scenario.most_ns - scenario.least_ns + 1);

		kinds[i] = (struct kind){more * 2, more};
	}
}

static void begin(struct scenario of)
{
	if (!queue_prepare())
		skip_because("needs restartable sequences");
	scenario = of;
	scenario.borrowers = max_u64(1, of.borrowers);
	now = BEGIN;
	number = wide_ns = all_ns = wide_count = ended_count = behind_host = last_edited = 0;
	random_state = 1;
	lengths_forget();
	memset(&gate, 0, sizeof gate);
	memset(streams, 0, sizeof streams);
	make_gpu();
	memset((void *)(uintptr_t)cells, 0, STREAMS * DEPTH * 2 * sizeof *cells);
	for (unsigned int i = 0; i < STREAMS; i++)
		queue_forget_stream(handle(i), context);
	driver_record = (struct launch){.context = context, .gpu = &gpu, .releases = &releases};
	gate_after_fork();
	gate.gpu = &gpu;
	make_places();
	time_news.segment = &segment;
	gate.claims.count = scenario.lent[1] != 0 ? 2 : 1;
	gate.claims.has_part = true;
	gate.claims.own[0] = own_place;
	gate.claims.own_count = 1;
	gate.claims.own_is_known = true;
	gate.claims.part = gate.claims.all_own = set_of(OWN);
	atomic_store(&gate_state.is_open, true);
	make_kinds();
}

static bool is_frozen(void)
{
	return now / MS % 20 * MS < scenario.frozen_ns;
}

static void tick(void)
{
	now += TICK;
	for (unsigned int i = 0; i < scenario.streams; i++)
		run_stream(i);
	for (unsigned int i = 0; i < gate.claims.count; i++)
		run_lender(&lenders[i]);
	for (unsigned int i = 0; i < scenario.streams && !is_frozen(); i++)
		run_program(i);
	if (now % KEEPER == 0 && !is_frozen()) {
		run_keeper();
		check_called_back();
	}
	for (unsigned int i = 0; i < gate.claims.count; i++)
		check_lender(i);
}

static void run(uint64_t ns)
{
	for (uint64_t end_at = now + ns; now < end_at;)
		tick();
}

/* Until all launches have ended. */
static void drain(void)
{
	for (unsigned int i = 0; i < LENDERS; i++)
		work(&lenders[i], false);
	for (unsigned int i = 0; i < scenario.streams; i++) {
		while (streams[i].first < streams[i].end) {
			now += TICK;
			run_stream(i);
		}
	}
}

/* Returns the wide part of the work, in percent. */
static unsigned int run_for(struct scenario of, uint64_t ns)
{
	begin(of);
	run(ns);
	check_lengths();
	drain();
	return (unsigned int)(100 * wide_ns / all_ns);
}

/* --- the law ------------------------------------------------------------------------------------------------------ */

#define ONE .lent = {0xff0, 0}
#define TWO .lent = {0x0f0, 0xf00}
#define OVERLAPPING .lent = {0x0f0, 0xfc0}
#define PAUSES(busy, idle) .busy_ns = (busy), .idle_ns = (idle)
#define BURSTS PAUSES(MS, 5 * MS)
#define KERNELS(least, most) .least_ns = (least), .most_ns = (most)
#define SHORT KERNELS(10 * US, 100 * US)
#define LONG KERNELS(10 * US, 300 * US)

static const struct row {
	const char *name;
	unsigned int least; /* of the work is wide, in percent */
	struct scenario is;
} rows[] = {
	{"a lender at rest", 95, {.streams = 1, .depth = 32, SHORT, ONE, .kinds = 8}},
	{"bursts", 30, {.streams = 1, .depth = 32, BURSTS, SHORT, ONE, .kinds = 8}},
	{"a deep queue", 30, {.streams = 1, .depth = DEPTH, BURSTS, LONG, ONE, .kinds = 8}},
	{"short pauses", 1, {.streams = 1, .depth = 32, PAUSES(MS, MS), KERNELS(5 * US, 50 * US), ONE, .kinds = 8}},
	{"kernels of 0.9 W", 5,
	 {.streams = 1, .depth = 8, PAUSES(2 * MS, 20 * MS), KERNELS(LIMIT / 10 * 9, LIMIT / 10 * 9), ONE, .kinds = 1}},
	{"short queues", 30, {.streams = 1, .depth = 2, BURSTS, LONG, ONE, .kinds = 8}},
	{"a host that waits for each launch", 30, {.streams = 1, .depth = 1, BURSTS, LONG, ONE, .kinds = 8}},
	{"several streams", 10, {.streams = 4, .depth = 16, BURSTS, LONG, ONE, .kinds = 13}},
	{"many streams with short queues", 10, {.streams = 8, .depth = 2, BURSTS, LONG, ONE, .kinds = 13}},
	{"two borrowers", 10, {.streams = 2, .depth = 16, .borrowers = 2, BURSTS, LONG, ONE, .kinds = 8}},
	{"five borrowers", 5, {.streams = 2, .depth = 16, .borrowers = 5, BURSTS, SHORT, ONE, .kinds = 8}},
	{"two lenders", 10, {.streams = 2, .depth = 16, BURSTS, LONG, TWO, .kinds = 8}},
	{"two lenders with the same TPCs", 10, {.streams = 2, .depth = 16, BURSTS, LONG, OVERLAPPING, .kinds = 8}},
	{"a lender that rests, with the same TPCs", 80,
	 {.streams = 1, .depth = 32, BURSTS, SHORT, .lent = {0xff0, 0xff0}, .kinds = 8, .second_rests = true}},
	{"a program that is stopped", 10,
	 {.streams = 2, .depth = 16, BURSTS, LONG, ONE, .kinds = 8, .frozen_ns = 7 * MS}},
	{"streams that wait for the host", 5,
	 {.streams = 3, .depth = 16, BURSTS, LONG, ONE, .kinds = 8, .waits = true}},
	{"two streams that wait for the host", 5,
	 {.streams = 2, .depth = 20, SHORT, ONE, .kinds = 4, .waits = true}},
	{"many kinds", 10, {.streams = 2, .depth = 16, BURSTS, LONG, TWO, .kinds = KINDS}},
};

TEST(left_in_time)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		unsigned int wide = run_for(rows[i].is, 1000 * MS);

		ROW("%s", rows[i].name);
		print_message("# %-34s %3u %% wide, %5u launches; lenders waited for %4u us\n", rows[i].name, wide,
		              (unsigned int)ended_count, in_us(max_u64(lenders[0].waited, lenders[1].waited)));
		assert_true(wide >= rows[i].least);
		assert_true(!rows[i].is.waits || behind_host > 100);
	}
}

/* --- single steps ------------------------------------------------------------------------------------------------- */

/* Kernels of 100 us, behind each other in one stream. */
static const struct scenario deep = {.streams = 1, .depth = DEPTH - 2, KERNELS(100 * US, 100 * US), ONE, .kinds = 1};
static const struct scenario slow = {.streams = 1, .depth = 8, KERNELS(2200 * US, 2200 * US), ONE, .kinds = 1};
static const struct scenario two_lenders = {.streams = 1, .depth = 40, SHORT, .lent = {0xf0, 0xf00}, .kinds = KINDS};

static unsigned int wide_ones(void)
{
	unsigned int count = 0;

	for (uint64_t at = streams[0].first; at < streams[0].end; at++)
		count += is_wide(launched(0, at));
	return count;
}

/* Wide launches whose lengths will be learnt. */
static unsigned int learnt_ones(void)
{
	unsigned int count = 0;

	for (uint64_t i = gate.in_flight.gone + 1; i <= gate.in_flight.added; i++) {
		const struct flying *launch = &gate.in_flight.list[i % IN_FLIGHT_MAX];

		count += launch->open != 0 && !launch->is_gone && launch->length;
	}
	return count;
}

static void begin_deep(void)
{
	begin(deep);
	run(KNOWN);
	assert_true(wide_ones() > 5);
}

/* And a further launch counts, since the end of a launch is seen late. */
static void check_only_fetched_are_wide(void)
{
	unsigned int count = wide_ones();

	assert_in_range(count, 1, QUEUE_FETCHED);
	assert_in_range(gate.in_flight.wide, count * 100 * US, (count + 1) * 102 * US);
}

/* While our thread sleeps, the next launch of the program calls back. */
TEST(its_own_launch_calls_back)
{
	begin_deep();
	assert_true(learnt_ones() > 0);
	watch(&segment, now);
	told = 0;
	launch(0);
	assert_true(told == 0 || told_tpcs == 12);
	told = 0;
	work(&lenders[0], true);
	launch(0);
	check_called_back();
	assert_each(read_noted(), 1, noted[0].kind, SEGMENT_KEEPS_WAITING, noted[0].begin_ns, now, noted[0].other, 1);
	assert_in_range(noted[0].end_ns - now, 100 * US, LIMIT);
	assert_true(told >= 5 && told_tpcs == 4);
	/* A disturbed launch tells no length. Only fetched ones count until their ends. */
	assert_int_equal(learnt_ones(), 0);
	check_only_fetched_are_wide();
	drain();
	for (int i = 0; i < DEPTH / 16; i++)
		window_sweep(&gate);
	assert_int_equal(gate.in_flight.wide, 0);
}

static bool is_counted(uint64_t launch)
{
	bool is = false;

	for (uint64_t i = gate.in_flight.gone + 1; i <= gate.in_flight.added; i++) {
		const struct flying *flying = &gate.in_flight.list[i % IN_FLIGHT_MAX];

		is |= flying->number == launch && flying->open != 0 && !flying->is_gone;
	}
	return is;
}

/* The GPU fetches launches while the masks are written: such launches count. */
TEST(fetched_meanwhile)
{
	begin_deep();
	watch(&segment, now);
	goes_on_ns = 250 * US;
	window_begin_anew(&gate);
	assert_int_equal(goes_on_ns, 0);
	assert_in_range(wide_ones(), 1, 2 * QUEUE_FETCHED);
	for (uint64_t at = streams[0].first; at < streams[0].end; at++)
		assert_true(!is_wide(launched(0, at)) || is_counted(launched(0, at)->number));
	drain();
}

/* A launch that waited at the entry cannot be called back, and counts until the end. */
TEST(what_stays_counts)
{
	begin_deep();
	work(&lenders[0], true);
	run(20 * MS);
	waited = true;
	launch(0);
	waited = false;
	uint64_t stayed = number;

	lenders[0].left = left_in(0xff0); /* the model knows no waits */
	work(&lenders[0], false);
	run(5 * MS);
	assert_true(wide_ones() > 5);
	window_begin_anew(&gate);
	assert_in_range(wide_ones(), 2, QUEUE_FETCHED + 1);
	assert_true(is_counted(stayed) && !is_counted(stayed - 1));
	drain();
}

/* The GPU may have fetched a launch behind foreign work, however many launches are ahead. */
TEST(behind_foreign_work_counts)
{
	begin_deep();
	work(&lenders[0], true);
	run(20 * MS);
	queue_pass_foreign();
	launch(0);
	uint64_t behind = number;

	work(&lenders[0], false);
	run(5500 * US);
	assert_true(is_counted(behind) && is_counted(behind - 1));
	window_begin_anew(&gate);
	assert_true(is_counted(behind) && !is_counted(behind - 1));
	drain();
}

/* Of two claims to the same TPCs one wants; and a claim takes more than the claim gives. */
TEST(what_claims_give)
{
	const struct claims claims = {
		.count = 3,
		.part = set_of(0x00c),
		.list = {{.gives = set_of(0x003), .takes = set_of(0x0f3)},
		         {.gives = set_of(0x003), .takes = set_of(0x003)},
		         {.gives = set_of(0x0f0), .takes = set_of(0x0f0)}},
	};
	const bool more[] = {false, false, false, true, false, true, false, true};

	begin(deep);
	gate.claims = claims;
	for (uint32_t open = 0; open < COUNT_OF(more); open++) {
		ROW("the claims %u", open);
		assert_int_equal(window_gives_more(&gate, open), more[open]);
	}
}

/* A launch that cannot be counted is not wide, whoever asks. */
TEST(no_room_in_the_list)
{
	struct claims_idle idle = {.open = 1, .ns = {2 * LIMIT}};

	begin(deep);
	assert_int_equal(window_allows(&gate, &idle, US), 1);
	while (in_flight_add(&gate.in_flight, 0, US, in_flight_called) != 0)
		;
	assert_int_equal(window_allows(&gate, &idle, US), 0);
}

/* No launch from before an edit is made wide after the edit. */
TEST(nothing_is_widened_after_an_edit)
{
	begin_deep();
	work(&lenders[0], true);
	run(20 * MS);
	assert_int_equal(wide_ones(), 0);
	atomic_fetch_add(epoch_sources.edits, 1);
	last_edited = number;
	work(&lenders[0], false);
	run(20 * MS);
	assert_true(wide_ones() > 5 && launched(0, streams[0].first)->number > last_edited);
	drain();
}

/* The claims change: waiting launches are narrow, count no more, and have used nothing of the lender. */
TEST(other_claims)
{
	begin_deep();
	uint64_t wide = gate.in_flight.wide;
	int64_t lent = gate.lent_ns[0];

	window_begin_anew(&gate);
	check_only_fetched_are_wide();
	assert_true(wide >= 5 * 100 * US && lent - gate.lent_ns[0] == (int64_t)(wide - gate.in_flight.wide));
	drain();
}

/* A kernel that lasts longer than any window is wide once, and the gate learns the length. */
TEST(too_long)
{
	run_for(slow, 1000 * MS);
	assert_in_range(wide_count, 1, 2);
	assert_true(atomic_load(&gate_state.is_too_long));
}

/* With nothing ahead, the host is the slower one. A short launch stays in the own part. */
TEST(short_with_nothing_ahead)
{
	const struct scenario alone = {.streams = 1, .depth = 1, KERNELS(2 * US, 2 * US), ONE, .kinds = 1};

	run_for(alone, 500 * MS);
	assert_true(ended_count > 5000 && wide_count < 10);
}

/* A kernel was disturbed once in lent TPCs, and took longer than in the own part. The kernel soon borrows again. */
TEST(disturbed_once)
{
	begin_deep();
	struct length *length = lengths_find(&(struct launched_work){.what = &kinds[0], .grid = {1, 1, 1}});

	lengths_note(length, atomic_load(&length->key), LENGTH_MORE, 50 * LIMIT);
	run(50 * MS);
	assert_in_range(lengths_ns(length, LENGTH_MORE), 100 * US, LIMIT);
	assert_true(wide_ones() > 5);
	drain();
}

/* Where the descriptor is not found, nothing is lent. */
TEST(what_is_not_found_is_not_lent)
{
	const struct scenario alone = {.streams = 1, .depth = 1, SHORT, TWO, .kinds = 3};

	are_large = true;
	run_for(alone, 500 * MS);
	are_large = false;
	assert_true(ended_count > 100 && wide_count == 0);
	assert_each(gate.lent_ns[0], 0, gate.lent_ns[1], 0, gate.in_flight.wide, 0);
	assert_false(atomic_load(&gate_state.has_more));
	run_for(alone, 500 * MS);
	assert_true(gate.lent_ns[0] > 0 && gate.lent_ns[1] > 0);
}

/* Of a length beyond each window, the gate doubts a part at each refusal. A launch that took longer than in the own
 * part was disturbed. */
TEST(doubts)
{
	begin(deep);
	struct length *length = lengths_find(&(struct launched_work){.what = &kinds[0], .grid = {1, 1, 1}});
	uint64_t key = atomic_load(&length->key);

	lengths_note(length, key, LENGTH_MORE, 4 * LIMIT);
	assert_true(window_refuses(&gate, length, 4 * LIMIT));
	assert_int_equal(lengths_ns(length, LENGTH_MORE), 4 * LIMIT - LIMIT / 1024);
	lengths_note(length, key, LENGTH_PART, LIMIT);
	lengths_note(length, key, LENGTH_MORE, 8 * LIMIT);
	assert_true(window_refuses(&gate, length, 8 * LIMIT));
	assert_int_equal(lengths_ns(length, LENGTH_MORE), 7 * LIMIT);
}

static enum queue_answer count_visit(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	++*(unsigned int *)data;
	return QUEUE_LEAVE;
}

/* A launch of unknown length is decided about behind twelve launches at most. */
TEST(far_behind)
{
	const struct scenario unknown = {.streams = 1, .depth = 40, SHORT, ONE, .kinds = KINDS};
	unsigned int left = 0;

	begin(unknown);
	run_keeper();
	now += 20 * MS;
	for (unsigned int i = 0; i < 30; i++)
		launch(0);
	run_keeper();
	queue_walk(false, count_visit, &left);
	assert_int_equal(left, 30 - 13);
	drain();
}

/* The next launch of a lender wakes our thread. */
TEST(launches_become_wide_anew)
{
	begin_deep();
	uint64_t openings = atomic_load(&segment.memory->openings);

	run_keeper();
	assert_int_equal(atomic_load(&segment.memory->openings), openings);
	for (unsigned int i = 1; i <= 3; i++) {
		window_begin_anew(&gate);
		assert_int_equal(atomic_load(&segment.memory->openings), openings + i - 1);
		run_keeper();
		assert_int_equal(atomic_load(&segment.memory->openings), openings + i);
	}
	drain();
}

/* Each of two lenders can tell. */
TEST(launches_become_wide_for_a_second_lender)
{
	begin(two_lenders);
	work(&lenders[1], true);
	run(KNOWN);
	uint64_t openings = atomic_load(&segment.memory->openings);

	work(&lenders[1], false);
	run(20 * MS);
	assert_int_equal(atomic_load(&segment.memory->openings), openings + 1);
	drain();
}

/* As a second thread that changes launches of a different GPU. */
static enum queue_answer come_back_in_walk(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	struct claims_idle idle;

	work(&lenders[0], true);
	window_look(&gate, &idle);
	assert_false(window_begin_anew(&gate));
	return QUEUE_STOP;
}

static enum queue_answer begin_anew_in_walk(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	*(bool *)data = window_begin_anew(&gate);
	return QUEUE_STOP;
}

TEST(claims_without_wide_launches_may_change)
{
	bool begins = false;

	begin_deep();
	work(&lenders[0], true);
	run(20 * MS);
	assert_int_equal(gate.opened, 0);
	queue_walk(true, begin_anew_in_walk, &begins);
	assert_true(begins);
	drain();
}

TEST(called_back_at_the_next_look)
{
	struct claims_idle idle;

	begin_deep();
	watch(&segment, now);
	unsigned int wide = wide_ones();
	uint64_t openings = atomic_load(&segment.memory->openings);

	queue_walk(true, come_back_in_walk, NULL);
	assert_each(wide_ones(), wide, read_noted(), 0);
	assert_int_equal(atomic_load(&segment.memory->openings), openings + 1);
	window_look(&gate, &idle);
	assert_int_equal(read_noted(), 1);
	check_only_fetched_are_wide();
	drain();
}

/* A fetched launch keeps two lenders waiting that come back one after the other. */
TEST(both_keep_waiting)
{
	struct claims_idle idle;

	begin(two_lenders);
	run(KNOWN);
	watch(&segment, now);
	for (unsigned int i = 0; i < LENDERS; i++) {
		work(&lenders[i], true);
		window_look(&gate, &idle);
		assert_each(read_noted(), 1, noted[0].kind, SEGMENT_KEEPS_WAITING, noted[0].other, i + 1);
		window_look(&gate, &idle);
		assert_int_equal(read_noted(), 0);
	}
	assert_int_equal(gate.opened, 0);
	drain();
}

/* A second lender was idle for too short a time, and comes back. */
TEST(nothing_is_called_back_for_a_lender_without_wide_launches)
{
	struct claims_idle idle;

	begin(two_lenders);
	work(&lenders[1], true);
	run(KNOWN);
	work(&lenders[1], false);
	run_keeper();
	now += 10 * US;
	run_keeper();
	unsigned int wide = wide_ones(), learnt = learnt_ones();

	assert_true(wide > 5 && learnt > 0);
	work(&lenders[1], true);
	window_look(&gate, &idle);
	assert_each(wide_ones(), wide, learnt_ones(), learnt);
	drain();
}

TEST(next_move)
{
	begin_deep();
	assert_true(run_keeper());
	drain();
	assert_false(run_keeper());
}

/* Some launches tell a known length again. */
TEST(lengths_are_learnt_now_and_then)
{
	begin_deep();
	drain();
	run_keeper();
	now += 20 * MS;
	for (unsigned int i = 0; i < 16; i++)
		launch(0);
	run_keeper();
	assert_in_range(learnt_ones(), 3, 5);
	drain();
}

RUN_TESTS(NULL, NULL)
