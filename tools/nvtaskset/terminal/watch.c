#include "watch.h"

#include "events.h"
#include "screen.h"

#include <stdlib.h>

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
	int64_t due = event_now();
	int result = write_look(view, true, error);

	while (result == 0) {
		due = event_due_after(due, seconds);
		if (event_wait(due, -1, -1) == EVENT_CLOSED)
			result = event_end_closed(error);
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
	int64_t due = event_now() + (int64_t)(seconds * 1000);
	int result = draw_look(view, error);

	while (result == 0 && !ends) {
		enum event event = event_wait(due, screen.signals, screen.keys);

		if (event == EVENT_SIGNAL)
			screen_take_signal(&screen);
		else if (event == EVENT_KEY)
			ends = screen_take_key(&screen);
		else if (event == EVENT_CLOSED)
			result = error_set(error, "standard output: the terminal is gone");
		else
			due = event_due_after(due, seconds);
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
