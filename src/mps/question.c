#include "question.h"

#include "base/clock.h"

#include <string.h>

int mps_patience_ms = 15000;

const char *mps_first_line(char *answer)
{
	answer[strcspn(answer, "\r\n")] = '\0';
	return answer[0] ? answer : "it said nothing";
}

int mps_explain(int result, const char *control, const struct mps_status *status, struct error *error)
{
	if (result == MPS_CONTROL_IMPOSSIBLE)
		return error_set_errno(error, "MPS: %.200s cannot be run", control);
	if (result == MPS_CONTROL_OVERDUE)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: end it with 'echo "
		                        "quit | " MPS_CONTROL "' or kill it",
		                 status->pipe_directory);
	if (result == MPS_CONTROL_DIED)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: " MPS_CONTROL " died when it was "
		                        "asked",
		                 status->pipe_directory);
	return 0;
}

static int try_once(const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER])
{
	struct mps_control_question question;

	mps_control_begin(&question, control, commands);
	return mps_control_end(&question, mps_patience_ms, answer);
}

/* The daemon answers one question at a time, and the control program does not wait for its turn (hardware.md). */
int mps_ask_again(int result, const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER])
{
	double end = clock_ms() + mps_patience_ms;

	while (result > 0 && strstr(answer, "Cannot send command") && clock_ms() < end) {
		clock_pause_us(MPS_RETRY_US);
		result = try_once(control, commands, answer);
	}
	return result;
}

int mps_ask(const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER])
{
	return mps_ask_again(try_once(control, commands, answer), control, commands, answer);
}
