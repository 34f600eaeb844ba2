/*
 * The content of `nvtaskset top` as plain data: the look, filtered and sorted by the user's choices.
 */
#pragma once

#include "base/error.h"
#include "show/activity.h"
#include "show/cells.h"
#include "terminal/terminal.h"
#include "terminal/text.h"

/* X(cell, heading, whether a number, rank, widest cell, whether the column may be missing; see show/cells.h). The first
 * column is shown on every terminal. Numbers and quotas are sorted from the largest down, all but PID. */
#define TOP_COLUMNS(X)                                  \
	X(PID, "PID", true, 0, 0, false)                \
	X(USER, "USER", false, 9, 16, false)            \
	X(GPU, "GPU", false, 8, 0, false)               \
	X(TPCS, "TPCS", false, 12, 16, false)           \
	X(QUOTA, "QUOTA", false, 3, 0, true)            \
	X(PRIORITY, "PRIO", true, 4, 0, true)           \
	X(WEIGHT, "WEIGHT", true, 5, 0, true)           \
	X(LENDING, "LENDING", false, 6, 0, true)        \
	X(WORKLOAD, "WORKLOAD", false, 7, 32, true)     \
	X(BUSY, "BUSY%", true, 2, 0, false)             \
	X(TPC, "TPC%", true, 10, 0, false)              \
	X(RATE, "KERNELS/s", true, 7, 0, false)         \
	X(WAITING, "INFLIGHT", true, 11, 0, false)      \
	X(TIME, "TIME", true, 13, 0, false)             \
	X(MEMORY, "MEMORY", true, 8, 0, true)           \
	X(COMMAND, "COMMAND", false, 1, 0, false)

enum top_column {
#define TOP_COLUMN_ENUM(what, heading, number, rank, widest, may_be_missing) TOP_##what,
	TOP_COLUMNS(TOP_COLUMN_ENUM)
#undef TOP_COLUMN_ENUM
	TOP_COLUMN_COUNT
};

extern const struct column top_columns[TOP_COLUMN_COUNT];

#define VIEW_TEXT 64

enum prompt {
	PROMPT_NONE,
	PROMPT_USER,
	PROMPT_SEARCH
};

/* The user's choices. All zero but `sort` in the beginning. */
struct view {
	enum top_column sort;
	enum prompt prompt;     /* the text being typed */
	char user[VIEW_TEXT];   /* the begin of users' names; "": all */
	char search[VIEW_TEXT]; /* marks rows with this text; "": none */
	size_t first;           /* the row at the top of the table; for a single program, of its kernels */
	bool is_paused, is_help;
};

struct top_gpu {
	char label[PCI_ADDRESS_TEXT], name[TEXT_ROOM(TOPOLOGY_NAME_MAX)];
	struct pci_address pci;
};

struct model {
	pid_t pid;      /* the single process, with its kernels; 0: all processes */
	bool has_ended; /* the single process */
	size_t row_count;
	struct row *rows;
	size_t all_count; /* rows of all users */
	struct row *all;
	unsigned int gpu_count;
	struct top_gpu gpus[TOPOLOGY_GPUS_MAX];
	size_t kernel_count;
	const struct kernel_activity *kernels;
	const char *why_no_kernels;
	const char *why_no_times; /* of the first row without known times; or NULL */
	bool some_are_present, some_share; /* among rows with known times */
	bool some_are_hidden;
	double delay;   /* seconds between two looks */
};

/* Makes the model from a look, which must live as long. The caller frees the model. -1 with the reason, nothing to
 * free. */
int model_make(struct model *model, const struct activities *activities, const struct view *view, struct error *error);
void model_free(struct model *model);

/* Whether the row, or the kernel's name, contains the searched text. */
bool model_matches(const struct row *row, const char *search);
bool model_kernel_matches(const struct kernel_activity *kernel, const char *search);

/* --- layout.c ----------------------------------------------------------------------------------------------------- */

/*
 * The page of `nvtaskset top`: a pure function of the model, the user's choices and the terminal.
 *
 *   nvtaskset top: 2 programs, every 1 s
 *   GPU 0 [16013=============|16014======|                   ]  62.0% NVIDIA H200
 *     PID USER GPU TPCS BUSY% TPC% KERNELS/s INFLIGHT    TIME COMMAND
 *   16013 ana  0   0-31  91.3 44.3     20341        2 0:12.52 ./train
 *
 * No line is wider than the terminal, and no page is higher. The headings of the table are always there. Without enough
 * room, less important parts go.
 */
/* Writes whole lines. A terminal of TERMINAL_ENDLESS rows gets everything, and no line for keys. -1 without memory. */
int layout_draw(const struct model *model, const struct view *view, const struct terminal *terminal, FILE *page,
                struct error *error);

/* The most rows of the scrolled table on the page; for a single program, of the table of its kernels. */
size_t layout_rows(const struct model *model, const struct view *view, const struct terminal *terminal);

/* --- keys.c: keys, and their effects on the view ------------------------------------------------------------------ */

enum {
	KEY_NONE = 256, /* an unused key, or half of a key */
	KEY_ESCAPE,
	KEY_UP,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_F6,
	KEY_F10
};

/* Takes the first key of a terminal's bytes, at least one: a byte, or a key of the enum. */
int key_next(const char **bytes, size_t *length);

/* Changes the view. `page`: the rows that the table shows. False if the key ends the program. */
bool keys_take(struct view *view, int key, const struct model *model, size_t page);
