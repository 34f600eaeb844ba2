/*
 * The terminal's alternate screen, which gives the terminal back as it was. A signal that ends or stops programs does so
 * here, too, once that is done.
 */
#ifndef NVTASKSET_TERMINAL_SCREEN_H
#define NVTASKSET_TERMINAL_SCREEN_H

#include "base/error.h"
#include "terminal.h"

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

struct screen {
	int signals;           /* a signalfd */
	int keys;              /* standard input, or -1 if it is no terminal */
	bool is_entered;
	struct termios before; /* the settings of standard input before */
	sigset_t unblocked;    /* the signal mask before */
};

/* -1 with the reason, and nothing to close. */
int screen_open(struct screen *screen, struct error *error);
void screen_close(struct screen *screen);

/* Once `signals` can be read. */
void screen_take_signal(struct screen *screen);

/* Once `keys` can be read: the bytes that the keys have sent, of which there is at least one; 0 if the keyboard is gone. */
size_t screen_read_keys(const struct screen *screen, char *bytes, size_t room);

/* Shows lines in place of those before: as many as there are rows; where there are more, the last row says how many. They are
 * used up. -1 with the reason. */
int screen_draw(char *text, const struct terminal *terminal, struct error *error);

#endif
