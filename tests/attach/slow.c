/* A library that takes until somebody writes a byte to standard input to be loaded. */
#include <unistd.h>

__attribute__((constructor)) static void start(void)
{
	char byte;

	if (read(STDIN_FILENO, &byte, 1) != 1)
		_exit(3);
}
