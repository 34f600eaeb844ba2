/* A library whose loading lasts until standard input has a byte. */
#include <unistd.h>

__attribute__((constructor)) static void start(void)
{
	char byte;

	if (read(STDIN_FILENO, &byte, 1) != 1)
		_exit(3);
}
