#include "api/internal.h"

#include "version.h"

const char *nvtaskset_version(void)
{
	return NVTASKSET_VERSION;
}

int api_fill(void *public, const void *filled, size_t size, struct error *error)
{
	size_t known;

	memcpy(&known, public, sizeof known);
	if (known != size)
		return error_set_code(error, NVTASKSET_ERROR_INVALID,
		                      "the member `size` is %zu, which is wrong: set it to the size of the struct",
		                      known);
	memcpy((char *)public + sizeof known, (const char *)filled + sizeof known, size - sizeof known);
	return 0;
}

/* The words are the same, as internal.h asserts, and nothing here reads a set as both. */
static struct tpcset *ours(struct nvtaskset_set *set)
{
	return (struct tpcset *)set;
}

static const struct tpcset *our(const struct nvtaskset_set *set)
{
	return (const struct tpcset *)set;
}

/* --- members ------------------------------------------------------------------------------------------------------ */

void nvtaskset_set_add(struct nvtaskset_set *set, unsigned int tpc)
{
	tpcset_add(ours(set), tpc);
}

void nvtaskset_set_add_range(struct nvtaskset_set *set, unsigned int first, unsigned int last)
{
	tpcset_add_range(ours(set), first, last);
}

void nvtaskset_set_remove(struct nvtaskset_set *set, unsigned int tpc)
{
	tpcset_remove(ours(set), tpc);
}

bool nvtaskset_set_has(const struct nvtaskset_set *set, unsigned int tpc)
{
	return tpcset_has(our(set), tpc);
}

bool nvtaskset_set_equal(const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	return tpcset_equal(our(a), our(b));
}

unsigned int nvtaskset_set_count(const struct nvtaskset_set *set)
{
	return tpcset_count(our(set));
}

unsigned int nvtaskset_set_next(const struct nvtaskset_set *set, unsigned int from)
{
	return tpcset_next(our(set), from);
}

/* --- two sets ----------------------------------------------------------------------------------------------------- */

struct nvtaskset_set nvtaskset_set_and(const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	struct tpcset result = tpcset_and(our(a), our(b));

	return outside(&result);
}

struct nvtaskset_set nvtaskset_set_or(const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	struct tpcset result = tpcset_or(our(a), our(b));

	return outside(&result);
}

struct nvtaskset_set nvtaskset_set_without(const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	struct tpcset result = tpcset_without(our(a), our(b));

	return outside(&result);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* tpcset_parse_list or tpcset_parse_mask. */
typedef int notation(struct tpcset *set, const char *text, unsigned int limit, const char *noun, struct error *error);

static int parse(notation *parse_text, struct nvtaskset_set *set, const char *text, unsigned int limit,
                 struct nvtaskset_error *error)
{
	struct tpcset parsed;

	if (limit == 0 || limit > TPCSET_MAX)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID, "limit %u: must be 1-%u", limit,
		                      TPCSET_MAX);
	if (parse_text(&parsed, text, limit, "TPC", inside_error(error)) < 0)
		return api_failed(error, NVTASKSET_ERROR_INVALID);
	*set = outside(&parsed);
	return 0;
}

int nvtaskset_set_parse_list(struct nvtaskset_set *set, const char *text, unsigned int limit,
                             struct nvtaskset_error *error)
{
	return parse(tpcset_parse_list, set, text, limit, error);
}

int nvtaskset_set_parse_mask(struct nvtaskset_set *set, const char *text, unsigned int limit,
                             struct nvtaskset_error *error)
{
	return parse(tpcset_parse_mask, set, text, limit, error);
}

const char *nvtaskset_set_format_list(const struct nvtaskset_set *set, char text[NVTASKSET_SET_TEXT])
{
	return tpcset_format_list(our(set), text);
}

const char *nvtaskset_set_format_mask(const struct nvtaskset_set *set, char text[NVTASKSET_SET_TEXT])
{
	return tpcset_format_mask(our(set), text);
}
