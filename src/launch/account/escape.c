#include "escape.h"

#include "account.h"
#include "base/log.h"
#include "strict.h"

/* The other reasons are about a graph or a module. */
static bool is_of_launch(enum segment_reason reason)
{
	return reason != SEGMENT_STALE_GRAPH && reason != SEGMENT_LAUNCHED_BY_KERNELS;
}

void escape_note(enum segment_reason reason)
{
	static _Atomic bool warned[SEGMENT_REASON_COUNT];
	const char *text = segment_reason_text(reason);

	strict_refuse(text);
	account_reason(reason);
	if (!atomic_exchange_explicit(&warned[reason], true, memory_order_relaxed))
		log_warning("%s%s", text, is_of_launch(reason) ? "; launches run unrestricted" : "");
}

void escape_note_all(const char *reason, const char *until)
{
	strict_refuse(reason);
	log_warning("%s; this program runs unrestricted%s", reason, until);
}
