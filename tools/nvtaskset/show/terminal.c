#include "terminal.h"

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

/* NO_COLOR counts where it is set and not empty: https://no-color.org */
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
