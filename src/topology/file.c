/* The text format of a topology; docs/topology-format.md describes it. */
#include "topology/topology.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "nvtaskset-topology 1"
#define LINE_MAX_BYTES 256
#define WORDS_MAX 5

/* --- reading ------------------------------------------------------------------------------------------ */

struct reader {
	struct topology_list *list;
	struct topology *gpu; /* of the section that we are in, or NULL */
	const char *name;     /* of the file */
	unsigned int line;
	struct error *error;
};

static int __attribute__((format(printf, 2, 3))) fail(const struct reader *reader, const char *format, ...)
{
	char why[200];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof why, format, arguments);
	va_end(arguments);
	return error_set(reader->error, "%.100s:%u: %s", reader->name, reader->line, why);
}

/* A decimal number and nothing else. */
static int read_number(const struct reader *reader, const char *text, unsigned int limit, uint16_t *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > limit)
		return fail(reader, "'%.40s': a number of at most %u was expected", text, limit);
	*number = (uint16_t)value;
	return 0;
}

static int read_number_or_unknown(const struct reader *reader, const char *text, uint16_t *number)
{
	if (strcmp(text, "-") == 0) {
		*number = TOPOLOGY_UNKNOWN;
		return 0;
	}
	return read_number(reader, text, TOPOLOGY_UNKNOWN - 1, number);
}

static int finish_gpu(struct reader *reader)
{
	struct error why;

	if (reader->gpu && topology_validate(reader->gpu, &why) < 0)
		return fail(reader, "the GPU that ends here has %s", why.reason);
	reader->gpu = NULL;
	return 0;
}

static int read_gpu(struct reader *reader, char **words, unsigned int count)
{
	struct pci_address pci;
	struct error why;

	if (finish_gpu(reader) < 0)
		return -1;
	if (count != 2 || pci_address_parse(&pci, words[1], &why) < 0)
		return fail(reader, "gpu: a bus id such as 0000:3b:00.0 was expected");
	if (topology_find(reader->list, pci))
		return fail(reader, "gpu %s: stands here twice", words[1]);
	if (reader->list->count == TOPOLOGY_GPUS_MAX)
		return fail(reader, "more than %d GPUs", TOPOLOGY_GPUS_MAX);
	reader->gpu = &reader->list->gpus[reader->list->count++];
	reader->gpu->pci = pci;
	return 0;
}

static int read_compute(struct reader *reader, char **words, unsigned int count)
{
	char *minor = count == 2 ? strchr(words[1], '.') : NULL;

	if (!minor)
		return fail(reader, "compute: a compute capability such as 9.0 was expected");
	*minor++ = '\0';
	if (read_number(reader, words[1], 99, &reader->gpu->compute_major) < 0)
		return -1;
	return read_number(reader, minor, 9, &reader->gpu->compute_minor);
}

static int read_limits(struct reader *reader, char **words, unsigned int count)
{
	if (count != 3)
		return fail(reader, "limits: two numbers were expected, of GPCs and of TPCs in each");
	if (read_number(reader, words[1], TOPOLOGY_GPCS_MAX, &reader->gpu->gpc_limit) < 0)
		return -1;
	return read_number(reader, words[2], TPCSET_MAX, &reader->gpu->tpc_limit);
}

static int read_sms(struct reader *reader, char **words, unsigned int count)
{
	if (count != 2)
		return fail(reader, "sms-per-tpc: a number was expected");
	return read_number(reader, words[1], 2, &reader->gpu->sms_per_tpc);
}

static int read_uuid(struct reader *reader, char **words, unsigned int count)
{
	if (count != 2 || strlen(words[1]) >= sizeof reader->gpu->uuid)
		return fail(reader, "uuid: one word of less than %zu characters was expected",
		            sizeof reader->gpu->uuid);
	strcpy(reader->gpu->uuid, words[1]);
	return 0;
}

static int read_tpc(struct reader *reader, char **words, unsigned int count)
{
	struct topology *gpu = reader->gpu;
	uint16_t number;

	if (count != 5)
		return fail(reader, "tpc: its number, GPC, virtual GPC and mask bit were expected");
	if (read_number(reader, words[1], TPCSET_MAX - 1, &number) < 0)
		return -1;
	if (number != gpu->tpc_count)
		return fail(reader, "tpc %u: TPC %u was expected", number, gpu->tpc_count);
	struct topology_tpc *tpc = &gpu->tpcs[gpu->tpc_count++];

	if (read_number_or_unknown(reader, words[2], &tpc->gpc) < 0 ||
	    read_number_or_unknown(reader, words[3], &tpc->virtual_gpc) < 0)
		return -1;
	return read_number(reader, words[4], TOPOLOGY_MASK_BITS - 1, &tpc->mask_bit);
}

/* The lines of a section. A name may have spaces, so it is not among them. */
static const struct {
	const char *keyword;
	int (*read)(struct reader *reader, char **words, unsigned int count);
} keywords[] = {
	{"compute", read_compute}, {"limits", read_limits}, {"sms-per-tpc", read_sms},
	{"uuid", read_uuid},       {"tpc", read_tpc},
};

