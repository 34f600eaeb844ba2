#include "descriptors.h"

#include <stdlib.h>

static bool have_room(struct frame *frame)
{
	size_t room = frame->written_room ? 2 * frame->written_room : 64;

	if (frame->written_count == frame->written_room) {
		struct graph_descriptor *list = realloc(frame->written, room * sizeof *list);

		if (!list)
			return false;
		frame->written = list;
		frame->written_room = room;
	}
	return true;
}

struct graph_descriptor *graph_descriptors_remember(struct launch *launch)
{
	struct frame *frame = &launch->frame;
	struct graph_descriptor *descriptor = NULL;

	if (have_room(frame)) {
		descriptor = &frame->written[frame->written_count++];
		*descriptor = (struct graph_descriptor){.qmd = launch->qmd, .place = launch->releases->place};
	}
	return descriptor;
}

void graph_descriptors_visit(const struct frame *frame, void (*visit)(const struct graph_descriptor *descriptor, void *data),
                             void *data)
{
	for (size_t i = 0; i < frame->written_count; i++)
		visit(&frame->written[i], data);
}

void graph_descriptors_restore(struct frame *frame)
{
	for (size_t i = 0; i < frame->written_count; i++)
		qmd_restore(frame->written[i].qmd, &frame->written[i].saved);
	free(frame->written);
	frame->written = NULL;
	frame->written_count = frame->written_room = 0;
}
