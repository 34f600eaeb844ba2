/*
 * Answers HTTP/1.1 on a socket that systemd hands over: a listening one, or a connection (Accept=yes).
 *
 * Each connection gets one response. Clients may be hostile. Many are served at once, and each has SERVE_SECONDS for its
 * request, and as long again to take the response. If all places are taken, the client goes that has been asking, or
 * leaving, for longest: so connections that say nothing keep nobody waiting.
 */
#ifndef NVTASKSET_SERVE_H
#define NVTASKSET_SERVE_H

#include "base/error.h"
#include "cli/options.h"

#include <stdbool.h>
#include <stdio.h>

#define SERVE_SECONDS 1
#define SERVE_CLIENTS 32
#define SERVE_MEANWHILE_MS 50

struct page_source {
	/* Writes the page in this format, which is not METRICS_ANY. -1 with the reason. */
	int (*write)(void *context, enum metrics_format format, FILE *page, struct error *error);
	void *context;
	enum metrics_format format; /* METRICS_ANY: as each client asks for */
	void (*meanwhile)(void *context); /* called every SERVE_MEANWHILE_MS; NULL: nothing to do then */
};

/* Finds the socket; -1 if none was handed over to this process. -1 with the reason if what was handed over is no socket, or
 * more than one. */
int serve_find_socket(int *socket, struct error *error);

/* Whether it is one that clients connect to, and not one of their connections. */
bool serve_is_listening(int socket);

/* Answers until a signal ends the process; a connection, once. -1 with the reason. */
int serve(int socket, const struct page_source *source, struct error *error);

#endif
