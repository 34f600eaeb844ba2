/* Waits for a byte. As other C libraries and other processors have it. */
#include <stdio.h>

int main(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
	puts("intact");
	return 0;
}
