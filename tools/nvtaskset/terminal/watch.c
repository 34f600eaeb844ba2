#include "watch.h"

#include "base/clock.h"
#include "text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* --- the terminal's alternate screen ---------------------------------------------------------------------------------
 * Gives the terminal back unchanged. After that, signals that end or stop programs end or stop this process. */

struct screen {
	int signals;           /* a signalfd */
	int keys;              /* standard input, or -1 without a terminal */
	bool is_entered;
	struct termios before; /* the settings of standard input before */
	sigset_t unblocked;    /* the signal mask before */
};

/* ECMA-48, and private modes of xterm: 1049 is the alternate screen, 25 the cursor, 7 wrapping of lines, 2026 a frame
 * that is shown at once. Terminals ignore unknown modes. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define FRAME_BEGIN "\033[?2026h\033[H"
#define FRAME_END "\033[?2026l"
#define ROW_END "\033[K"
#define ERASE_BELOW "\033[J"

/* A terminal that takes nothing for this time is left as it is. */
#define LEAVE_MS 500

/* May be called twice, to set up the terminal again: a program may have used the terminal while we were stopped. */
static void enter(struct screen *screen)
{
	if (!screen->is_entered && screen->keys >= 0 && tcgetattr(screen->keys, &screen->before) < 0)
		screen->keys = -1;
	if (screen->keys >= 0) {
		struct termios keys = screen->before;

		keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		keys.c_cc[VMIN] = 1;
		keys.c_cc[VTIME] = 0;
		tcsetattr(screen->keys, TCSADRAIN, &keys);
	}
	terminal_give_up(screen->signals, -1);
	terminal_write(ENTER, sizeof ENTER - 1, NULL);
	screen->is_entered = true;
}

/* SIGTTOU is blocked: in the background, setting the terminal would stop us otherwise. */
static void leave(struct screen *screen)
{
	sigset_t stop, before;

	terminal_give_up(screen->signals, LEAVE_MS);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTTOU);
	sigprocmask(SIG_BLOCK, &stop, &before);
	terminal_write(LEAVE, sizeof LEAVE - 1, NULL);
	if (screen->keys >= 0)
		tcsetattr(screen->keys, TCSADRAIN, &screen->before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	screen->is_entered = false;
}

/* -1 with the reason, and nothing to close. */
static int screen_open(struct screen *screen, struct error *error)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sigaddset(&signals, numbers[i]);
	screen->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	if (screen->signals < 0)
		return error_set_errno(error, "signals");
	sigprocmask(SIG_BLOCK, &signals, &screen->unblocked);
	screen->is_entered = false;
	screen->keys = isatty(STDIN_FILENO) ? STDIN_FILENO : -1;
	enter(screen);
	return 0;
}

static void screen_close(struct screen *screen)
{
	leave(screen);
	terminal_give_up(-1, -1);
	close(screen->signals);
	sigprocmask(SIG_SETMASK, &screen->unblocked, NULL);
}

/* Takes the default action of the signal, which ends or stops us here. */
static void obey(int number)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
}

/* Once `signals` can be read. */
static void screen_take_signal(struct screen *screen)
{
	struct signalfd_siginfo signal;

	if (read(screen->signals, &signal, sizeof signal) != sizeof signal)
		return;
	if (signal.ssi_signo != SIGCONT && signal.ssi_signo != SIGWINCH) {
		leave(screen);
		obey((int)signal.ssi_signo);
	}
	if (signal.ssi_signo != SIGWINCH)
		enter(screen);
}

/* --- the content of the screen ------------------------------------------------------------------------------------ */

/* Overwrites a row. After a full row, nothing may be erased: terminals would erase the last column. */
static void paint_row(FILE *frame, const char *line, unsigned int row, const struct terminal *terminal)
{
	fputs(row > 0 ? "\r\n" : "", frame);
	size_t width = text_print(frame, line, terminal->columns, terminal->utf8);

	fputs(width < terminal->columns ? ROW_END : "", frame);
}

static void paint(FILE *frame, char *text, const struct terminal *terminal)
{
	unsigned int lines = 0, row = 0;
	char more[64];

	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	unsigned int shown = lines <= terminal->rows ? lines : terminal->rows - 1;

	fputs(FRAME_BEGIN, frame);
	for (char *line = text, *end; row < shown; row++, line = end + 1) {
		end = strchr(line, '\n');
		*end = '\0';
		paint_row(frame, line, row, terminal);
	}
	if (shown < lines) {
		snprintf(more, sizeof more, "(%u more lines)", lines - shown);
		paint_row(frame, more, row++, terminal);
	}
	if (row < terminal->rows)
		fputs(row > 0 ? "\r\n" ERASE_BELOW : ERASE_BELOW, frame);
	fputs(FRAME_END, frame);
}

