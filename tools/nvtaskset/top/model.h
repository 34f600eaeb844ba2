/*
 * The content of `nvtaskset top` as plain data: the look, filtered and sorted by the user's choices.
 */
#pragma once

#include "show/activity.h"
#include "show/cells.h"
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
