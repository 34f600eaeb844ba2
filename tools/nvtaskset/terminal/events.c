#include "events.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

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

enum event event_wait(int64_t until, int signals, int keys, const struct meanwhile *meanwhile)
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
