/* For Python: on which TPCs a kernel runs in the context that is current. */
#include "gpu.h"

#include <string.h>

__attribute__((visibility("default"))) void where(char text[TPCSET_TEXT]);

/* Runs the usual kernel on GPU 0, and writes its TPCs as a list. */
void where(char text[TPCSET_TEXT])
{
	static struct gpu_under_test gpu;

	if (!gpu.context) {
		gpu_load_driver();
		gpu_open_current(&gpu, 0);
	}
	struct tpcset ran = gpu_where(&gpu, NULL);

	tpcset_format_list(&ran, text);
}
