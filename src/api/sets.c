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

/* --- members -------------------------------------------------------------------------------------------------------- */

void nvtaskset_set_add(struct nvtaskset_set *set, unsigned int tpc)
{
	struct tpcset inner = inside(set);

	tpcset_add(&inner, tpc);
	*set = outside(&inner);
}

void nvtaskset_set_add_range(struct nvtaskset_set *set, unsigned int first, unsigned int last)
{
	struct tpcset inner = inside(set);

	tpcset_add_range(&inner, first, last);
	*set = outside(&inner);
}

void nvtaskset_set_remove(struct nvtaskset_set *set, unsigned int tpc)
{
	struct tpcset inner = inside(set);

	tpcset_remove(&inner, tpc);
	*set = outside(&inner);
}

bool nvtaskset_set_has(const struct nvtaskset_set *set, unsigned int tpc)
{
	struct tpcset inner = inside(set);

	return tpcset_has(&inner, tpc);
}

bool nvtaskset_set_equal(const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	struct tpcset inner_a = inside(a), inner_b = inside(b);

	return tpcset_equal(&inner_a, &inner_b);
}

unsigned int nvtaskset_set_count(const struct nvtaskset_set *set)
{
	struct tpcset inner = inside(set);

	return tpcset_count(&inner);
}

unsigned int nvtaskset_set_next(const struct nvtaskset_set *set, unsigned int from)
{
	struct tpcset inner = inside(set);

	return tpcset_next(&inner, from);
}

/* --- two sets --------------------------------------------------------------------------------------------------------- */

static struct nvtaskset_set combine(struct tpcset (*operation)(const struct tpcset *, const struct tpcset *),
                                    const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	struct tpcset inner_a = inside(a), inner_b = inside(b);
	struct tpcset result = operation(&inner_a, &inner_b);

	return outside(&result);
}

struct nvtaskset_set nvtaskset_set_and(const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	return combine(tpcset_and, a, b);
}

struct nvtaskset_set nvtaskset_set_or(const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	return combine(tpcset_or, a, b);
}

struct nvtaskset_set nvtaskset_set_without(const struct nvtaskset_set *a, const struct nvtaskset_set *b)
{
	return combine(tpcset_without, a, b);
}

/* --- text --------------------------------------------------------------------------------------------------------------- */

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
	struct tpcset inner = inside(set);

	return tpcset_format_list(&inner, text);
}

const char *nvtaskset_set_format_mask(const struct nvtaskset_set *set, char text[NVTASKSET_SET_TEXT])
{
	struct tpcset inner = inside(set);

	return tpcset_format_mask(&inner, text);
}
