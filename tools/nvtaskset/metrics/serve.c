#include "serve.h"

#include "base/clock.h"
#include "exposition.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 3 /* sd_listen_fds(3) */
#define REQUEST_MAX 8192

/* --- the socket ----------------------------------------------------------------------------------------------------- */

/* A number in the environment, from 1 on; 0 if it is none. */
static long number_in(const char *name)
{
	const char *text = getenv(name);
	char *end = NULL;
	long number = text ? strtol(text, &end, 10) : 0;

	return text && text[0] >= '1' && text[0] <= '9' && *end == '\0' && number < INT_MAX ? number : 0;
}

static bool is_stream(int file)
{
	int type = 0;
	socklen_t size = sizeof type;

	return getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

bool serve_is_listening(int socket)
{
	int listens = 0;
	socklen_t size = sizeof listens;

	return getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

int serve_find_socket(int *socket, struct error *error)
{
	const char *count = getenv("LISTEN_FDS");
	int result = 0;

	*socket = -1;
	/* What our parent was given is not ours. */
	if (!count || number_in("LISTEN_PID") != getpid())
		return 0;
	if (number_in("LISTEN_FDS") != 1)
		result = error_set(error, "LISTEN_FDS=%.40s: must be 1, one socket", count);
	else if (!is_stream(FIRST_DESCRIPTOR))
		result = error_set(error, "LISTEN_FDS=1: descriptor %d is not a stream socket", FIRST_DESCRIPTOR);
	else
		*socket = FIRST_DESCRIPTOR;
	return result;
}

/* --- waiting -------------------------------------------------------------------------------------------------------- */

/* A client, and until when it is waited for. */
struct client {
	int connection;
	double until;
	const struct page_source *source;
};

/* How long to wait at once, for poll(2). */
static int next_wait(const struct page_source *source, double left)
{
	if (source->meanwhile && left > SERVE_MEANWHILE_MS)
		return SERVE_MEANWHILE_MS;
	return left < INT_MAX ? (int)left + 1 : -1;
}

/* Waits until the file is ready; false if the time is over, or it cannot be waited for. */
static bool wait_until_ready(int file, short events, double until, const struct page_source *source)
{
	struct pollfd poll_file = {.fd = file, .events = events};
	double left = until - clock_ms();
	int ready = 0;

	while (ready == 0 && left > 0) {
		ready = poll(&poll_file, 1, next_wait(source, left));
		if (ready == 0 && source->meanwhile)
			source->meanwhile(source->context);
		left = until - clock_ms();
	}
	return ready > 0;
}

static bool client_is_ready(const struct client *client, short events)
{
	return wait_until_ready(client->connection, events, client->until, client->source);
}

/* --- requests ------------------------------------------------------------------------------------------------------- */

/* Reads up to the empty line that ends a request's head. False if none comes in time, or it is too long. */
static bool read_head(const struct client *client, char head[REQUEST_MAX])
{
	size_t length = 0;
	bool is_whole = false, goes_on = true;

	head[0] = '\0';
	while (!is_whole && goes_on && length < REQUEST_MAX - 1 && client_is_ready(client, POLLIN)) {
		ssize_t got = recv(client->connection, head + length, REQUEST_MAX - 1 - length, MSG_DONTWAIT);

		goes_on = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
		length += got > 0 ? (size_t)got : 0;
		head[length] = '\0';
		is_whole = strstr(head, "\r\n\r\n") || strstr(head, "\n\n");
	}
	return is_whole;
}

/* The line of the head that begins with this name and a colon, in any case; NULL if there is none. */
static const char *find_field(const char *head, const char *name)
{
	const char *line = strchr(head, '\n');
	size_t length = strlen(name);

	while (line && !(strncasecmp(line + 1, name, length) == 0 && line[1 + length] == ':'))
		line = strchr(line + 1, '\n');
	return line ? line + 1 : NULL;
}

/* OpenMetrics is for who asks for it: not everybody can read it. */
static enum metrics_format format_for(const char *head)
{
	const char *accept = find_field(head, "Accept"), *found = accept ? strstr(accept, "application/openmetrics-text") : NULL;
	bool asks = found && found < accept + strcspn(accept, "\r\n");

	return asks ? METRICS_OPENMETRICS : METRICS_PROMETHEUS;
}

/* Whether the request is for this path, also with a query behind it. */
static bool is_for(const char *head, const char *path)
{
	const char *target = strchr(head, ' ');
	size_t length = strlen(path);

	return target && strncmp(target + 1, path, length) == 0 && strchr(" ?", target[1 + length]) != NULL;
}

/* --- responses ------------------------------------------------------------------------------------------------------ */

struct response {
	const char *status, *type;
	char *text;
	size_t length;
};

static bool send_all(const struct client *client, const char *bytes, size_t length)
{
	bool goes_on = true;

	while (length > 0 && goes_on && client_is_ready(client, POLLOUT)) {
		ssize_t sent = send(client->connection, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		goes_on = sent >= 0 || errno == EAGAIN || errno == EINTR;
		bytes += sent > 0 ? sent : 0;
		length -= sent > 0 ? (size_t)sent : 0;
	}
	return length == 0;
}

/* Tells the client that this was all, and takes what it still sends: closing with unread bytes would discard what was
 * sent. */
static void hang_up(const struct client *client)
{
	char rest[1024];

	shutdown(client->connection, SHUT_WR);
	while (client_is_ready(client, POLLIN) && recv(client->connection, rest, sizeof rest, MSG_DONTWAIT) > 0)
		continue;
	close(client->connection);
}

static void write_page(struct response *response, FILE *page, const struct page_source *source, const char *head)
{
	enum metrics_format format = source->format == METRICS_ANY ? format_for(head) : source->format;
	struct error why = {.reason = ""};

	response->status = "200 OK";
	response->type = exposition_type(format);
	if (source->write(source->context, format, page, &why) < 0) {
		response->status = "500 Internal Server Error";
		response->type = "text/plain; charset=utf-8";
		fprintf(page, "nvtaskset: %s\n", why.reason);
		fprintf(stderr, "nvtaskset: %s\n", why.reason);
	}
}

static void write_refusal(struct response *response, FILE *page, const char *status)
{
	response->status = status;
	response->type = "text/plain; charset=utf-8";
	fprintf(page, "%s\n", status);
}

static void answer(int connection, const struct page_source *source)
{
	const struct client client = {connection, clock_ms() + SERVE_SECONDS * 1000, source};
	struct response response = {.text = NULL};
	char head[REQUEST_MAX], first[256];
	bool is_whole = read_head(&client, head);
	bool is_get = strncmp(head, "GET ", 4) == 0, is_head = strncmp(head, "HEAD ", 5) == 0;
	FILE *page = open_memstream(&response.text, &response.length);

	if (page && !is_whole)
		write_refusal(&response, page, "400 Bad Request");
	else if (page && !is_get && !is_head)
		write_refusal(&response, page, "405 Method Not Allowed");
	else if (page && !is_for(head, "/metrics") && !is_for(head, "/"))
		write_refusal(&response, page, "404 Not Found");
	else if (page)
		write_page(&response, page, source, head);
	if (page && fclose(page) == 0) {
		int length = snprintf(first, sizeof first,
		                      "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sConnection: close\r\n\r\n",
		                      response.status, response.type, response.length, is_get || is_head ? "" : "Allow: GET, HEAD\r\n");

		if (send_all(&client, first, (size_t)length) && !is_head)
			send_all(&client, response.text, response.length);
	}
	free(response.text);
	hang_up(&client);
}

/* A connection that is gone before it is accepted, or a lack that passes, is no reason to end. */
static bool can_go_on(int why)
{
	return why == EINTR || why == ECONNABORTED || why == EAGAIN || why == EPROTO || why == ENETDOWN || why == EHOSTUNREACH ||
	       why == ENETUNREACH || why == EPERM;
}

int serve(int socket, const struct page_source *source, struct error *error)
{
	if (!serve_is_listening(socket)) {
		answer(socket, source);
		return 0;
	}
	for (;;) {
		bool is_ready = wait_until_ready(socket, POLLIN, INFINITY, source);
		int connection = is_ready ? accept4(socket, NULL, NULL, SOCK_CLOEXEC) : -1;

		if (connection >= 0)
			answer(connection, source);
		else if (!can_go_on(errno))
			return error_set_errno(error, "the socket");
	}
}
