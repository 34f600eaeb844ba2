#include "cli/actions.h"
#include "state/segment/find.h"

#include "cli/option_values.h"
#include "document.h"
#include "keys.h"
#include "layout.h"
#include "show/json.h"
#include "terminal/events.h"
#include "terminal/screen.h"

#include <stdlib.h>

struct subject {
	const struct options *options;
	struct topology_list gpus;
	struct activities activities;
	struct view view;
};

/* --- looks ------------------------------------------------------------------------------------------------------------ */

/* There must be such a process when we begin. */
static int check_pid(const struct subject *subject, struct error *error)
{
	pid_t pid = subject->activities.kernels_of;
	struct segment segment;
	struct segment_revision revision;
	uint64_t number;
	int result = 0;

	if (pid != 0 && !processes_find(&subject->activities.processes, pid)) {
		result = -1;
		if (segment_open(&segment, pid, error) == SEGMENT_FOUND) {
			bool is_whole = segment_read(&segment, &revision, &number);

			segment_close(&segment);
			error_set(error, "pid %d: %s", (int)pid, is_whole ? "it has just ended" : "its segment is damaged");
		}
	}
	return result;
}

static int draw(const struct subject *subject, const struct terminal *terminal, FILE *page, struct error *error)
{
	struct model model;
	int result = model_make(&model, &subject->activities, &subject->view, error);

	if (result == 0) {
		model.delay = subject->options->delay_seconds;
		result = layout_draw(&model, &subject->view, terminal, page, error);
		model_free(&model);
	}
	return result;
}

/* Waits as event_wait does, and reads times meanwhile: while it is paused, programs pay for nothing. */
static enum event wait_for(struct subject *subject, int64_t until, int signals, int keys)
{
	enum event event = EVENT_TIME;

	for (int64_t now = event_now(); event == EVENT_TIME && now < until; now = event_now()) {
		int64_t next = now + LOOK_TAKE_MS;

		event = event_wait(next < until ? next : until, signals, keys);
		if (event == EVENT_TIME && !subject->view.is_paused)
			activities_keep_up(&subject->activities);
	}
	return event;
}

/* --- one page or document after the other ----------------------------------------------------------------------------- */

/* Rates need two looks. */
static int look_twice(struct subject *subject, struct error *error)
{
	int64_t due = event_due_after(event_now(), subject->options->delay_seconds);

	if (wait_for(subject, due, -1, -1) == EVENT_CLOSED)
		return event_end_closed(error);
	return activities_look(&subject->activities, &subject->gpus, error);
}

static int print_page(struct subject *subject, struct error *error)
{
	struct terminal terminal = terminal_look();

	terminal.rows = TERMINAL_ENDLESS;
	return look_twice(subject, error) == 0 ? draw(subject, &terminal, stdout, error) : -1;
}

static int print_documents(struct subject *subject, struct error *error)
{
	bool once = subject->options->once;
	int result;

	do {
		result = look_twice(subject, error);
		if (result == 0)
			result = json_write(document_of(&subject->activities), !once, stdout, error);
		if (result == 0 && fflush(stdout) != 0)
			result = error_set_errno(error, "standard output");
	} while (result == 0 && !once);
	return result;
}

/* --- on the screen ------------------------------------------------------------------------------------------------------ */

static int draw_on_screen(const struct subject *subject, struct error *error)
{
	struct terminal terminal = terminal_look();
	char *text = NULL;
	size_t length = 0;
	FILE *page = open_memstream(&text, &length);

	if (!page)
		return error_set(error, "no memory");
	int result = draw(subject, &terminal, page, error);

	if (fclose(page) != 0 && result == 0)
		result = error_set(error, "no memory");
	if (result == 0)
		result = screen_draw(text, &terminal, error);
	free(text);
	return result;
}

/* False if a key ends the program. */
static bool take_keys(struct subject *subject, const struct screen *screen, struct error *error)
{
	struct terminal terminal = terminal_look();
	char bytes[256];
	const char *at = bytes;
	size_t length = screen_read_keys(screen, bytes, sizeof bytes);
	bool goes_on = length > 0;

	while (length > 0 && goes_on) {
		struct model model;

		goes_on = model_make(&model, &subject->activities, &subject->view, error) == 0;
		if (goes_on) {
			size_t rows = layout_rows(&model, &subject->view, &terminal);

			goes_on = view_take_key(&subject->view, key_next(&at, &length), &model, rows);
			model_free(&model);
		}
	}
	return goes_on;
}

/* Also in the middle of a look at many programs. */
static bool has_key_or_signal(void *context)
{
	const struct screen *screen = context;

	return event_wait(0, screen->signals, screen->keys) != EVENT_TIME;
}

static int show_on_screen(struct subject *subject, struct error *error)
{
	double delay = subject->options->delay_seconds;
	struct screen screen;
	bool goes_on = true;

	if (screen_open(&screen, error) < 0)
		return -1;
	int64_t due = event_due_after(event_now(), delay);
	int result = draw_on_screen(subject, error);

	subject->activities.watched.is_wanted = has_key_or_signal;
	subject->activities.watched.context = &screen;

	while (result == 0 && goes_on) {
		enum event event = wait_for(subject, due, screen.signals, screen.keys);

		if (event == EVENT_SIGNAL)
			screen_take_signal(&screen);
		else if (event == EVENT_KEY)
			goes_on = take_keys(subject, &screen, error);
		else if (event == EVENT_CLOSED)
			result = error_set(error, "standard output: the terminal is gone");
		else if (!subject->view.is_paused)
			result = activities_look(&subject->activities, &subject->gpus, error);
		if (event == EVENT_TIME)
			due = event_due_after(due, delay);
		if (result == 0 && goes_on)
			result = draw_on_screen(subject, error);
	}
	subject->activities.watched.is_wanted = NULL;
	subject->activities.watched.context = NULL;
	screen_close(&screen);
	return result;
}

/* ---------------------------------------------------------------------------------------------------------------------- */

static int show(struct subject *subject, struct error *error)
{
	const struct options *options = subject->options;
	struct terminal terminal = terminal_look();
	int result = activities_look(&subject->activities, &subject->gpus, error);

	if (result == 0)
		result = check_pid(subject, error);
	if (result == 0 && options->json)
		result = print_documents(subject, error);
	else if (result == 0 && (options->once || !terminal.moves_cursor))
		result = print_page(subject, error);
	else if (result == 0)
		result = show_on_screen(subject, error);
	return result;
}

int action_top(const struct options *options, struct error *error)
{
	static struct subject subject = {.view = {.sort = TOP_BUSY}}; /* large */
	struct error why;

	subject.options = options;
	subject.activities.measures_times = true;
	terminal_use_locale();
	if (options->pid && option_pid(&subject.activities.kernels_of, options->pid, error) < 0)
		return -1;
	/* Without topologies, the bus id names the GPU. */
	if (topology_load(&subject.gpus, &why) < 0) {
		subject.gpus.count = 0;
		fprintf(stderr, "nvtaskset: %s; GPUs are shown by their programs only\n", why.reason);
	}
	int result = show(&subject, error);

	activities_free(&subject.activities);
	return result;
}
