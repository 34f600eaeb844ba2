#include "screen.h"

#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* ECMA-48, and private modes of xterm: 1049 is the alternate screen, 25 the cursor, 7 wrapping of lines, 2026 a frame
 * that is shown at once. Terminals ignore modes that they do not know. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define FRAME_BEGIN "\033[?2026h\033[H"
#define FRAME_END "\033[?2026l"
#define ROW_END "\033[K"
#define ERASE_BELOW "\033[J"

/* A terminal that takes nothing for so long is left as it is. */
#define LEAVE_MS 500

/* May be called twice, to set up the terminal again: other programs may have used it while we were stopped. */
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

int screen_open(struct screen *screen, struct error *error)
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

void screen_close(struct screen *screen)
{
	leave(screen);
	terminal_give_up(-1, -1);
	close(screen->signals);
	sigprocmask(SIG_SETMASK, &screen->unblocked, NULL);
}

/* Takes the default action of the signal: this ends or stops us here. */
static void obey(int number)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
}

void screen_take_signal(struct screen *screen)
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

size_t screen_read_keys(const struct screen *screen, char *bytes, size_t room)
{
	ssize_t length = read(screen->keys, bytes, room);

	return length > 0 ? (size_t)length : 0;
}

/* --- what is on it ---------------------------------------------------------------------------------------------- */

/* Overwrites a row. After a row that fills all columns, nothing may be erased: terminals would erase its last
 * column. */
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

int screen_draw(char *text, const struct terminal *terminal, struct error *error)
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
