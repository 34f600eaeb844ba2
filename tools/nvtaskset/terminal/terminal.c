#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 80
#define ROWS_DEFAULT 24

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

/* NO_COLOR counts if it is set and not empty: https://no-color.org */
static enum terminal_colours colours(bool moves_cursor)
{
	enum terminal_colours colours = TERMINAL_PLAIN;

	if (moves_cursor && environment("NO_COLOR")[0] == '\0') {
		bool many = strstr(environment("TERM"), "256color") || environment("COLORTERM")[0] != '\0';

		colours = many ? TERMINAL_PALETTE : TERMINAL_BASIC;
	}
	return colours;
}

struct terminal terminal_look(void)
{
	const char *name = environment("TERM");
	struct winsize size = {.ws_col = 0};

	setlocale(LC_CTYPE, "");
	struct terminal terminal = {
		.is_terminal = isatty(STDOUT_FILENO),
		.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
		.columns = TERMINAL_ENDLESS,
		.rows = TERMINAL_ENDLESS,
	};

	terminal.moves_cursor = terminal.is_terminal && name[0] != '\0' && strcmp(name, "dumb") != 0;
	terminal.colours = colours(terminal.moves_cursor);
	if (terminal.is_terminal) {
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
		terminal.columns = size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
		terminal.rows = size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT;
	}
	return terminal;
}

static struct {
	int output; /* the same terminal, without waiting; or standard output */
	int file, after_ms;
} giving_up = {.output = STDOUT_FILENO, .file = -1, .after_ms = -1};

/* Opened anew: a program with the same standard output waits for its writes. */
void terminal_give_up(int file, int after_ms)
{
	if (giving_up.output != STDOUT_FILENO)
		close(giving_up.output);
	giving_up.output = file >= 0 ? open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
	                             : STDOUT_FILENO;
	if (giving_up.output < 0)
		giving_up.output = STDOUT_FILENO;
	giving_up.file = file;
	giving_up.after_ms = after_ms;
}

static bool has_room(void)
{
	struct pollfd files[] = {{.fd = giving_up.output, .events = POLLOUT}, {.fd = giving_up.file, .events = POLLIN}};

	return poll(files, 2, giving_up.after_ms) != 0 && files[1].revents == 0;
}

int terminal_write(const char *text, size_t length, struct error *error)
{
	while (length > 0) {
		ssize_t written = write(giving_up.output, text, length);

		if (written < 0 && errno == EAGAIN && !has_room())
			return 0;
		if (written < 0 && errno != EINTR && errno != EAGAIN)
			return error_set_errno(error, "standard output");
		text += written > 0 ? written : 0;
		length -= written > 0 ? (size_t)written : 0;
	}
	return 0;
}
