#include "model.h"

#include <string.h>

#define BACKSPACE 0x7f

/* --- keys --------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *sequence; /* behind the escape character, as from xterm and similar terminals */
	int key;
} sequences[] = {
	{"[A", KEY_UP},       {"OA", KEY_UP},      {"[B", KEY_DOWN},       {"OB", KEY_DOWN},
	{"[5~", KEY_PAGE_UP}, {"[6~", KEY_PAGE_DOWN},
	{"[H", KEY_HOME},     {"OH", KEY_HOME},    {"[1~", KEY_HOME},      {"[F", KEY_END},   {"OF", KEY_END},
	{"[4~", KEY_END},
	{"[17~", KEY_F6},     {"[21~", KEY_F10},
};

/* The bytes of an escape sequence, without the escape character: ECMA-48's CSI and SS3. */
static size_t sequence_length(const char *bytes, size_t length)
{
	size_t end = 1;

	if (bytes[0] == 'O')
		return length > 1 ? 2 : 1;
	while (end < length && !(bytes[end] >= 0x40 && bytes[end] <= 0x7e))
		end++;
	return end < length ? end + 1 : end;
}

static int find_sequence(const char *bytes, size_t length)
{
	int key = KEY_NONE;

	for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
		if (strlen(sequences[i].sequence) == length && memcmp(sequences[i].sequence, bytes, length) == 0)
			key = sequences[i].key;
	}
	return key;
}

int key_next(const char **bytes, size_t *length)
{
	int key = (unsigned char)(*bytes)[0];
	size_t taken = 1;

	if (key == '\033' && *length > 1 && ((*bytes)[1] == '[' || (*bytes)[1] == 'O')) {
		size_t rest = sequence_length(*bytes + 1, *length - 1);

		key = find_sequence(*bytes + 1, rest);
		taken += rest;
	} else if (key == '\033') {
		key = KEY_ESCAPE;
	}
	*bytes += taken;
	*length -= taken;
	return key;
}

/* --- the view ----------------------------------------------------------------------------------------------------- */

static size_t count_rows(const struct model *model)
{
	return model->pid == 0 ? model->row_count : model->kernel_count;
}

static void go_to(struct view *view, size_t row, const struct model *model)
{
	size_t count = count_rows(model), last = count > 0 ? count - 1 : 0;

	view->first = row < last ? row : last;
}

/* Goes to the next row with the text, from `from` on and then from the top. */
static void search_from(struct view *view, size_t from, const struct model *model)
{
	size_t count = count_rows(model);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		size_t row = (from + i) % count;

		found = model->pid == 0 ? model_matches(&model->rows[row], view->search)
		                        : model_kernel_matches(&model->kernels[row], view->search);
		if (found)
			go_to(view, row, model);
	}
}

static void rub_out(char *text)
{
	size_t length = strlen(text);

	while (length > 1 && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	text[length > 0 ? length - 1 : 0] = '\0';
}

static void type_into(struct view *view, int key, const struct model *model)
{
	char *text = view->prompt == PROMPT_USER ? view->user : view->search;
	size_t length = strlen(text);

	if (key == '\r' || key == '\n') {
		view->prompt = PROMPT_NONE;
	} else if (key == KEY_ESCAPE) {
		text[0] = '\0';
		view->prompt = PROMPT_NONE;
	} else if (key == BACKSPACE || key == '\b') {
		rub_out(text);
	} else if (key >= ' ' && key < KEY_NONE && length < VIEW_TEXT - 1) {
		text[length] = (char)key;
		text[length + 1] = '\0';
	}
	if (view->prompt == PROMPT_SEARCH)
		search_from(view, view->first, model);
}

static void begin_prompt(struct view *view, enum prompt prompt)
{
	view->prompt = prompt;
	(prompt == PROMPT_USER ? view->user : view->search)[0] = '\0';
}

static void sort_by(struct view *view, unsigned int column)
{
	view->sort = (enum top_column)(column % TOP_COLUMN_COUNT);
	view->first = 0;
}

static bool take_command(struct view *view, int key, const struct model *model, size_t page)
{
	bool goes_on = true;

	switch (key) {
	case 'q':
	case 'Q':
	case KEY_F10:
		goes_on = false;
		break;
	case 'P':
		sort_by(view, TOP_BUSY);
		break;
	case 'T':
		sort_by(view, TOP_TIME);
		break;
	case '<':
		sort_by(view, view->sort + TOP_COLUMN_COUNT - 1);
		break;
	case '>':
	case KEY_F6:
		sort_by(view, view->sort + 1);
		break;
	case 'u':
		begin_prompt(view, PROMPT_USER);
		break;
	case '/':
		begin_prompt(view, PROMPT_SEARCH);
		break;
	case 'n':
		search_from(view, view->first + 1, model);
		break;
	case 'Z':
		view->is_paused = !view->is_paused;
		break;
	case '?':
	case 'h':
	case 'k': /* a signal in htop; the help names kill */
		view->is_help = true;
		break;
	case KEY_UP:
		go_to(view, view->first > 0 ? view->first - 1 : 0, model);
		break;
	case KEY_DOWN:
		go_to(view, view->first + 1, model);
		break;
	case KEY_PAGE_UP:
		go_to(view, view->first > page ? view->first - page : 0, model);
		break;
	case KEY_PAGE_DOWN:
		go_to(view, view->first + page, model);
		break;
	case KEY_HOME:
		go_to(view, 0, model);
		break;
	case KEY_END:
		go_to(view, count_rows(model), model);
		break;
	default:
		break;
	}
	return goes_on;
}

bool keys_take(struct view *view, int key, const struct model *model, size_t page)
{
	bool goes_on = true;

	if (view->prompt != PROMPT_NONE)
		type_into(view, key, model);
	else if (view->is_help)
		view->is_help = false;
	else
		goes_on = take_command(view, key, model, page);
	return goes_on;
}
