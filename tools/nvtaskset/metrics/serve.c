#include "serve.h"

#include "base/clock.h"
#include "exposition.h"
#include "request.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 3 /* sd_listen_fds(3) */

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

/* --- clients -------------------------------------------------------------------------------------------------------- */

enum client_state {
	CLIENT_NONE,
	CLIENT_ASKS,
	CLIENT_TAKES, /* the response */
	CLIENT_LEAVES /* it has been told that this was all: closing with unread bytes would discard what was sent */
};

struct client {
	enum client_state state;
	int connection;
	double until;
	char head[REQUEST_MAX];
	size_t head_length;
	char *response;
	size_t length, sent;
};

struct server {
	const struct page_source *source;
	int socket; /* -1: there is one connection, and no other comes */
	double meanwhile_at;
	struct client clients[SERVE_CLIENTS];
};

static void set_state(struct client *client, enum client_state state)
{
	client->state = state;
	client->until = clock_ms() + SERVE_SECONDS * 1000;
}

static void drop(struct client *client)
{
	close(client->connection);
	free(client->response);
	client->response = NULL;
	client->state = CLIENT_NONE;
}

/* A free place; or that of the client that has had nothing to take for longest. NULL if all take responses. */
static struct client *find_place(struct server *server)
{
	struct client *found = NULL;

	for (int i = 0; i < SERVE_CLIENTS && !(found && found->state == CLIENT_NONE); i++) {
		struct client *client = &server->clients[i];
		bool is_older = client->state != CLIENT_TAKES && (!found || client->until < found->until);

		found = client->state == CLIENT_NONE || is_older ? client : found;
	}
	return found;
}

static void welcome(struct server *server, int connection)
{
	struct client *client = find_place(server);

	if (client && client->state != CLIENT_NONE)
		drop(client);
	if (client) {
		client->connection = connection;
		client->head_length = client->length = client->sent = 0;
		set_state(client, CLIENT_ASKS);
	}
}

/* --- responses ------------------------------------------------------------------------------------------------------ */

static const struct {
	const char *status, *more;
} answers[] = {
	[REQUEST_OF_METRICS] = {"200 OK", ""},
	[REQUEST_OF_OTHER_METHOD] = {"405 Method Not Allowed", "Allow: GET, HEAD\r\n"},
	[REQUEST_OF_OTHER_PATH] = {"404 Not Found", ""},
	[REQUEST_BAD] = {"400 Bad Request", ""},
};

/* Returns the status, and the type of what is written. */
static const char *write_body(FILE *body, const struct page_source *source, const struct request *request, const char **type)
{
	enum metrics_format format = source->format == METRICS_ANY ? request->format : source->format;
	const char *status = answers[request->state].status;
	struct error why = {.reason = ""};

	*type = "text/plain; charset=utf-8";
	if (request->state != REQUEST_OF_METRICS) {
		fprintf(body, "%s\n", status);
	} else if (source->write(source->context, format, body, &why) < 0) {
		status = "500 Internal Server Error";
		fprintf(body, "nvtaskset: %s\n", why.reason);
		fprintf(stderr, "nvtaskset: %s\n", why.reason);
	} else {
		*type = exposition_type(format);
	}
	return status;
}

/* Without memory, the response is empty. */
static void respond(struct client *client, const struct page_source *source, const struct request *request)
{
	char *text = NULL;
	size_t length = 0;
	const char *status = "", *type = "";
	FILE *body = open_memstream(&text, &length);
	FILE *response = body ? open_memstream(&client->response, &client->length) : NULL;

	if (response)
		status = write_body(body, source, request, &type);
	if (body && fclose(body) == 0 && response) {
		fprintf(response, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sConnection: close\r\n\r\n", status, type,
		        length, answers[request->state].more);
		if (!request->is_head)
			fwrite(text, 1, length, response);
	}
	if (response && fclose(response) != 0)
		client->length = 0;
	free(text);
}

/* --- connections ---------------------------------------------------------------------------------------------------- */

/* What a call on a connection that does not wait has come to. */
static bool can_go_on(ssize_t result)
{
	return result > 0 || (result < 0 && (errno == EAGAIN || errno == EINTR));
}

static void read_request(struct client *client, const struct page_source *source)
{
	ssize_t got = recv(client->connection, client->head + client->head_length, REQUEST_MAX - client->head_length, MSG_DONTWAIT);
	bool is_all = !can_go_on(got);
	struct request request;

	client->head_length += got > 0 ? (size_t)got : 0;
	request_read(&request, client->head, client->head_length, is_all);
	if (request.state != REQUEST_UNFINISHED) {
		respond(client, source, &request);
		set_state(client, CLIENT_TAKES);
	}
}

