#include "purse.h"

#include "clock.h"
#include "proc.h"

#include <unistd.h>

static __thread struct purses *open_purses __attribute__((tls_model("initial-exec")));
static __thread unsigned int left __attribute__((tls_model("initial-exec"))); /* for the current process */

static struct purse *purse_of(struct purses *purses, uid_t user)
{
	unsigned int place = 0;

	while (place < purses->count && purses->list[place].user != user)
		place++;
	if (place == PURSE_USERS)
		place--;
	else if (place == purses->count)
		purses->list[purses->count++] = (struct purse){.user = user};
	return &purses->list[place];
}

static uid_t user_of(pid_t pid)
{
	return (uid_t)proc_status(pid, "Uid:", 0); /* /proc shows uninspectable processes as root's */
}

static unsigned int left_of(struct purses *purses, uid_t user)
{
	unsigned int spent = purse_of(purses, user)->spent,
	             rest = spent < PURSE_LOOKS_OF_USER ? PURSE_LOOKS_OF_USER - spent : 0;
	unsigned int of_all = purses->spent < PURSE_LOOKS_OF_ALL ? PURSE_LOOKS_OF_ALL - purses->spent : 0;

	return user != geteuid() && of_all < rest ? of_all : rest;
}

/* Most processes cost little; the user is only looked up for a costly process. */
#define CHEAP 64

static bool some_are_poor(const struct purses *purses)
{
	return purses->count > 0;
}

bool purses_open(struct purses *purses, pid_t pid)
{
	if (open_purses)
		return left > 0;
	left = some_are_poor(purses) ? left_of(purses, user_of(pid)) : PURSE_LOOKS_OF_USER;
	purses->spent_here = left;
	purses->is_short = purses->is_short || left == 0;
	open_purses = left > 0 ? purses : NULL;
	return left > 0;
}

void purses_close(struct purses *purses, pid_t pid)
{
	unsigned int spent = purses->spent_here - left;

	if (open_purses != purses)
		return;
	if (spent > CHEAP) {
		uid_t user = user_of(pid);

		purse_of(purses, user)->spent += spent;
		purses->spent += user != geteuid() ? spent : 0;
	}
	open_purses = NULL;
}

bool purse_pay(unsigned int looks)
{
	bool can = !open_purses || left > looks;

	if (open_purses)
		left = can ? left - looks : 0;
	return can;
}

bool purse_pay_bytes(size_t bytes)
{
	return purse_pay((unsigned int)(bytes / PURSE_BYTES_OF_LOOK + 1));
}

bool purse_wait(unsigned int *patience_ms)
{
	bool can = *patience_ms > 0 && (!open_purses || open_purses->wait_ms > 0);

	if (can) {
		--*patience_ms;
		if (open_purses)
			open_purses->wait_ms--;
		clock_pause_us(1000);
	}
	return can;
}
