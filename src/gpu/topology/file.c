/* The text format of a topology (topology-format.md): a file, and a line of the environment. */
#include "topology.h"

#include "base/proc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "nvtaskset-topology 1"
#define LINE_MAX_BYTES 256
#define BLANKS " \t"

/* --- reading ------------------------------------------------------------------------------------------ */

struct reader {
	struct topology_list *list;
	FILE *file;       /* NULL: read from `text` */
	const char *text; /* the rest of the line of the environment */
	const char *name;
	unsigned int line;
	struct error *error;
	/* The current section. */
	struct topology *gpu; /* NULL before the first */
	unsigned int gpu_line;
	unsigned int seen; /* a bit for each of `keywords` */
	uint16_t tpcs;     /* announced by the file; TOPOLOGY_UNKNOWN without an announcement */
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

static bool split(char *text, char **words, unsigned int wanted)
{
	unsigned int count = 0;
	char *rest = NULL;

	for (char *word = strtok_r(text, BLANKS, &rest); word; word = strtok_r(NULL, BLANKS, &rest)) {
		if (count < wanted)
			words[count] = word;
		count++;
	}
	return count == wanted;
}

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

/* --- the lines of a section; each function takes the text behind the keyword -------------------------- */

static int read_name(struct reader *reader, char *text)
{
	text += strspn(text, BLANKS);
	if (*text == '\0' || strlen(text) >= sizeof reader->gpu->name)
		return fail(reader, "name: 1 to %zu characters were expected", sizeof reader->gpu->name - 1);
	strcpy(reader->gpu->name, text);
	return 0;
}

static int read_uuid(struct reader *reader, char *text)
{
	char *word;

	if (!split(text, &word, 1) || strlen(word) >= sizeof reader->gpu->uuid)
		return fail(reader, "uuid: one word of less than %zu characters was expected",
		            sizeof reader->gpu->uuid);
	strcpy(reader->gpu->uuid, word);
	return 0;
}

static int read_compute(struct reader *reader, char *text)
{
	char *word;
	char *minor = split(text, &word, 1) ? strchr(word, '.') : NULL;

	if (!minor)
		return fail(reader, "compute: a compute capability such as 9.0 was expected");
	*minor++ = '\0';
	if (read_number(reader, word, 99, &reader->gpu->compute_major) < 0)
		return -1;
	return read_number(reader, minor, 9, &reader->gpu->compute_minor);
}

static int read_sms(struct reader *reader, char *text)
{
	char *word;

	if (!split(text, &word, 1))
		return fail(reader, "sms-per-tpc: a number was expected");
	return read_number(reader, word, 2, &reader->gpu->sms_per_tpc);
}

static int read_limits(struct reader *reader, char *text)
{
	char *words[2];

	if (!split(text, words, 2))
		return fail(reader, "limits: two numbers were expected, of GPCs and of TPCs in each");
	if (read_number(reader, words[0], TOPOLOGY_GPCS_MAX, &reader->gpu->gpc_limit) < 0)
		return -1;
	return read_number(reader, words[1], TPCSET_MAX, &reader->gpu->tpc_limit);
}

static int read_tpcs(struct reader *reader, char *text)
{
	char *word;

	if (!split(text, &word, 1))
		return fail(reader, "tpcs: a number was expected");
	return read_number(reader, word, TPCSET_MAX, &reader->tpcs);
}

static int read_tpc(struct reader *reader, char *text)
{
	struct topology *gpu = reader->gpu;
	char *words[4];
	uint16_t number = 0;

	if (!split(text, words, 4))
		return fail(reader, "tpc: its number, GPC, virtual GPC and mask bit were expected");
	if (read_number(reader, words[0], TPCSET_MAX - 1, &number) < 0)
		return -1;
	if (number != gpu->tpc_count)
		return fail(reader, "tpc %u: TPC %u was expected", number, gpu->tpc_count);
	struct topology_tpc *tpc = &gpu->tpcs[gpu->tpc_count++];

	if (read_number_or_unknown(reader, words[1], &tpc->gpc) < 0 ||
	    read_number_or_unknown(reader, words[2], &tpc->virtual_gpc) < 0)
		return -1;
	return read_number(reader, words[3], TOPOLOGY_MASK_BITS - 1, &tpc->mask_bit);
}

static const struct keyword {
	const char *word;
	int (*read)(struct reader *reader, char *text);
	enum { OPTIONAL, REQUIRED, REPEATED } occurs;
} keywords[] = {
	{"name", read_name, OPTIONAL},
	{"uuid", read_uuid, OPTIONAL},
	{"compute", read_compute, REQUIRED},
	{"sms-per-tpc", read_sms, REQUIRED},
	{"limits", read_limits, REQUIRED},
	{"tpcs", read_tpcs, OPTIONAL},
	{"tpc", read_tpc, REPEATED},
};

#define KEYWORD_COUNT (sizeof keywords / sizeof keywords[0])

static int read_keyword(struct reader *reader, const char *word, char *text)
{
	unsigned int i = 0;

	while (i < KEYWORD_COUNT && strcmp(word, keywords[i].word) != 0)
		i++;
	if (i == KEYWORD_COUNT)
		return fail(reader, "'%.40s': not understood", word);
	if (!reader->gpu)
		return fail(reader, "%s: no gpu line comes before it", word);
	if (reader->seen & 1u << i && keywords[i].occurs != REPEATED)
		return fail(reader, "%s: appears twice for one GPU", word);
	reader->seen |= 1u << i;
	return keywords[i].read(reader, text);
}

/* --- sections ----------------------------------------------------------------------------------------- */

static int finish_gpu(struct reader *reader)
{
	struct error why;

	if (!reader->gpu)
		return 0;
	reader->line = reader->gpu_line;
	for (unsigned int i = 0; i < KEYWORD_COUNT; i++) {
		if (keywords[i].occurs == REQUIRED && !(reader->seen & 1u << i))
			return fail(reader, "this GPU has no %s line", keywords[i].word);
	}
	if (reader->tpcs != TOPOLOGY_UNKNOWN && reader->tpcs != reader->gpu->tpc_count)
		return fail(reader, "this GPU has %u TPCs, but %u are listed: is the file cut off?", reader->tpcs,
		            reader->gpu->tpc_count);
	if (topology_validate(reader->gpu, &why) < 0)
		return fail(reader, "this GPU: %s", why.reason);
	return 0;
}

static int start_gpu(struct reader *reader, char *text)
{
	unsigned int line = reader->line;
	struct pci_address pci;
	char *word;

	if (finish_gpu(reader) < 0)
		return -1;
	reader->line = line;
	if (!split(text, &word, 1) || pci_address_parse(&pci, word, NULL) < 0)
		return fail(reader, "gpu: a bus id such as 0000:3b:00.0 was expected");
	if (reader->gpu && pci_address_compare(pci, reader->gpu->pci) <= 0)
		return fail(reader, "gpu %s: the bus ids must rise", word);
	if (reader->list->count == TOPOLOGY_GPUS_MAX)
		return fail(reader, "more than %d GPUs", TOPOLOGY_GPUS_MAX);
	reader->gpu = &reader->list->gpus[reader->list->count++];
	reader->gpu->pci = pci;
	reader->gpu_line = line;
	reader->seen = 0;
	reader->tpcs = TOPOLOGY_UNKNOWN;
	return 0;
}

/* --- lines -------------------------------------------------------------------------------------------- */

static int read_line(struct reader *reader, char *line)
{
	char *word = line + strspn(line, BLANKS);
	char *rest = word + strcspn(word, BLANKS);
	int result;

	if (*rest)
		*rest++ = '\0';
	if (*word == '\0' || *word == '#')
		result = 0;
	else if (strcmp(word, "gpu") == 0)
		result = start_gpu(reader, rest);
	else
		result = read_keyword(reader, word, rest);
	return result;
}

/* Control characters in a reason would reach the terminal. */
static bool is_text(int character)
{
	return character == '\t' || (character >= ' ' && character != 0x7f);
}

/* The next character, or EOF. A line ends with a semicolon in the environment. */
static int next_of(struct reader *reader)
{
	if (reader->file)
		return fgetc(reader->file);
	int character = *reader->text ? *reader->text++ : EOF;

	return character == ';' ? '\n' : character;
}

/* Reads a line without its newline. 1, 0 at the end of the file, or -1 with the reason. */
static int next_line(struct reader *reader, char line[LINE_MAX_BYTES])
{
	size_t length = 0;
	int character;

	reader->line++;
	while ((character = next_of(reader)) != EOF && character != '\n') {
		if (!is_text(character))
			return fail(reader, character ? "a control character" : "a NUL byte");
		if (length == LINE_MAX_BYTES - 1)
			return fail(reader, "the line is too long");
		line[length++] = (char)character;
	}
	line[length] = '\0';
	if (reader->file && ferror(reader->file))
		return fail(reader, "cannot be read: %s", strerror(errno));
	if (character == EOF && length > 0)
		return fail(reader, "the line has no end: is the file cut off?");
	return character == '\n';
}

static int read_lines(struct reader *reader)
{
	char line[LINE_MAX_BYTES];
	int more = next_line(reader, line);

	if (more == 0 || (more > 0 && strcmp(line, HEADER) != 0))
		return fail(reader, "the first line must be '%s'", HEADER);
	while (more > 0 && (more = next_line(reader, line)) > 0) {
		if (read_line(reader, line) < 0)
			return -1;
	}
	if (more < 0 || finish_gpu(reader) < 0)
		return -1;
	if (reader->list->count == 0)
		return fail(reader, "the file has no GPU");
	return 0;
}

static int read_all(struct reader *reader)
{
	memset(reader->list, 0, sizeof *reader->list);
	int result = read_lines(reader);

	if (result < 0)
		reader->list->count = 0;
	return result;
}

int topology_read(struct topology_list *list, FILE *file, const char *name, struct error *error)
{
	return read_all(&(struct reader){.list = list, .file = file, .name = name, .error = error});
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

/* For people to read, or as short as possible. */
static void write_gpu(const struct topology *gpu, FILE *file, bool is_short)
{
	const char *indent = is_short ? "" : "  ";
	char pci[PCI_ADDRESS_TEXT];

	fprintf(file, "%sgpu %s\n", is_short ? "" : "\n", pci_address_format(gpu->pci, pci));
	if (gpu->name[0] && !is_short)
		fprintf(file, "%sname %s\n", indent, gpu->name);
	if (gpu->uuid[0])
		fprintf(file, "%suuid %s\n", indent, gpu->uuid);
	fprintf(file, "%scompute %u.%u\n", indent, gpu->compute_major, gpu->compute_minor);
	fprintf(file, "%ssms-per-tpc %u\n", indent, gpu->sms_per_tpc);
	fprintf(file, "%slimits %u %u\n", indent, gpu->gpc_limit, gpu->tpc_limit);
	fprintf(file, "%stpcs %u\n", indent, gpu->tpc_count);
	if (!is_short)
		fprintf(file, "  # tpc  gpc  virtual-gpc  bit\n");
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		char gpc[8], virtual_gpc[8];

		fprintf(file, is_short ? "tpc %u %s %s %u\n" : "  tpc %3u %4s %5s %5u\n", tpc,
		        number_or_unknown(gpu->tpcs[tpc].gpc, gpc),
		        number_or_unknown(gpu->tpcs[tpc].virtual_gpc, virtual_gpc),
		        gpu->tpcs[tpc].mask_bit);
	}
}

int topology_write(const struct topology_list *list, FILE *file)
{
	fprintf(file, HEADER "\n");
	for (unsigned int i = 0; i < list->count; i++)
		write_gpu(&list->gpus[i], file, false);
	return fflush(file) == 0 && !ferror(file) ? 0 : -1;
}

/* --- the environment ---------------------------------------------------------------------------------- */

#define VERSION_MAX 32 /* of a driver version: "580.159.04" */

/* The version of the kernel module, with a semicolon; a semicolon alone without a module or a version. */
static size_t read_driver_version(const char *root, char version[VERSION_MAX + 1])
{
	proc_read_text(version, VERSION_MAX, "%s/sys/module/nvidia/version", root);
	size_t length = strcspn(version, " \n;");

	version[length] = ';';
	return length + 1;
}

const char *topology_environment_write(const char *root, const struct topology_list *list,
                                       char text[TOPOLOGY_ENVIRONMENT_MAX])
{
	char version[VERSION_MAX + 1];
	size_t length = read_driver_version(root, version);
	unsigned int written = 0;
	FILE *file = fmemopen(text, TOPOLOGY_ENVIRONMENT_MAX, "w");

	if (file)
		fprintf(file, "%.*s" HEADER "\n", (int)length, version);
	for (unsigned int i = 0; file && i < list->count; i++) {
		if (list->gpus[i].uuid[0] && !strchr(list->gpus[i].uuid, ';')) {
			write_gpu(&list->gpus[i], file, true);
			written++;
		}
	}
	if (file)
		fclose(file);
	if (written == 0)
		text[0] = '\0';
	for (char *end = strchr(text, '\n'); end; end = strchr(end, '\n'))
		*end = ';';
	return text;
}

/* Lists from the environment have UUIDs, and no names. */
static bool was_written_short(const struct topology_list *list)
{
	bool was = true;

	for (unsigned int i = 0; i < list->count; i++)
		was = was && list->gpus[i].uuid[0] && !list->gpus[i].name[0];
	return was;
}

int topology_environment_read(const char *root, const char *text, struct topology_list *list)
{
	char version[VERSION_MAX + 1];
	size_t length = read_driver_version(root, version);
	struct reader reader = {.list = list, .name = TOPOLOGY_ENVIRONMENT};
	int result = -1;

	if (strncmp(text, version, length) == 0) {
		reader.text = text + length;
		result = read_all(&reader);
	}

	if (result == 0 && !was_written_short(list))
		result = -1;
	if (result < 0)
		list->count = 0;
	return result;
}
