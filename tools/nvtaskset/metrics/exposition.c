#include "exposition.h"

#include <stdlib.h>
#include <string.h>

enum type {
	INFO,
	GAUGE,
	COUNTER
};

static const struct {
	const char *name;
	enum type type;
	const char *unit, *help;
} metrics[] = {
#define METRIC_ENTRY(identifier, name, type, unit, help) {name, type, unit, help},
	METRICS(METRIC_ENTRY)
#undef METRIC_ENTRY
};

static const struct {
	const char *open, *classic, *suffix;
} types[] = {
	[INFO] = {"info", "gauge", "_info"},
	[GAUGE] = {"gauge", "gauge", ""},
	[COUNTER] = {"counter", "counter", "_total"},
};

/* --- samples ------------------------------------------------------------------------------------------------------ */

void metric_label(struct metric_labels *labels, const char *name, const char *value)
{
	if (value && value[0] != '\0' && labels->count < LABELS_OF_METRIC) {
		labels->list[labels->count].name = name;
		labels->list[labels->count++].value = value;
	}
}

static void print_escaped(FILE *file, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			putc('\\', file);
		if (*value == '\n')
			fputs("\\n", file);
		else
			putc(*value, file);
	}
}

static void print_labels(FILE *file, const struct metric_labels *labels)
{
	for (unsigned int i = 0; i < labels->count; i++) {
		fprintf(file, "%s%s=\"", i == 0 ? "{" : ",", labels->list[i].name);
		print_escaped(file, labels->list[i].value);
		putc('"', file);
	}
	fputs(labels->count > 0 ? "}" : "", file);
}

/* As short as it can be without another value being read back. */
static void print_value(FILE *file, double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.15g", value);
	if (strtod(text, NULL) < value || strtod(text, NULL) > value)
		snprintf(text, sizeof text, "%.17g", value);
	fputs(text, file);
}

void exposition_add(struct exposition *exposition, enum metric metric, const struct metric_labels *labels, double value)
{
	FILE *file = exposition->families[metric].file;

	if (!file)
		return;
	fprintf(file, "%s%s", metrics[metric].name, types[metrics[metric].type].suffix);
	print_labels(file, labels);
	putc(' ', file);
	print_value(file, value);
	putc('\n', file);
}

/* --- families ----------------------------------------------------------------------------------------------------- */

static void print_head(FILE *file, enum metrics_format format, enum metric metric)
{
	enum type type = metrics[metric].type;
	const char *name = metrics[metric].name, *unit = metrics[metric].unit, *help = metrics[metric].help;

	if (format == METRICS_PROMETHEUS) {
		fprintf(file, "# HELP %s%s %s\n", name, types[type].suffix, help);
		fprintf(file, "# TYPE %s%s %s\n", name, types[type].suffix, types[type].classic);
	} else {
		fprintf(file, "# TYPE %s %s\n", name, types[type].open);
		if (unit[0] != '\0')
			fprintf(file, "# UNIT %s %s\n", name, unit);
		fprintf(file, "# HELP %s %s\n", name, help);
	}
}

void exposition_begin(struct exposition *exposition, enum metrics_format format)
{
	*exposition = (struct exposition){.format = format};
	for (int i = 0; i < METRIC_COUNT; i++)
		exposition->families[i].file =
		        open_memstream(&exposition->families[i].text, &exposition->families[i].length);
}

int exposition_end(struct exposition *exposition, FILE *file, struct error *error)
{
	int result = 0;

	for (int i = 0; i < METRIC_COUNT; i++) {
		struct family *family = &exposition->families[i];

		if (!family->file || fclose(family->file) != 0)
			result = error_set(error, "no memory");
		if (result == 0 && family->length > 0) {
			print_head(file, exposition->format, (enum metric)i);
			fputs(family->text, file);
		}
		free(family->text);
	}
	if (result == 0 && exposition->format != METRICS_PROMETHEUS)
		fputs("# EOF\n", file);
	return result;
}
