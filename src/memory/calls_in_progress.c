#include "calls_in_progress.h"

#include <stdatomic.h>

static atomic_uint calls;
static _Atomic uint64_t ended;
static __thread bool is_in_call __attribute__((tls_model("initial-exec")));

void memory_note_call(bool begins)
{
	is_in_call = begins;
	if (begins) {
		atomic_fetch_add(&calls, 1);
	} else {
		atomic_fetch_add(&ended, 1);
		atomic_fetch_sub(&calls, 1);
	}
}

bool memory_is_quiet(uint64_t *number)
{
	*number = atomic_load(&ended);
	return atomic_load(&calls) == is_in_call;
}

void calls_in_progress_after_fork(void)
{
	atomic_store(&calls, is_in_call);
}
