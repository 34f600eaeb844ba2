/* Bounds of work in a container's image (tools/nvtaskset/cdi/inside.h). tests/cli/images.bats has images. */
#include "root.h"

#include "cdi/inside.h"

/* The alarm ends the work after half a minute at most, whatever the runtime did with SIGALRM. */
static int work(int image, const void *task, struct error *error)
{
	unsigned int left_s = alarm(0);
	struct sigaction then;

	sigaction(SIGALRM, NULL, &then);
	bool is_fatal = then.sa_handler == SIG_DFL && left_s > 0 && left_s <= 30;

	return is_fatal ? 0 : error_set(error, "%u s are left", left_s);
}

TEST(half_a_minute)
{
	struct error error;

	if (geteuid() != 0)
		skip_because("needs root");
	root_run("mkdir -p .%s", INSIDE_GROUPS);
	signal(SIGALRM, SIG_IGN);
	int result = confine(root, work, NULL, &error);

	signal(SIGALRM, SIG_DFL);
	if (result < 0 && strstr(error.reason, "right to mount"))
		skip_because("mounts are not permitted");
	assert_done(result);
}

RUN_TESTS(root_make, root_remove)
