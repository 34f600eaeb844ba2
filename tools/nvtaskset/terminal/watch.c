#include "watch.h"

#include "base/clock.h"
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what happens between two displays ------------------------------------------------------------------------------ */

enum event {
	EVENT_TIME,   /* the next display is due */
	EVENT_SIGNAL,
	EVENT_KEY,
	EVENT_CLOSED  /* standard output has no reader any more */
};

int64_t event_now(void)
{
	return (int64_t)clock_ms();
}

int64_t event_due_after(int64_t due, double seconds)
{
	int64_t period = (int64_t)(seconds * 1000), time = event_now();

	return due + period > time ? due + period : time + period;
}

static enum event wait_once(int64_t until, int signals, int keys)
{
	struct pollfd files[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = keys, .events = POLLIN},
		{.fd = STDOUT_FILENO, .events = 0},
	};
	int64_t left = until - event_now();
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

/* Waits for an event, until `until`, as of event_now. `signals` and `keys` are descriptors, or -1. */
static enum event event_wait(int64_t until, int signals, int keys, const struct meanwhile *meanwhile)
{
	enum event event;
	bool is_due;

	do {
		int64_t next = meanwhile->act ? event_now() + meanwhile->every_ms : until;

		event = wait_once(next < until ? next : until, signals, keys);
		is_due = event_now() >= until;
		if (event == EVENT_TIME && !is_due && meanwhile->act)
			meanwhile->act(meanwhile->context);
	} while (event == EVENT_TIME && !is_due);
	return event;
}

int event_wait_until(int64_t until, const struct meanwhile *meanwhile, struct error *error)
{
	if (event_wait(until, -1, -1, meanwhile) != EVENT_CLOSED)
		return 0;
	raise(SIGPIPE);
	errno = EPIPE;
	return error_set_errno(error, "standard output");
}

/* --- displays ------------------------------------------------------------------------------------------------------- */

static const struct screen *shown; /* NULL: nothing is on the screen */

bool watch_is_wanted(void)
{
	static const struct meanwhile nothing;

	return shown && event_wait(0, shown->signals, shown->keys, &nothing) != EVENT_TIME;
}

/* In a file or a pipe, all rows. */
static int display(const struct watch *watch, struct error *error)
{
	struct terminal terminal = terminal_look();
	char *text = NULL;
	size_t length = 0;
	FILE *page = open_memstream(&text, &length);

	if (!page)
		return error_set(error, "no memory");
	terminal.rows = shown ? terminal.rows : TERMINAL_ENDLESS;
	int result = watch->draw(watch->subject, &terminal, page, error);

	if (fclose(page) != 0 && result == 0)
		result = error_set(error, "no memory");
	if (result == 0)
		result = shown ? screen_draw(text, &terminal, error) : terminal_write(text, length, error);
	free(text);
	return result;
}

/* --- a file or a pipe -------------------------------------------------------------------------------------------- */

static int watch_stream(const struct watch *watch, double seconds, bool once, struct error *error)
{
	int64_t due = watch->is_measured ? event_due_after(event_now(), seconds) : event_now();
	bool is_first = true;
	int result;

	do {
		result = event_wait_until(due, &watch->meanwhile, error);
		if (result == 0)
			result = watch->update(watch->subject, error);
		if (result == 0 && !is_first && !watch->is_data)
			result = terminal_write("\n", 1, error);
		if (result == 0)
			result = display(watch, error);
		due = event_due_after(watch->is_measured ? event_now() : due, seconds);
		is_first = false;
	} while (result == 0 && !once);
	return result;
}

/* --- one page after another, on the screen --------------------------------------------------------------------------- */

/* False if the keys, or that there are none any more, end it. */
static bool take_keys(const struct watch *watch, const struct screen *screen)
{
	char bytes[256];
	size_t length = screen_read_keys(screen, bytes, sizeof bytes);
	bool goes_on = length > 0;

	if (goes_on && watch->take_keys)
		goes_on = watch->take_keys(watch->subject, bytes, length);
	else if (goes_on)
		goes_on = !memchr(bytes, 'q', length) && !memchr(bytes, 'Q', length);
	return goes_on;
}

static int watch_screen(const struct watch *watch, double seconds, struct error *error)
{
	struct screen screen;
	bool goes_on = true;

	if (screen_open(&screen, error) < 0)
		return -1;
	shown = &screen;
	int64_t due = event_due_after(event_now(), seconds);
	int result = watch->is_measured ? 0 : watch->update(watch->subject, error);

	if (result == 0)
		result = display(watch, error);
	while (result == 0 && goes_on) {
		enum event event = event_wait(due, screen.signals, screen.keys, &watch->meanwhile);

		if (event == EVENT_SIGNAL) {
			screen_take_signal(&screen);
		} else if (event == EVENT_KEY) {
			goes_on = take_keys(watch, &screen);
		} else if (event == EVENT_CLOSED) {
			result = error_set(error, "standard output: the terminal is gone");
		} else {
			result = watch->update(watch->subject, error);
			due = event_due_after(due, seconds);
		}
		if (result == 0 && goes_on)
			result = display(watch, error);
	}
	shown = NULL;
	screen_close(&screen);
	return result;
}

/* ---------------------------------------------------------------------------------------------------------------------- */

int watch(const struct watch *watch, double seconds, bool once, struct error *error)
{
	terminal_use_locale();
	struct terminal terminal = terminal_look();

	return terminal.moves_cursor && !watch->is_data && !once ? watch_screen(watch, seconds, error)
	                                                        : watch_stream(watch, seconds, once, error);
}
