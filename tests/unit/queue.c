/*
 * Waiting launches (src/driver/pushbuffer/queue.h), in a model of a GPU whose steps come in any order: also within a
 * visitor, between the looks and the stores of a change. A segment of commands is used for foreign work as soon as the
 * launch has started. No mask is ever written there.
 */
#include "descriptor.h"
#include "driver/pushbuffer/queue.h"

#define CHANNELS 2
#define STREAMS 4
#define SEGMENTS 12 /* of a channel */
#define SEGMENT_BYTES 512
#define LAUNCHES 64 /* remembered; more than fit into all segments */
#define PRESENT_WORDS UINT64_C(0x3ffffffffffffff), UINT64_C(3)

enum state {
	GONE, /* or has ended */
	WAITS,
	RUNS
};

struct modelled {
	uint64_t cookie;
	unsigned int stream;
	enum state state;
	bool is_noted;
	unsigned char *mask; /* in the commands */
	struct qmd_mask disable;
};

static struct stream {
	bool is_known;  /* the last work is a launch */
	bool waits;     /* for an event */
	bool is_behind_foreign;
	uint64_t last;  /* launch; 0: none */
	uint64_t turn;
} streams[STREAMS];

static struct segment_of_launch {
	unsigned char bytes[SEGMENT_BYTES];
} segments[CHANNELS][SEGMENTS], shadows[CHANNELS][SEGMENTS];
static uint64_t owners[CHANNELS][SEGMENTS];
static unsigned int next_segment[CHANNELS];

static struct modelled launches[LAUNCHES];
static uint64_t count; /* of launches */
static volatile uint64_t *cells;
static struct gpu gpu;
static struct releases releases;
static CUcontext context = (CUcontext)&gpu;
static uint64_t visited, written;

/* --- the parts -------------------------------------------------------------------------------------------------- */

static struct modelled *launch_of(uint64_t cookie)
{
	struct modelled *launch = &launches[cookie % LAUNCHES];

	return launch->cookie == cookie ? launch : NULL;
}

static CUstream handle(unsigned int stream)
{
	return (CUstream)(uintptr_t)(0x100000 + 0x80 * stream);
}

static bool has_ended(uint64_t cookie)
{
	return cells[cookie % LAUNCHES * 2] >= cookie;
}

static struct qmd_mask random_mask(void)
{
	struct qmd_mask mask = {{PRESENT_WORDS}};

	mask.words[0] &= (uint64_t)some_below(UINT32_MAX) << 32 | some_below(UINT32_MAX);
	mask.words[1] &= some_below(4);
	return mask;
}

static struct qmd_mask mask_in_memory(const struct modelled *launch)
{
	struct qmd_mask mask;

	memcpy(&mask, launch->mask, sizeof mask);
	for (unsigned int i = 0; i < COUNT_OF(mask.words); i++)
		mask.words[i] &= gpu.present.words[i];
	return mask;
}

static void remember(unsigned int channel, unsigned int segment)
{
	shadows[channel][segment] = segments[channel][segment];
}

/* A waiting launch has its last mask, and all else is unchanged. */
static void check_segment(unsigned int channel, unsigned int segment)
{
	const struct modelled *launch = launch_of(owners[channel][segment]);
	struct segment_of_launch seen = segments[channel][segment];

	if (launch && launch->state == WAITS) {
		struct qmd_mask mask = mask_in_memory(launch);
		size_t at = (size_t)(launch->mask - segments[channel][segment].bytes);

		assert_memory_equal(&mask, &launch->disable, sizeof mask);
		memcpy(seen.bytes + at, shadows[channel][segment].bytes + at, sizeof mask);
	}
	assert_memory_equal(&seen, &shadows[channel][segment], sizeof seen);
}

static void check(void)
{
	for (unsigned int channel = 0; channel < CHANNELS; channel++) {
		for (unsigned int segment = 0; segment < SEGMENTS; segment++)
			check_segment(channel, segment);
	}
}

/* --- the GPU ---------------------------------------------------------------------------------------------------- */

/* The oldest launch of the stream in the state. */
static struct modelled *oldest(unsigned int stream, enum state state)
{
	struct modelled *found = NULL;

	for (uint64_t i = count; i > 0 && i + LAUNCHES > count; i--) {
		struct modelled *launch = launch_of(i);

		if (launch && launch->stream == stream && launch->state == state)
			found = launch;
	}
	return found;
}

