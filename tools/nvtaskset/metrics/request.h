/*
 * What a client of the service says: the head of an HTTP request, of which nothing is believed.
 */
#ifndef NVTASKSET_REQUEST_H
#define NVTASKSET_REQUEST_H

#include "cli/options.h"

#include <stdbool.h>
#include <stddef.h>

#define REQUEST_MAX 8192

enum request_state {
	REQUEST_UNFINISHED,
	REQUEST_OF_METRICS,
	REQUEST_BAD, /* too long, or with bytes that no text has */
	REQUEST_OF_OTHER_METHOD,
	REQUEST_OF_OTHER_PATH
};

struct request {
	enum request_state state;
	bool is_head;               /* the client wants the response's head only */
	enum metrics_format format; /* that it asks for */
};

/* Reads what has come so far, at most REQUEST_MAX bytes. `is_all`: nothing more comes. */
void request_read(struct request *request, const char *bytes, size_t length, bool is_all);

#endif
