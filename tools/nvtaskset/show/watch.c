#include "watch.h"

#include "base/clock.h"
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* --- one display ------------------------------------------------------------------------------------------------- */

struct page {
	char *text;
	size_t length;
};

static int take_look(const struct view *view, const struct terminal *terminal, struct page *page, struct error *error)
{
	FILE *file = open_memstream(&page->text, &page->length);

	if (!file)
		return error_set(error, "no memory");
	int result = view->look(view->subject, terminal, file, error);

	if (fclose(file) != 0 && result == 0)
		result = error_set(error, "no memory");
	if (result < 0)
		free(page->text);
	return result;
}

/* --- events between two displays --------------------------------------------------------------------------------- */

enum event {
	EVENT_TIME,   /* the next display is due */
	EVENT_SIGNAL,
	EVENT_KEY,
	EVENT_CLOSED  /* standard output has no reader any more */
};

static int64_t now(void)
{
	return (int64_t)clock_ms();
}

/* Waits for an event, until `until` (in milliseconds, as from now()). `signals` and `keys` are descriptors, or -1. */
static enum event wait_for(int64_t until, int signals, int keys)
{
	struct pollfd files[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = keys, .events = POLLIN},
		{.fd = STDOUT_FILENO, .events = 0},
	};
	int64_t left = until - now();
	enum event event = EVENT_TIME;

	if (poll(files, 3, left > 0 ? (int)left : 0) > 0) {
		if (files[0].revents)
			event = EVENT_SIGNAL;
		else if (files[2].revents)
			event = EVENT_CLOSED;
		else
			event = EVENT_KEY;
	}
	return event;
}

/* When the display after the one at `due` is due: `seconds` later, or `seconds` from now if that has passed already. */
static int64_t due_after(int64_t due, double seconds)
{
	int64_t period = (int64_t)(seconds * 1000), time = now();

	return due + period > time ? due + period : time + period;
}

/* Ends as a write to a closed pipe would: by SIGPIPE, or by an error if that is ignored. */
static int end_closed(struct error *error)
{
	raise(SIGPIPE);
	errno = EPIPE;
	return error_set_errno(error, "standard output");
}

/* --- a file or a pipe -------------------------------------------------------------------------------------------- */

static int write_look(const struct view *view, bool first, struct error *error)
{
	struct terminal terminal = terminal_look();
	struct page page;
	int result = take_look(view, &terminal, &page, error);

	if (result == 0) {
		if (!first && !view->is_data)
			result = terminal_write("\n", 1, error);
		if (result == 0)
			result = terminal_write(page.text, page.length, error);
		free(page.text);
	}
	return result;
}

static int watch_stream(const struct view *view, double seconds, struct error *error)
{
	int64_t due = now();
	int result = write_look(view, true, error);

	while (result == 0) {
		due = due_after(due, seconds);
		if (wait_for(due, -1, -1) == EVENT_CLOSED)
			result = end_closed(error);
		else
			result = write_look(view, false, error);
	}
	return result;
}

/* --- one look after another, on the screen --------------------------------------------------------------------------- */

static int draw_look(const struct view *view, struct error *error)
{
	struct terminal terminal = terminal_look();
	struct page page;

	if (take_look(view, &terminal, &page, error) < 0)
		return -1;
	int result = screen_draw(page.text, &terminal, error);

	free(page.text);
	return result;
}

static int watch_screen(const struct view *view, double seconds, struct error *error)
{
	struct screen screen;
	bool ends = false;

	if (screen_open(&screen, error) < 0)
		return -1;
	int64_t due = now() + (int64_t)(seconds * 1000);
	int result = draw_look(view, error);

	while (result == 0 && !ends) {
		enum event event = wait_for(due, screen.signals, screen.keys);

		if (event == EVENT_SIGNAL)
			screen_take_signal(&screen);
		else if (event == EVENT_KEY)
			ends = screen_take_key(&screen);
		else if (event == EVENT_CLOSED)
			result = error_set(error, "standard output: the terminal is gone");
		else
			due = due_after(due, seconds);
		if (result == 0 && !ends)
			result = draw_look(view, error);
	}
	screen_close(&screen);
	return result;
}

/* ---------------------------------------------------------------------------------------------------------------------- */

int watch(const struct view *view, double seconds, struct error *error)
{
	int result;

	terminal_use_locale();
	struct terminal terminal = terminal_look();

	if (seconds <= 0)
		result = write_look(view, true, error);
	else if (terminal.moves_cursor && !view->is_data)
		result = watch_screen(view, seconds, error);
	else
		result = watch_stream(view, seconds, error);
	return result;
}
