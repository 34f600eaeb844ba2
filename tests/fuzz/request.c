/* What clients of `nvtaskset metrics` say: any bytes are read without reading beyond them, whole and in pieces. */
#include "../../tools/nvtaskset/metrics/request.c"

#include "fuzz.h"

static struct request read_it(const uint8_t *data, size_t size, bool is_all)
{
	char *bytes = malloc(size > 0 ? size : 1);
	struct request request;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)data[i];
	request_read(&request, bytes, size, is_all);
	free(bytes);
	return request;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size = size < REQUEST_MAX ? size : REQUEST_MAX;
	struct request whole = read_it(data, size, true), part = read_it(data, size / 2, false), more = read_it(data, size, false);

	/* There is an answer as soon as nothing more can come. */
	must(whole.state != REQUEST_UNFINISHED);
	must(size < REQUEST_MAX || more.state != REQUEST_UNFINISHED);
	must(more.state == REQUEST_UNFINISHED || more.state == whole.state);
	/* More bytes do not change an answer, unless they are none of a text. */
	must(part.state == REQUEST_UNFINISHED || more.state == part.state || more.state == REQUEST_BAD);
	must(whole.format == METRICS_OPENMETRICS || whole.format == METRICS_PROMETHEUS);
	must(!whole.is_head || memcmp(data, "HEAD ", 5) == 0);
	return 0;
}
