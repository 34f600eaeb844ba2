#include "purse.h"

#include "clock.h"
#include "proc.h"

#include <unistd.h>

static unsigned int *spent_by(struct purse *purse, uid_t user)
{
	unsigned int place = 0;

	while (place < purse->count && purse->users[place].user != user)
		place++;
	if (place == PURSE_USERS) {
		place--;
	} else if (place == purse->count) {
		purse->users[place].user = user;
		purse->count++;
	}
	return &purse->users[place].spent;
}

static uid_t user_of(pid_t pid)
{
	return (uid_t)proc_status(pid, "Uid:", 0); /* /proc shows uninspectable processes as root's */
}

static unsigned int left_of(struct purse *purse, uid_t user)
{
	unsigned int spent = *spent_by(purse, user);
	unsigned int rest = spent < PURSE_LOOKS_OF_USER ? PURSE_LOOKS_OF_USER - spent : 0;
	unsigned int of_all = purse->spent < PURSE_LOOKS_OF_ALL ? PURSE_LOOKS_OF_ALL - purse->spent : 0;

	return user != geteuid() && of_all < rest ? of_all : rest;
}

/* Most processes cost little; the user is only looked up for a costly process, and from then on for all. */
#define CHEAP 64

static void settle(struct purse *purse)
{
	unsigned int spent = purse->given - purse->left;

	if (spent > CHEAP) {
		uid_t user = user_of(purse->pid);

		*spent_by(purse, user) += spent;
		purse->spent += user != geteuid() ? spent : 0;
	}
}

bool purse_begin(struct purse *purse, pid_t pid)
{
	settle(purse);
	purse->pid = pid;
	purse->left = purse->given = purse->count > 0 ? left_of(purse, user_of(pid)) : PURSE_LOOKS_OF_USER;
	purse->is_short = purse->is_short || purse->left == 0;
	return purse->left > 0;
}

bool purse_pay(struct purse *purse, unsigned int looks)
{
	bool can = !purse || purse->left > looks;

	if (purse)
		purse->left = can ? purse->left - looks : 0;
	return can;
}

bool purse_pay_bytes(struct purse *purse, size_t bytes)
{
	return purse_pay(purse, (unsigned int)(bytes / PURSE_BYTES_OF_LOOK + 1));
}

bool purse_find(struct purse *purse, pid_t pid, const char *name, size_t most, const char *text)
{
	bool is_poor = purse && purse->left < most / PURSE_BYTES_OF_LOOK;
	size_t can = is_poor ? (size_t)purse->left * PURSE_BYTES_OF_LOOK : most, left = can;
	bool found = proc_find(pid, name, &left, text, NULL, 0);

	purse_pay_bytes(purse, can - left);
	return found;
}

bool purse_wait(struct purse *purse, unsigned int *patience_ms)
{
	bool can = *patience_ms > 0 && (!purse || purse->wait_ms > 0);

	if (can) {
		--*patience_ms;
		if (purse)
			purse->wait_ms--;
		clock_pause_us(1000);
	}
	return can;
}
