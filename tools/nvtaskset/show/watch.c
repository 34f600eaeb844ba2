#include "watch.h"

#include "base/clock.h"
#include "text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* ECMA-48 and xterm's private modes: 1049 the alternate screen, 25 the cursor, 7 lines that wrap, 2026 a frame that is
 * shown at once; a terminal ignores those that it does not know. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define FRAME_BEGIN "\033[?2026h\033[H"
#define FRAME_END "\033[?2026l"
#define ROW_END "\033[K"
#define ERASE_BELOW "\033[J"

/* --- one look ---------------------------------------------------------------------------------------------------- */

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

static int write_all(const char *text, size_t length, struct error *error)
{
	while (length > 0) {
		ssize_t written = write(STDOUT_FILENO, text, length);

		if (written < 0 && errno != EINTR)
			return error_set_errno(error, "standard output");
		text += written > 0 ? written : 0;
		length -= written > 0 ? (size_t)written : 0;
	}
	return 0;
}

/* --- what may happen between two looks ------------------------------------------------------------------------------ */

enum event {
	EVENT_TIME,   /* for the next look */
	EVENT_SIGNAL, /* one of those that are waited for */
	EVENT_KEY,
	EVENT_CLOSED  /* nobody reads what we write */
};

static int64_t now(void)
{
	return (int64_t)clock_ms();
}

/* Waits until `until`, in milliseconds. `signals` and `keys` are descriptors, or -1. */
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

/* When the look after the one that is due is due: in step, unless we were held up. */
static int64_t due_after(int64_t due, double seconds)
{
	int64_t period = (int64_t)(seconds * 1000), time = now();

	return due + period > time ? due + period : time + period;
}

/* As a write would: by the signal, or where that is ignored, by the error. */
static int end_closed(struct error *error)
{
	raise(SIGPIPE);
	errno = EPIPE;
	return error_set_errno(error, "standard output");
}

/* --- one look after another, to a file or a pipe -------------------------------------------------------------------- */

static int write_look(const struct view *view, bool first, struct error *error)
{
	struct terminal terminal = terminal_look();
	struct page page;
	int result = take_look(view, &terminal, &page, error);

	if (result == 0) {
		if (!first && !view->is_data)
			result = write_all("\n", 1, error);
		if (result == 0)
			result = write_all(page.text, page.length, error);
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

/* --- the screen ------------------------------------------------------------------------------------------------------ */

struct screen {
	int signals;           /* tells which signal came */
	int keys;              /* standard input, or -1 where it is no terminal */
	bool is_entered;
	struct termios before; /* what standard input was like before */
	sigset_t unblocked;    /* the signals that were blocked before */
};

/* Also where we are in it, and others have used the terminal meanwhile. */
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
	write_all(ENTER, sizeof ENTER - 1, NULL);
	screen->is_entered = true;
}

/* Also in the background, where to set the terminal would stop us. */
static void leave(struct screen *screen)
{
	sigset_t stop, before;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTTOU);
	sigprocmask(SIG_BLOCK, &stop, &before);
	write_all(LEAVE, sizeof LEAVE - 1, NULL);
	if (screen->keys >= 0)
		tcsetattr(screen->keys, TCSADRAIN, &screen->before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	screen->is_entered = false;
}

static int open_screen(struct screen *screen, struct error *error)
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

static void close_screen(struct screen *screen)
{
	leave(screen);
	close(screen->signals);
	sigprocmask(SIG_SETMASK, &screen->unblocked, NULL);
}

/* Does what the signal does to programs that do not expect it: ends or stops us, here. */
static void obey(int number)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
}

static void take_signal(struct screen *screen)
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

/* Whether it asks for the end. */
static bool take_key(const struct screen *screen)
{
	char key = 0;

	return read(screen->keys, &key, 1) <= 0 || key == 'q' || key == 'Q';
}

/* One row over what stood there. What follows a full row must not be erased: its last column would be. */
static void paint_row(FILE *frame, const char *line, unsigned int row, const struct terminal *terminal)
{
	fputs(row > 0 ? "\r\n" : "", frame);
	size_t width = text_print(frame, line, terminal->columns, terminal->utf8);

	fputs(width < terminal->columns ? ROW_END : "", frame);
}

/* As many lines as there are rows; where there are more, the last row says how many. */
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

static int draw_look(const struct view *view, struct error *error)
{
	struct terminal terminal = terminal_look();
	struct page page, frame;

	if (take_look(view, &terminal, &page, error) < 0)
		return -1;
	FILE *file = open_memstream(&frame.text, &frame.length);
	int result = file ? 0 : error_set(error, "no memory");

	if (file) {
		paint(file, page.text, &terminal);
		result = fclose(file) == 0 ? write_all(frame.text, frame.length, error) : error_set(error, "no memory");
		free(frame.text);
	}
	free(page.text);
	return result;
}

static int watch_screen(const struct view *view, double seconds, struct error *error)
{
	struct screen screen;
	bool ends = false;

	if (open_screen(&screen, error) < 0)
		return -1;
	int64_t due = now() + (int64_t)(seconds * 1000);
	int result = draw_look(view, error);

	while (result == 0 && !ends) {
		enum event event = wait_for(due, screen.signals, screen.keys);

		if (event == EVENT_SIGNAL)
			take_signal(&screen);
		else if (event == EVENT_KEY)
			ends = take_key(&screen);
		else if (event == EVENT_CLOSED)
			result = error_set(error, "standard output: the terminal is gone");
		else
			due = due_after(due, seconds);
		if (result == 0 && !ends)
			result = draw_look(view, error);
	}
	close_screen(&screen);
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