static void send_response(struct client *client)
{
	ssize_t sent = send(client->connection, client->response + client->sent, client->length - client->sent,
	                    MSG_NOSIGNAL | MSG_DONTWAIT);

	client->sent += sent > 0 ? (size_t)sent : 0;
	if (client->sent == client->length || !can_go_on(sent)) {
		shutdown(client->connection, SHUT_WR);
		set_state(client, CLIENT_LEAVES);
	}
}

static void take_rest(struct client *client)
{
	char rest[1024];

	if (!can_go_on(recv(client->connection, rest, sizeof rest, MSG_DONTWAIT)))
		drop(client);
}

static void serve_client(struct client *client, const struct page_source *source)
{
	switch (client->state) {
	case CLIENT_ASKS:
		read_request(client, source);
		break;
	case CLIENT_TAKES:
		send_response(client);
		break;
	case CLIENT_LEAVES:
		take_rest(client);
		break;
	case CLIENT_NONE:
		break;
	}
}

/* --- waiting -------------------------------------------------------------------------------------------------------- */

/* A connection that is gone before it is accepted, or a lack that passes, is no reason to end. */
static bool can_accept_again(int why)
{
	return why == EINTR || why == ECONNABORTED || why == EAGAIN || why == EPROTO || why == ENETDOWN || why == EHOSTUNREACH ||
	       why == ENETUNREACH || why == EPERM;
}

static bool lacks_room(int why)
{
	return why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM;
}

static int accept_one(struct server *server, struct error *error)
{
	int connection = accept4(server->socket, NULL, NULL, SOCK_CLOEXEC), result = 0;

	if (connection >= 0)
		welcome(server, connection);
	else if (lacks_room(errno))
		clock_pause_us(SERVE_MEANWHILE_MS * 1000);
	else if (!can_accept_again(errno))
		result = error_set_errno(error, "the socket");
	return result;
}

static void look_meanwhile(struct server *server)
{
	if (server->source->meanwhile && clock_ms() >= server->meanwhile_at) {
		server->source->meanwhile(server->source->context);
		server->meanwhile_at = clock_ms() + SERVE_MEANWHILE_MS;
	}
}

/* How long to wait at once, for poll(2); -1: until something comes. */
static int next_wait(const struct server *server)
{
	double until = server->source->meanwhile ? server->meanwhile_at : -1, left;

	for (int i = 0; i < SERVE_CLIENTS; i++) {
		const struct client *client = &server->clients[i];

		if (client->state != CLIENT_NONE && (until < 0 || client->until < until))
			until = client->until;
	}
	left = until - clock_ms();
	return until < 0 ? -1 : left > 0 ? (int)left + 1 : 0;
}

/* Waits until there is something to do, and does it. The last file is the socket. */
static int serve_once(struct server *server, struct error *error)
{
	struct pollfd files[SERVE_CLIENTS + 1];
	int result = 0;

	for (int i = 0; i < SERVE_CLIENTS; i++) {
		const struct client *client = &server->clients[i];

		files[i] = (struct pollfd){.fd = client->state == CLIENT_NONE ? -1 : client->connection,
		                           .events = client->state == CLIENT_TAKES ? POLLOUT : POLLIN};
	}
	files[SERVE_CLIENTS] = (struct pollfd){.fd = find_place(server) ? server->socket : -1, .events = POLLIN};
	int ready = poll(files, SERVE_CLIENTS + 1, next_wait(server));

	for (int i = 0; i < SERVE_CLIENTS && ready >= 0; i++) {
		struct client *client = &server->clients[i];

		if (files[i].revents != 0)
			serve_client(client, server->source);
		else if (client->state != CLIENT_NONE && clock_ms() >= client->until)
			drop(client);
	}
	if (ready > 0 && files[SERVE_CLIENTS].revents != 0)
		result = accept_one(server, error);
	look_meanwhile(server);
	return result;
}

static bool has_clients(const struct server *server)
{
	bool has = false;

	for (int i = 0; i < SERVE_CLIENTS && !has; i++)
		has = server->clients[i].state != CLIENT_NONE;
	return has;
}

int serve(int socket, const struct page_source *source, struct error *error)
{
	static struct server server; /* large */
	int result = 0;

	server = (struct server){.source = source, .socket = serve_is_listening(socket) ? socket : -1};
	if (server.socket < 0)
		welcome(&server, socket);
	while (result == 0 && (server.socket >= 0 || has_clients(&server)))
		result = serve_once(&server, error);
	return result;
}
