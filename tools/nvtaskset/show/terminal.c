#include "terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 80
#define ROWS_DEFAULT 24

void terminal_use_locale(void)
{
	setlocale(LC_CTYPE, "");
}

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

static void measure(struct terminal *terminal)
{
	struct winsize size = {.ws_col = 0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	terminal->columns = size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
	terminal->rows = size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT;
}

struct terminal terminal_look(void)
{
	const char *name = environment("TERM");
	struct terminal terminal = {
		.is_terminal = isatty(STDOUT_FILENO),
		.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
		.columns = TERMINAL_ENDLESS,
		.rows = TERMINAL_ENDLESS,
	};

	terminal.moves_cursor = terminal.is_terminal && name[0] != '\0' && strcmp(name, "dumb") != 0;
	terminal.colours = colours(terminal.moves_cursor);
	if (terminal.is_terminal)
		measure(&terminal);
	return terminal;
}

int terminal_write(const char *text, size_t length, struct error *error)
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
