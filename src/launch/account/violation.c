#include "violation.h"

#include "account.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

void violation_note(enum segment_reason reason)
{
	static _Atomic bool warned[SEGMENT_REASON_COUNT];
	const char *text = segment_reason_text(reason);
	bool is_of_launch = reason != SEGMENT_STALE_GRAPH && reason != SEGMENT_LAUNCHED_BY_KERNELS;

	violation_refuse(text);
	account_reason(reason);
	if (!atomic_exchange_explicit(&warned[reason], true, memory_order_relaxed))
		log_warning("%s%s", text, is_of_launch ? "; launches run unrestricted" : "");
}

void violation_note_all(const char *reason, const char *until)
{
	violation_refuse(reason);
	log_warning("%s; this program runs unrestricted%s", reason, until);
}

/* --- the end of the program --------------------------------------------------------------------------------------- */

static bool strict;

void violation_open(void)
{
	const char *value = secure_getenv("NVTASKSET_STRICT");

	strict = value && *value;
}

#define PRINTING_US 999999 /* takes less */

/* Not exit: exit would run the program's handlers on a thread in the middle of a launch. A second thread waits without
 * launching: the first has time to print the reason. */
void violation_refuse(const char *reason)
{
	static atomic_flag ending = ATOMIC_FLAG_INIT;

	if (!strict)
		return;
	if (atomic_flag_test_and_set(&ending))
		clock_pause_us(PRINTING_US);
	else
		log_last_words("%s; --strict lets nothing run unrestricted", reason);
	_exit(EXIT_FAILURE);
}
