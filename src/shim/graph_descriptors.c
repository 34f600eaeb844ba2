#include "graph_descriptors.h"

#include "escape.h"

#include <stdlib.h>

struct written {
	const struct qmd_family *family;
	void *qmd;
	struct qmd_saved saved;
};

/* Descriptors written in this thread's current call. */
static __thread struct {
	struct written *list;
	size_t count;
	size_t room;
} written __attribute__((tls_model("initial-exec")));

void graph_descriptors_remember(const struct qmd_family *family, void *qmd)
{
	if (written.count == written.room) {
		size_t room = written.room ? 2 * written.room : 64;
		struct written *list = realloc(written.list, room * sizeof *list);

		if (!list) {
			/* It cannot be put back: what is disabled now stays disabled. */
			escape_note(SEGMENT_STALE_GRAPH);
			return;
		}
		written.list = list;
		written.room = room;
	}
	written.list[written.count++] =
		(struct written){.family = family, .qmd = qmd, .saved = qmd_save(family, qmd)};
}

void graph_descriptors_restore(void)
{
	for (size_t i = 0; i < written.count; i++)
		qmd_restore(written.list[i].family, written.list[i].qmd, &written.list[i].saved);
	free(written.list);
	written.list = NULL;
	written.count = written.room = 0;
}
