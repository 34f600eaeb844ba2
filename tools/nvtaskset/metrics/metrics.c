#include "cli/actions.h"

#include "base/clock.h"
#include "exposition.h"
#include "programs.h"
#include "replace.h"
#include "serve.h"
#include "show/activity.h"

#include <stdlib.h>

/* New programs are looked for so often while times are measured. */
#define FIND_MS 1000

struct subject {
	struct topology_list gpus;
	struct activities activities;
};

/* Programs can be told without topologies: the bus id names the GPU. A server may have been started before the driver. */
static void find_gpus(struct subject *subject)
{
	struct error why;

	if (subject->gpus.count == 0 && topology_load(&subject->gpus, &why) < 0) {
		subject->gpus.count = 0;
		fprintf(stderr, "nvtaskset: %s; metrics are without what is known of the GPUs\n", why.reason);
	}
}

static int look_and_write(void *context, enum metrics_format format, FILE *page, struct error *error)
{
	struct subject *subject = context;
	struct exposition exposition;

	find_gpus(subject);
	if (activities_look(&subject->activities, &subject->gpus, error) < 0)
		return -1;
	exposition_begin(&exposition, format);
	programs_expose(&exposition, &subject->activities, &subject->gpus);
	return exposition_end(&exposition, page, error);
}

static int write_to_file(struct subject *subject, const struct options *options, struct error *error)
{
	char *text = NULL;
	size_t length = 0;
	FILE *page = open_memstream(&text, &length);

	if (!page)
		return error_set(error, "no memory");
	int result = look_and_write(subject, options->format, page, error);

	if (fclose(page) != 0 && result == 0)
		result = error_set(error, "no memory");
	if (result == 0)
		result = replace_file(options->output, text, length, error);
	free(text);
	return result;
}

/* A counter of busy time that only counted while somebody asks would be none: so times are measured all the time. A look
 * that fails is tried again. */
static void keep_measuring(void *context)
{
	struct subject *subject = context;
	struct error why;

	if (clock_ms() - subject->activities.at_ms < FIND_MS || activities_look(&subject->activities, &subject->gpus, &why) < 0)
		activities_keep_up(&subject->activities);
}

static int check_busy(const struct options *options, int socket, struct error *error)
{
	bool can_measure = socket >= 0 && serve_is_listening(socket);

	return !options->busy || can_measure
	               ? 0
	               : error_set(error, "--busy: counts as long as a service runs; it needs a socket to listen on, of systemd's");
}

int action_metrics(const struct options *options, struct error *error)
{
	static struct subject subject; /* large */
	struct page_source source = {.write = look_and_write, .context = &subject, .format = options->format};
	int socket = -1, result;

	subject.activities.measures_times = options->busy;
	source.meanwhile = options->busy ? keep_measuring : NULL;
	if (options->output && options->busy)
		result = check_busy(options, socket, error);
	else if (options->output)
		result = write_to_file(&subject, options, error);
	else if (serve_find_socket(&socket, error) < 0 || check_busy(options, socket, error) < 0)
		result = -1;
	else if (socket >= 0)
		result = serve(socket, &source, error);
	else
		result = look_and_write(&subject, options->format, stdout, error);
	activities_free(&subject.activities);
	return result;
}
