#include "room.h"

#include <stdlib.h>

#define CHANNELS 127
#define CLIENTS_MAX 48

unsigned int mps_capacity(unsigned int connections)
{
	unsigned int capacity = CHANNELS / connections;

	return capacity < CLIENTS_MAX ? capacity : CLIENTS_MAX;
}

/* The user's own setting for all programs is kept, if it is a number that CUDA would accept. */
unsigned int mps_connections(const struct mps_request *request)
{
	const char *text = getenv(MPS_CONNECTIONS_ENVIRONMENT);
	unsigned int connections = request->connections;

	if (!connections && text) {
		char *end;
		unsigned long number = strtoul(text, &end, 10);

		if (*text >= '0' && *text <= '9' && *end == '\0' && number <= MPS_CONNECTIONS_MAX)
			connections = (unsigned int)number;
	}
	return connections ? connections : MPS_CONNECTIONS_DEFAULT;
}