static void end(unsigned int stream)
{
	struct modelled *running = oldest(stream, RUNS);

	if (running) {
		running->state = GONE;
		cells[running->cookie % LAUNCHES * 2] = running->cookie;
	}
}

/* The commands belong to foreign work now, perhaps with the same words. */
static void give_segment_back(uint64_t cookie)
{
	for (unsigned int i = 0; i < CHANNELS * SEGMENTS; i++) {
		unsigned int channel = i / SEGMENTS, segment = i % SEGMENTS;

		if (owners[channel][segment] == cookie) {
			owners[channel][segment] = 0;
			if (some_below(2))
				memset(&segments[channel][segment], (int)some_below(256), SEGMENT_BYTES);
			remember(channel, segment);
		}
	}
}

static void start(unsigned int stream)
{
	struct modelled *next = oldest(stream, WAITS);

	if (next && !oldest(stream, RUNS)) {
		struct qmd_mask mask = mask_in_memory(next);

		assert_memory_equal(&mask, &next->disable, sizeof mask);
		next->state = RUNS;
		give_segment_back(next->cookie);
	}
}

/* --- the program ------------------------------------------------------------------------------------------------ */

static void interrupt(void)
{
	queue_interrupt();
	for (unsigned int i = 0; i < STREAMS; i++)
		streams[i].is_known = false;
}

static void submit_foreign(void)
{
	queue_pass_foreign();
	for (unsigned int i = 0; i < STREAMS; i++)
		streams[i].is_behind_foreign = true;
}

static void wait_for_event(unsigned int stream)
{
	queue_wait(handle(stream), context);
	if (streams[stream].last != 0)
		streams[stream].waits = true;
}

/* Without waiting for the launches: their memory is gone. */
static void forget(unsigned int stream)
{
	queue_forget_stream(handle(stream), context);
	for (struct modelled *launch = launches; launch < launches + LAUNCHES; launch++) {
		if (launch->stream == stream && launch->state != GONE) {
			launch->state = GONE;
			give_segment_back(launch->cookie);
		}
	}
	streams[stream] = (struct stream){.turn = 0};
}

static enum queue_outcome expected(const struct stream *stream)
{
	enum queue_outcome outcome = QUEUE_ALONE;
	bool is_known = stream->is_known && stream->last != 0;

	if (is_known && !has_ended(stream->last))
		outcome = QUEUE_NOTED;
	else if (!is_known || stream->waits || stream->is_behind_foreign)
		outcome = QUEUE_UNKNOWN;
	return outcome;
}

static void make_descriptor(uint32_t *qmd, uint64_t cookie, const struct qmd_mask *disable)
{
	descriptor_make(qmd, &gpu, &releases, &cells[cookie % LAUNCHES * 2], cookie, disable);
}

/* Of a launch: the commands in front, or all. The GPU fetches the commands of a noted launch late. */
static enum queue_outcome note(struct launch *launch, void *commands, uint32_t bytes)
{
	volatile unsigned char sync = 0;
	const struct submission submission = {.context = context, .commands = commands, .bytes = bytes, .sync = &sync};
	enum queue_outcome outcome = queue_note(launch, &submission);

	assert_int_equal(sync, outcome == QUEUE_NOTED ? 0x80 : 0);
	return outcome;
}

/* First come commands with the same words, but for the timestamp. */
static enum queue_outcome note_in_parts(struct launch *launch, void *commands)
{
	unsigned char other[SEGMENT_BYTES];

	memcpy(other, commands, sizeof other);
	for (unsigned int at = 0; at < sizeof other; at++)
		other[at] ^= at % 4 == 0 && (at < DESCRIPTOR_MASK || at >= DESCRIPTOR_MASK + 128);
	enum queue_outcome first = note(launch, other, sizeof other), outcome = first;

	if (first == QUEUE_NOT_FOUND) {
		for (unsigned int i = 0; i < STREAMS; i++)
			streams[i].is_known = false;
		outcome = note(launch, commands, SEGMENT_BYTES);
		assert_int_equal(outcome, QUEUE_UNKNOWN);
	}
	return outcome;
}