static unsigned int split(char *line, char *words[WORDS_MAX + 1])
{
	unsigned int count = 0;
	char *rest = NULL;

	for (char *word = strtok_r(line, " \t", &rest); word && count <= WORDS_MAX;
	     word = strtok_r(NULL, " \t", &rest))
		words[count++] = word;
	return count;
}

static int read_words(struct reader *reader, char *line)
{
	char *words[WORDS_MAX + 1];
	unsigned int count = split(line, words);

	if (count == 0)
		return 0;
	if (strcmp(words[0], "gpu") == 0)
		return read_gpu(reader, words, count);
	if (!reader->gpu)
		return fail(reader, "'%.40s': no gpu line stands before it", words[0]);
	for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
		if (strcmp(words[0], keywords[i].keyword) == 0)
			return keywords[i].read(reader, words, count);
	}
	return fail(reader, "'%.40s': not understood", words[0]);
}

/* The rest of a line; it is shown on terminals, which obey control characters. */
static int read_name(struct reader *reader, const char *text)
{
	if (strlen(text) >= sizeof reader->gpu->name)
		return fail(reader, "name: longer than %zu characters", sizeof reader->gpu->name - 1);
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return fail(reader, "name: a control character");
	}
	strcpy(reader->gpu->name, text);
	return 0;
}

static int read_line(struct reader *reader, char *line)
{
	char *start = line + strspn(line, " \t");
	int result;

	if (*start == '#')
		result = 0;
	else if (strncmp(start, "name ", 5) == 0 && reader->gpu)
		result = read_name(reader, start + 5);
	else
		result = read_words(reader, start);
	return result;
}

/* Reads a line without its newline. 1, 0 at the end of the file, or -1 with the reason. */
static int next_line(struct reader *reader, FILE *file, char line[LINE_MAX_BYTES])
{
	size_t length = 0;
	int character = fgetc(file);

	if (character == EOF)
		return ferror(file) ? fail(reader, "the file cannot be read") : 0;
	reader->line++;
	for (; character != EOF && character != '\n'; character = fgetc(file)) {
		if (character == '\0' || length == LINE_MAX_BYTES - 1)
			return fail(reader, character ? "the line is too long" : "a NUL byte");
		line[length++] = (char)character;
	}
	line[length] = '\0';
	return 1;
}

static int read_all(struct reader *reader, FILE *file)
{
	char line[LINE_MAX_BYTES];
	int more = next_line(reader, file, line);

	if (more < 0)
		return -1;
	if (more == 0 || strcmp(line, HEADER) != 0) {
		reader->line = 1;
		return fail(reader, "the first line must be '%s'", HEADER);
	}
	while ((more = next_line(reader, file, line)) > 0) {
		if (read_line(reader, line) < 0)
			return -1;
	}
	if (more < 0 || finish_gpu(reader) < 0)
		return -1;
	if (reader->list->count == 0)
		return fail(reader, "no GPU stands here");
	return 0;
}

int topology_read(struct topology_list *list, FILE *file, const char *name, struct error *error)
{
	struct reader reader = {.list = list, .name = name, .error = error};

	memset(list, 0, sizeof *list);
	int result = read_all(&reader, file);

	if (result < 0)
		list->count = 0;
	return result;
}

/* --- writing ------------------------------------------------------------------------------------------ */

static const char *number_or_unknown(uint16_t number, char text[8])
{
	if (number == TOPOLOGY_UNKNOWN)
		strcpy(text, "-");
	else
		snprintf(text, 8, "%u", number);
	return text;
}

static void write_gpu(const struct topology *gpu, FILE *file)
{
	char pci[PCI_ADDRESS_TEXT];

	fprintf(file, "\ngpu %s\n", pci_address_format(gpu->pci, pci));
	if (gpu->name[0])
		fprintf(file, "  name %s\n", gpu->name);
	if (gpu->uuid[0])
		fprintf(file, "  uuid %s\n", gpu->uuid);
	fprintf(file, "  compute %u.%u\n", gpu->compute_major, gpu->compute_minor);
	fprintf(file, "  sms-per-tpc %u\n", gpu->sms_per_tpc);
	fprintf(file, "  limits %u %u\n", gpu->gpc_limit, gpu->tpc_limit);
	fprintf(file, "  # tpc  gpc  virtual-gpc  bit\n");
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		char gpc[8], virtual_gpc[8];

		fprintf(file, "  tpc %3u %4s %5s %5u\n", tpc, number_or_unknown(gpu->tpcs[tpc].gpc, gpc),
		        number_or_unknown(gpu->tpcs[tpc].virtual_gpc, virtual_gpc), gpu->tpcs[tpc].mask_bit);
	}
}

int topology_write(const struct topology_list *list, FILE *file)
{
	fprintf(file, HEADER "\n");
	for (unsigned int i = 0; i < list->count; i++)
		write_gpu(&list->gpus[i], file);
	return fflush(file) == 0 && !ferror(file) ? 0 : -1;
}