/* Shows lines in place of the lines before. The last row tells the number of missing lines. Uses up `text`. -1 with the
 * reason. */
static int screen_draw(char *text, const struct terminal *terminal, struct error *error)
{
	char *frame;
	size_t length;
	FILE *file = open_memstream(&frame, &length);

	if (!file)
		return error_set(error, "no memory");
	paint(file, text, terminal);
	int result = fclose(file) == 0 ? terminal_write(frame, length, error) : error_set(error, "no memory");

	free(frame);
	return result;
}

/* --- between two displays ----------------------------------------------------------------------------------------- */

enum event {
	EVENT_TIME,   /* the next display is due */
	EVENT_SIGNAL,
	EVENT_KEY,
	EVENT_CLOSED  /* standard output has no reader any more */
};

int64_t watch_event_now(void)
{
	return (int64_t)clock_ms();
}

int64_t watch_event_due_after(int64_t due, double seconds)
{
	int64_t period = (int64_t)(seconds * 1000), time = watch_event_now();

	return due + period > time ? due + period : time + period;
}

static enum event wait_once(int64_t until, int signals, int keys)
{
	struct pollfd files[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = keys, .events = POLLIN},
		{.fd = STDOUT_FILENO, .events = 0},
	};
	int64_t left = until - watch_event_now();
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

/* Waits for an event, until `until`, as of watch_event_now. `signals` and `keys` are descriptors, or -1. */
static enum event event_wait(int64_t until, int signals, int keys, const struct meanwhile *meanwhile)
{
	enum event event;
	bool is_due;

	do {
		int64_t next = meanwhile->act ? watch_event_now() + meanwhile->every_ms : until;

		event = wait_once(next < until ? next : until, signals, keys);
		is_due = watch_event_now() >= until;
		if (event == EVENT_TIME && !is_due && meanwhile->act)
			meanwhile->act(meanwhile->context);
	} while (event == EVENT_TIME && !is_due);
	return event;
}

int watch_wait_until(int64_t until, const struct meanwhile *meanwhile, struct error *error)
{
	if (event_wait(until, -1, -1, meanwhile) != EVENT_CLOSED)
		return 0;
	raise(SIGPIPE);
	errno = EPIPE;
	return error_set_errno(error, "standard output");
}

/* --- displays ----------------------------------------------------------------------------------------------------- */

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
	int64_t due = watch->is_measured ? watch_event_due_after(watch_event_now(), seconds) : watch_event_now();
	bool is_first = true;
	int result;

	do {
		result = watch_wait_until(due, &watch->meanwhile, error);
		if (result == 0)
			result = watch->update(watch->subject, error);
		if (result == 0 && !is_first && !watch->is_data)
			result = terminal_write("\n", 1, error);
		if (result == 0)
			result = display(watch, error);
		due = watch_event_due_after(watch->is_measured ? watch_event_now() : due, seconds);
		is_first = false;
	} while (result == 0 && !once);
	return result;
}

/* --- one page after another, on the screen ------------------------------------------------------------------------ */

/* False if a key, or the loss of the keyboard, ends the display. */
static bool take_keys(const struct watch *watch, const struct screen *screen)
{
	char bytes[256];
	ssize_t length = read(screen->keys, bytes, sizeof bytes);
	bool goes_on = length > 0; /* else the keyboard is gone */

	if (goes_on && watch->take_keys)
		goes_on = watch->take_keys(watch->subject, bytes, (size_t)length);
	else if (goes_on)
		goes_on = !memchr(bytes, 'q', (size_t)length) && !memchr(bytes, 'Q', (size_t)length);
	return goes_on;
}

static int watch_screen(const struct watch *watch, double seconds, struct error *error)
{
	struct screen screen;
	bool goes_on = true;

	if (screen_open(&screen, error) < 0)
		return -1;
	shown = &screen;
	int64_t due = watch_event_due_after(watch_event_now(), seconds);
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
			due = watch_event_due_after(due, seconds);
		}
		if (result == 0 && goes_on)
			result = display(watch, error);
	}
	shown = NULL;
	screen_close(&screen);
	return result;
}

/* ------------------------------------------------------------------------------------------------------------------ */

int watch(const struct watch *watch, double seconds, bool once, struct error *error)
{
	struct terminal terminal = terminal_look();

	return terminal.moves_cursor && !watch->is_data && !once ? watch_screen(watch, seconds, error)
	                                                        : watch_stream(watch, seconds, once, error);
}