static void launch_into(unsigned int number)
{
	struct stream *stream = &streams[number];
	unsigned int channel = number % CHANNELS, segment = next_segment[channel];
	const struct modelled *owner = launch_of(owners[channel][segment]);
	unsigned int offset = some_below(8) > 0 ? 64 : 100;
	uint32_t qmd[QMD_SIZE / 4];
	struct modelled launch = {.cookie = count + 1, .stream = number, .state = WAITS, .disable = random_mask()};
	bool is_in_parts = some_below(16) == 0, is_large = some_below(32) == 0;

	if ((owner && owner->state == WAITS) || launches[launch.cookie % LAUNCHES].state != GONE)
		return;
	count++;
	next_segment[channel] = (segment + 1) % SEGMENTS;
	make_descriptor(qmd, launch.cookie, &launch.disable);
	unsigned char *commands = segments[channel][segment].bytes;

	memset(commands, (int)some_below(256), SEGMENT_BYTES);
	memcpy(commands + offset, qmd, sizeof qmd);
	struct launch driver = {.context = context, .qmd = qmd, .gpu = &gpu, .releases = &releases};
	enum queue_outcome outcome = expected(stream), seen;

	driver.frame.stream = handle(number);
	driver.frame.end = (struct launch_end){&cells[launch.cookie % LAUNCHES * 2], launch.cookie};
	driver.frame.cookie = launch.cookie;
	launch.mask = commands + offset + DESCRIPTOR_MASK;
	if (is_large && outcome == QUEUE_NOTED)
		outcome = QUEUE_LARGE;
	else if (is_in_parts && outcome == QUEUE_NOTED)
		outcome = QUEUE_UNKNOWN;
	if (is_large)
		seen = note(&driver, commands, 65536);
	else
		seen = is_in_parts ? note_in_parts(&driver, commands) : note(&driver, commands, SEGMENT_BYTES);
	assert_int_equal(seen, outcome);
	assert_true(driver.frame.turn > stream->turn);
	if (stream->turn > 0)
		assert_int_equal(driver.frame.turn, stream->turn + 1);
	launch.is_noted = outcome == QUEUE_NOTED;
	launches[launch.cookie % LAUNCHES] = launch;
	owners[channel][segment] = launch.cookie;
	remember(channel, segment);
	*stream = (struct stream){.is_known = true, .last = launch.cookie, .turn = driver.frame.turn};
}

/* --- changes ---------------------------------------------------------------------------------------------------- */

static void act(void);

/* Whether a mask for the launch is written now. */
static bool is_changeable(const struct modelled *launch)
{
	bool is_behind = false;

	for (const struct modelled *other = launches; launch->is_noted && other < launches + LAUNCHES; other++) {
		is_behind |= other->stream == launch->stream && other->state != GONE && other->cookie < launch->cookie;
	}
	return is_behind && launch->state == WAITS;
}

static unsigned int in_flight_of(unsigned int stream)
{
	unsigned int in_flight = 0;

	for (const struct modelled *launch = launches; launch < launches + LAUNCHES; launch++)
		in_flight += launch->stream == stream && launch->state != GONE;
	return in_flight;
}

static unsigned int in_front_of(const struct modelled *launch)
{
	unsigned int in_front = 0;

	for (const struct modelled *other = launches; other < launches + LAUNCHES; other++)
		in_front += other->stream == launch->stream && other->state != GONE && other->cookie < launch->cookie;
	return in_front;
}

static bool have_common_tpc(const struct qmd_mask *one, const struct qmd_mask *other)
{
	static const uint64_t present[] = {PRESENT_WORDS};

	bool have = false;

	for (unsigned int i = 0; i < 2; i++)
		have |= (~(one->words[i] | other->words[i]) & present[i]) != 0;
	return have;
}

struct walk {
	bool acts, stops;
	unsigned int visits;
	uint64_t turns[STREAMS];
};

static enum queue_answer visit(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	struct walk *walk = data;
	struct modelled *launch = launch_of(queued->cookie);
	enum queue_answer answer = some_below(4) > 0 ? QUEUE_CHANGE : QUEUE_LEAVE;

	if (queued->keeps_mask)
		return QUEUE_LEAVE;
	walk->visits++;
	visited++;
	if (!walk->acts) {
		assert_non_null(launch);
		assert_true(is_changeable(launch));
		assert_int_equal(queued->ahead, in_front_of(launch));
		assert_memory_equal(&queued->disable, &launch->disable, sizeof launch->disable);
		assert_true(queued->turn > walk->turns[launch->stream]);
		walk->turns[launch->stream] = queued->turn;
		assert_int_equal(queued->end.number, queued->cookie);
		assert_false(has_ended(queued->front.number));
	}
	for (unsigned int i = some_below(4); walk->acts && i > 0; i--)
		act();
	if (walk->stops && some_below(4) == 0)
		answer = QUEUE_STOP;
	*disable = random_mask();
	launch = launch_of(queued->cookie);
	if (answer == QUEUE_CHANGE && launch && is_changeable(launch) && have_common_tpc(&queued->disable, disable)) {
		launch->disable = *disable;
		written++;
	}
	return answer;
}

