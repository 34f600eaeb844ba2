#include "descriptors.h"

#include "driver/gpus.h"

#include <stdlib.h>

/* Descriptors written in this thread's current call. */
static __thread struct {
	struct graph_descriptor *list;
	size_t count;
	size_t room;
} written __attribute__((tls_model("initial-exec")));

static bool have_room(void)
{
	size_t room = written.room ? 2 * written.room : 64;

	if (written.count == written.room) {
		struct graph_descriptor *list = realloc(written.list, room * sizeof *list);

		if (!list)
			return false;
		written.list = list;
		written.room = room;
	}
	return true;
}

struct graph_descriptor *graph_descriptors_remember(const struct launch *launch, const struct qmd_release *release)
{
	const struct qmd_family *family = launch->gpu ? launch->gpu->family : NULL;
	struct graph_descriptor *descriptor = NULL;

	if (have_room()) {
		descriptor = &written.list[written.count++];
		*descriptor = (struct graph_descriptor){.qmd = launch->qmd, .release = release};
		if (launch->releases)
			descriptor->place = launch->releases->place;
		if (family && qmd_is_known(family, launch->qmd)) {
			descriptor->family = family;
			descriptor->mask = qmd_save(family, launch->qmd);
		}
		if (release)
			descriptor->slot = qmd_save_slot(release, launch->qmd);
	}
	return descriptor;
}

void graph_descriptors_save_stamp(struct graph_descriptor *descriptor, const struct qmd_release *release)
{
	descriptor->stamp = release;
	descriptor->stamp_slot = qmd_save_slot(release, descriptor->qmd);
}

void graph_descriptors_visit(void (*visit)(const struct graph_descriptor *descriptor, void *data), void *data)
{
	for (size_t i = 0; i < written.count; i++)
		visit(&written.list[i], data);
}

static void restore(const struct graph_descriptor *descriptor)
{
	if (descriptor->family)
		qmd_restore(descriptor->family, descriptor->qmd, &descriptor->mask);
	if (descriptor->release)
		qmd_restore_slot(descriptor->release, descriptor->qmd, &descriptor->slot);
	if (descriptor->stamp)
		qmd_restore_slot(descriptor->stamp, descriptor->qmd, &descriptor->stamp_slot);
}

void graph_descriptors_restore(void)
{
	for (size_t i = 0; i < written.count; i++)
		restore(&written.list[i]);
	free(written.list);
	written.list = NULL;
	written.count = written.room = 0;
}
