/*
 * Answers HTTP/1.1 on a socket that systemd hands over: a listening one, or a connection (Accept=yes).
 *
 * Each connection gets one response. A client that is slow, or says nothing, is dropped after SERVE_SECONDS, so that it
 * keeps nobody waiting for long.
 */
#ifndef NVTASKSET_SERVE_H
#define NVTASKSET_SERVE_H

#include "base/error.h"
#include "options.h"

#include <stdbool.h>
#include <stdio.h>

#define SERVE_SECONDS 5
#define SERVE_MEANWHILE_MS 50

struct page_source {
	/* Writes the page in this format, which is not METRICS_ANY. -1 with the reason. */
	int (*write)(void *context, enum metrics_format format, FILE *page, struct error *error);
	void *context;
	enum metrics_format format; /* METRICS_ANY: as each client asks for */
	void (*meanwhile)(void *context); /* called every SERVE_MEANWHILE_MS while nothing comes; NULL: nothing to do then */
};

/* Finds the socket; -1 if none was handed over to this process. -1 with the reason if what was handed over is no socket, or
 * more than one. */
int serve_find_socket(int *socket, struct error *error);

/* Whether it is one that clients connect to, and not one of their connections. */
bool serve_is_listening(int socket);

/* Answers until a signal ends the process; a connection, once. -1 with the reason. */
int serve(int socket, const struct page_source *source, struct error *error);

#endif