static unsigned int changeable(void)
{
	unsigned int number = 0;

	for (const struct modelled *launch = launches; launch < launches + LAUNCHES; launch++)
		number += is_changeable(launch);
	return number;
}

static void change(void)
{
	struct walk walk = {.acts = some_below(2), .stops = some_below(2)};
	bool again = some_below(2);
	unsigned int all = changeable();

	queue_walk(again, visit, &walk);
	if (again && !walk.acts && !walk.stops)
		assert_int_equal(walk.visits, all);
}

static void act(void)
{
	unsigned int stream = some_below(STREAMS), what = some_below(100);

	if (what < 40)
		launch_into(stream);
	else if (what < 65)
		start(stream);
	else if (what < 92)
		end(stream);
	else if (what < 95)
		wait_for_event(stream);
	else if (what < 97)
		interrupt();
	else if (what < 99)
		submit_foreign();
	else
		forget(stream);
}

static void prepare(void)
{
	struct qmd_mask present = {{PRESENT_WORDS}};

	if (!queue_prepare())
		skip_because("needs restartable sequences");
	gpu = (struct gpu){.family = qmd_family_for(9, 0), .has_masks = true, .present = present};
	if (!cells)
		cells = descriptor_cells(65536);
	for (unsigned int i = 0; i < STREAMS; i++)
		forget(i);
}

TEST(steps_in_any_order)
{
	prepare();
	for (unsigned int i = 0; i < 60000; i++) {
		ROW("step %u", i);
		if (some_below(8) == 0)
			change();
		else
			act();
		check();
	}
	print_message("# %llu launches, %llu visits, %llu masks written\n", (unsigned long long)count,
	              (unsigned long long)visited, (unsigned long long)written);
	assert_true(written > 1000);
}

/* --- walks ------------------------------------------------------------------------------------------------------ */

static enum queue_answer leave(void *left, const struct queued *queued, struct qmd_mask *disable)
{
	unsigned int *most = left;
	bool stops = !queued->keeps_mask && *most == 0;

	*most -= !queued->keeps_mask && !stops;
	return stops ? QUEUE_STOP : QUEUE_LEAVE;
}

static unsigned int visits_of(bool again, unsigned int most)
{
	unsigned int left = most;

	queue_walk(again, leave, &left);
	return most - left;
}

TEST(a_walk_goes_on_where_the_last_one_stopped)
{
	prepare();
	while (in_flight_of(0) < 6)
		launch_into(0);
	assert_int_equal(visits_of(false, 2), 2);
	assert_int_equal(visits_of(false, 2), 2);
	assert_int_equal(visits_of(false, 9), 1);
	assert_int_equal(visits_of(false, 9), 0);
	assert_int_equal(visits_of(true, 9), 5);
	assert_int_equal(visits_of(false, 9), 5);
	start(0);
	end(0);
	start(0);
	end(0);
	assert_int_equal(visits_of(true, 9), 3);
}

static enum queue_answer turn_over(void *unused, const struct queued *queued, struct qmd_mask *disable)
{
	for (unsigned int i = 0; i < 2; i++)
		disable->words[i] = ~queued->disable.words[i];
	return QUEUE_CHANGE;
}

/* Changes so many launches, and counts launches behind the changes. */
struct changes {
	unsigned int left, behind;
};

static enum queue_answer change_first(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	struct changes *changes = data;
	bool is_to_be_changed = !queued->keeps_mask && changes->left > 0;

	changes->behind += queued->is_behind_changes;
	changes->left -= is_to_be_changed;
	disable->words[0] = 0;
	return is_to_be_changed ? QUEUE_CHANGE : QUEUE_LEAVE;
}

/* No launch from there on has a different mask than in the call. */
TEST(behind_all_changes)
{
	struct changes first = {.left = 2}, then = {.left = 0};

	prepare();
	while (in_flight_of(0) < 8)
		launch_into(0);
	queue_walk(true, change_first, &first);
	queue_walk(true, change_first, &then);
	assert_each(first.left, 0, first.behind, 7, then.behind, 5);
}

