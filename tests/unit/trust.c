/*
 * Who can change a path. Other users are made by chown, so most of it needs root.
 */
#include "../cases.h"
#include "base/trust.h"

#include "root.h"

static struct error error;

#define OTHER "65534"

/* Of a path below the root. */
static const char *below(const char *path)
{
	return text_of("%s/%s", root, path);
}

/* The reason, without the path of the root in front; NULL: it must succeed. */
static void assert_result(int result, const char *path, const char *reason)
{
	if (!reason && result < 0)
		fail_msg("%s: %s", path, error.reason);
	if (!reason)
		return;
	assert_int_equal(result, -1);
	assert_memory_equal(error.reason, root, strlen(root));
	assert_string_equal(error.reason + strlen(root), reason);
}

static void assert_distrusted(const char *path, const char *reason)
{
	assert_result(trust_check(below(path), geteuid(), TRUST_NOW, &error), path, reason);
}

static void assert_trusted(const char *path)
{
	assert_distrusted(path, NULL);
}

static void needs_root(void)
{
	if (geteuid() != 0)
		skip_because("needs root");
}

/* --- who can change what is there ----------------------------------------------------------------------------------- */

TEST(others_can_write)
{
	root_run("mkdir -p a/b && : > a/b/file && chmod g+w a");
	assert_distrusted("a/b/file", "/a: others can write there");
	assert_distrusted("a", "/a: others can write there");
	root_run("chmod 707 a");
	assert_distrusted("a/b/missing", "/a: others can write there");
	root_run("chmod 755 a; chmod 757 a/b");
	assert_distrusted("a/b", "/a/b: others can write there");
	root_run("chmod 755 a/b; chmod g+w a/b/file");
	assert_distrusted("a/b/file", "/a/b/file: others can write there");
}

TEST(others_own)
{
	needs_root();
	root_run("mkdir -p a/b/c && chown " OTHER " a/b");
	assert_trusted("a");
	assert_distrusted("a/b", "/a/b: belongs to another user");
	assert_distrusted("a/b/c", "/a/b: belongs to another user");
	assert_distrusted("a/b/missing", "/a/b: belongs to another user");
	/* A path that belongs to root can be changed by no other user. */
	assert_int_equal(trust_check(below("a/b"), 65534, TRUST_NOW, &error), 0);
	assert_int_equal(trust_check(below("a/b"), 65533, TRUST_NOW, &error), -1);
}

TEST(links)
{
	needs_root();
	root_run("mkdir -p mine theirs/d && chown " OTHER " theirs && ln -s ../theirs/d mine/out && ln -s %s/mine theirs/in && "
	         "ln -s mine link && chown -h " OTHER " link && ln -s loop loop",
	         root);
	assert_distrusted("mine/out", "/theirs: belongs to another user");
	assert_distrusted("theirs/in", "/theirs: belongs to another user");
	assert_distrusted("link", "/link: belongs to another user");
	assert_distrusted("link/missing", "/link: belongs to another user");
	assert_distrusted("loop", "/loop: Too many levels of symbolic links");
}

/* Such as /tmp. */
TEST(sticky_directories)
{
	root_run("mkdir -p tmp/mine && chmod 1777 tmp && ln -s mine tmp/link");
	assert_trusted("tmp/mine");
	assert_trusted("tmp/link");
	assert_distrusted("tmp", "/tmp: others can write there");
	assert_distrusted("tmp/missing", "/tmp/missing: others can make it");
	assert_int_equal(trust_check(below("tmp/mine"), geteuid(), TRUST_FOREVER, &error), -1);
	/* The test's root itself is in such a directory. */
	assert_string_equal(error.reason, "/tmp: others can write there");
	needs_root();
	root_run("mkdir tmp/theirs && chown " OTHER " tmp/theirs && chown -h " OTHER " tmp/link");
	assert_distrusted("tmp/theirs", "/tmp/theirs: belongs to another user");
	assert_distrusted("tmp/link", "/tmp/link: belongs to another user");
}

TEST(no_paths)
{
	char endless[2 * PATH_MAX];

	memset(endless, '/', sizeof endless - 1);
	endless[sizeof endless - 1] = '\0';
	assert_int_equal(trust_check("relative", geteuid(), TRUST_NOW, &error), -1);
	assert_int_equal(trust_check("", geteuid(), TRUST_NOW, &error), -1);
	assert_int_equal(trust_check(endless, geteuid(), TRUST_NOW, &error), -1);
	/* The second time, there is no room for it. */
	root_run("ln -s \"$(printf './%%.0s' $(seq 1900))link/x\" link");
	assert_distrusted("link", "/link: Too many levels of symbolic links");
}

static char made[PATH_MAX];

static void assert_makes_not(const char *path, const char *reason)
{
	assert_result(trust_make_directory(below(path), made, &error), path, reason);
}

static void assert_makes(const char *path, const char *real)
{
	assert_makes_not(path, NULL);
	assert_string_equal(made, below(real));
}

TEST(making)
{
	root_run("mkdir a && ln -s a link && ln -s b a/dangling && mkdir -m 1777 tmp && : > file");
	assert_makes("a", "a");
	assert_makes("link/x/y", "a/x/y");
	assert_makes("a/dangling/z", "a/b/z");
	assert_makes("tmp/new/below", "tmp/new/below");
	assert_makes_not("file", "/file: not a directory of yours");
	assert_makes_not("file/below", "/file/below: Not a directory");
	assert_makes_not("tmp", "/tmp: others can write there");
	root_run("chmod g+w a");
	assert_makes_not("a/new", "/a: others can write there");
	root_run("[ ! -e a/new ]");
}

/* No directory is made inside another user's. */
TEST(making_where_others_are)
{
	needs_root();
	root_run("mkdir -p theirs mine && chown " OTHER " theirs && ln -s %s/mine theirs/link && mkdir -m 1777 tmp && "
	         "mkdir tmp/theirs && chown " OTHER " tmp/theirs && ln -s ../mine tmp/link && chown -h " OTHER " tmp/link",
	         root);
	assert_makes_not("theirs", "/theirs: belongs to another user");
	assert_makes_not("theirs/new", "/theirs: belongs to another user");
	assert_makes_not("theirs/link/new", "/theirs: belongs to another user");
	assert_makes_not("tmp/theirs/new", "/tmp/theirs: belongs to another user");
	assert_makes_not("tmp/link/new", "/tmp/link: belongs to another user");
	root_run("[ -z \"$(ls mine)\" ] && [ \"$(ls theirs)\" = link ] && [ -z \"$(ls tmp/theirs)\" ]");
}

static void assert_closed(const char *path, const char *reason)
{
	assert_result(trust_check_readable(below(path), &error), path, reason);
}

static void assert_open(const char *path)
{
	assert_closed(path, NULL);
}

TEST(open_to_others)
{
	root_run("mkdir -p a/b c && : > a/b/file && ln -s ../a/b c/way && ln -s %s/c/way/file file", root);
	assert_open("a/b/file");
	assert_open("a/b");
	assert_open("file");
	root_run("chmod 700 c");
	assert_open("a/b/file");
	assert_closed("file", "/c: other users cannot read it");
	root_run("chmod 711 c a a/b");
	assert_open("file");
	root_run("chmod 640 a/b/file");
	assert_closed("file", "/a/b/file: other users cannot read it");
	root_run("chmod 750 a/b");
	assert_closed("a/b", "/a/b: other users cannot read it");
	assert_closed("c/missing", "/c/missing: No such file or directory");
}

RUN_TESTS(root_make, root_remove)
