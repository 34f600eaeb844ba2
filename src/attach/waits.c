#include "waits.h"

#include <stddef.h>
#include <sys/syscall.h>

/* A call that failed and is made again waits its full time again. SYS_restart_syscall is the rest of a timed wait that
 * was interrupted before: made again, it continues with the time left, as long as only we interrupted it. */
static const struct {
	long number;
	bool goes_on;
} waits[] = {
	{SYS_futex, true},          {SYS_read, true},          {SYS_readv, true},
	{SYS_recvfrom, true},       {SYS_recvmsg, true},       {SYS_accept4, true},
	{SYS_ppoll, true},          {SYS_pselect6, true},      {SYS_nanosleep, true},
	{SYS_clock_nanosleep, true}, {SYS_wait4, true},        {SYS_waitid, true},
	{SYS_rt_sigsuspend, true},  {SYS_accept, true},        {SYS_epoll_pwait, false},
	{SYS_rt_sigtimedwait, false}, {SYS_restart_syscall, false},
#ifdef __x86_64__
	{SYS_poll, true},           {SYS_select, true},        {SYS_pause, true},
	{SYS_epoll_wait, false},
#endif
#ifdef SYS_epoll_pwait2
	{SYS_epoll_pwait2, false},
#endif
};

#define WAITS (sizeof waits / sizeof waits[0])

bool waits_include(long call, bool *goes_on)
{
	bool found = false;

	for (size_t i = 0; i < WAITS; i++) {
		if (waits[i].number == call) {
			found = true;
			*goes_on = waits[i].goes_on;
		}
	}
	return found;
}