static enum queue_answer disable_all(void *unused, const struct queued *queued, struct qmd_mask *disable)
{
	*disable = (struct qmd_mask){{PRESENT_WORDS}};
	return QUEUE_CHANGE;
}

/* A mix of both masks might have no TPC, and a launch without a TPC never ends. */
TEST(a_common_tpc_stays)
{
	prepare();
	while (in_flight_of(0) < 4)
		launch_into(0);
	assert_each(queue_walk(true, turn_over, NULL), 0, queue_walk(true, disable_all, NULL), 0);
	check();
}

/* A launch behind two launches of the first stream. */
static struct launch launch_behind(uint32_t *qmd)
{
	struct launch launch = {.context = context, .qmd = qmd, .gpu = &gpu, .releases = &releases};
	const struct qmd_mask disable = {{1, 0}};

	prepare();
	while (in_flight_of(0) < 2)
		launch_into(0);
	make_descriptor(qmd, count + 1, &disable);
	launch.frame.stream = handle(0);
	launch.frame.end = (struct launch_end){&cells[(count + 1) % LAUNCHES * 2], count + 1};
	return launch;
}

/* A caller that needs the ends of launches alone. */
TEST(masks_are_kept)
{
	unsigned char commands[SEGMENT_BYTES] = {0}, before[SEGMENT_BYTES];
	uint32_t qmd[QMD_SIZE / 4];
	struct launch launch = launch_behind(qmd);

	memcpy(commands + 64, qmd, sizeof qmd);
	memcpy(before, commands, sizeof before);
	unsigned int visits = visits_of(true, 9);

	queue_change_masks(false);
	assert_int_equal(note(&launch, commands, sizeof commands), QUEUE_KEPT);
	queue_change_masks(true);
	assert_memory_equal(commands, before, sizeof commands);
	assert_int_equal(launch.frame.turn, streams[0].turn + 1);
	assert_int_equal(launch.frame.front.number, count);
	assert_int_equal(visits_of(true, 9), visits);
}

TEST(a_descriptor_must_be_there_once)
{
	unsigned char commands[3 * QMD_SIZE] = {0};
	uint32_t qmd[QMD_SIZE / 4];
	struct launch launch = launch_behind(qmd);

	/* Not where the queue expects the descriptor: in front, or where the launch ahead has one. */
	memcpy(commands + QMD_SIZE / 2, qmd, sizeof qmd);
	memcpy(commands + 2 * QMD_SIZE, qmd, sizeof qmd);
	assert_int_equal(note(&launch, commands, sizeof commands), QUEUE_NOT_FOUND);
	assert_int_equal(note(&launch, commands, sizeof commands), QUEUE_UNKNOWN);
}

static atomic_bool is_in_change, may_go_on;

static enum queue_answer wait_in_change(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	atomic_store(&is_in_change, true);
	while (!atomic_load(&may_go_on))
		sched_yield();
	return QUEUE_STOP;
}

static void *change_slowly(void *unused)
{
	queue_walk(true, wait_in_change, NULL);
	return NULL;
}

static enum queue_answer walk_again(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	assert_int_equal(queue_walk(true, walk_again, NULL), -1);
	++*(unsigned int *)data;
	return QUEUE_STOP;
}

TEST(one_walk_at_a_time)
{
	unsigned int walks = 0;

	prepare();
	while (in_flight_of(0) < 3)
		launch_into(0);
	assert_int_equal(queue_walk(true, walk_again, &walks), 0);
	assert_int_equal(walks, 1);
}

/* The thread of the change does not exist in the child. */
TEST(forked_in_a_change)
{
	prepare();
	while (in_flight_of(0) < 3)
		launch_into(0);
	pthread_t thread = thread_start(change_slowly, NULL);

	while (!atomic_load(&is_in_change))
		sched_yield();
	pid_t child = fork();

	if (child == 0) {
		queue_after_fork();
		for (unsigned int i = 0; i < STREAMS; i++)
			forget(i);
		while (in_flight_of(0) < 3)
			launch_into(0);
		_exit(visits_of(true, 1) == 1 ? 0 : 1);
	}
	atomic_store(&may_go_on, true);
	pthread_join(thread, NULL);
	assert_ends_well(child);
}

RUN_TESTS(NULL, NULL)
