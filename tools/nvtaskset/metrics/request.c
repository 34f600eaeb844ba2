#include "request.h"

#include <string.h>
#include <strings.h>

/* The line of the head that begins with this name and a colon, in any case; NULL if there is none. */
static const char *find_field(const char *head, const char *name)
{
	const char *line = strchr(head, '\n');
	size_t length = strlen(name);

	while (line && !(strncasecmp(line + 1, name, length) == 0 && line[1 + length] == ':'))
		line = strchr(line + 1, '\n');
	return line ? line + 1 : NULL;
}

/* OpenMetrics is for clients that ask for it: not all can read it. */
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

	return target && strncmp(target + 1, path, length) == 0 && (target[1 + length] == ' ' || target[1 + length] == '?');
}

static enum request_state state_of(const char *head, bool is_head)
{
	enum request_state state = REQUEST_OF_METRICS;

	if (!is_head && strncmp(head, "GET ", 4) != 0)
		state = REQUEST_OF_OTHER_METHOD;
	else if (!is_for(head, "/metrics") && !is_for(head, "/"))
		state = REQUEST_OF_OTHER_PATH;
	return state;
}

void request_read(struct request *request, const char *bytes, size_t length, bool is_all)
{
	static char head[REQUEST_MAX + 1];

	memcpy(head, bytes, length);
	head[length] = '\0';
	bool is_text = memchr(bytes, '\0', length) == NULL, is_whole = strstr(head, "\r\n\r\n") || strstr(head, "\n\n");

	*request = (struct request){.state = REQUEST_UNFINISHED, .is_head = strncmp(head, "HEAD ", 5) == 0};
	request->format = format_for(head);
	if (!is_text || (!is_whole && (is_all || length == REQUEST_MAX)))
		request->state = REQUEST_BAD;
	else if (is_whole)
		request->state = state_of(head, request->is_head);
}
