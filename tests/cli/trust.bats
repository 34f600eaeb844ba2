#!/usr/bin/env bats
# Who can change the directory from which programs load our library, and who can read it. Each test has a machine of its
# own, whose /tmp, /run and /var/cache are empty.

# Variables in single quotes are for the inner shells.
load helpers

AS_USER="setpriv --reuid 65534 --regid 65534 --clear-groups"

prepare() {
	needs_another_user
	needs_namespaces -m
	unset XDG_CACHE_HOME XDG_RUNTIME_DIR
}

# If this tree lies in a directory that a new mount covers, it is mounted there again.
put_tree_back() {
	case $ROOT/ in
	/tmp/* | /run/*) echo "mkdir -p '$ROOT'; mount --move /mnt/tree '$ROOT'" ;;
	*) echo "umount /mnt/tree" ;;
	esac
}

# Runs shell text on that machine. In it, "as_user COMMAND" runs a command as another user. "through WHO" prints the
# directory of the links through which WHO's programs find our library.
on_machine() { # TEXT
	unshare -m sh -euc "
		mount -t tmpfs -o mode=755 none /mnt
		mkdir /mnt/tree
		mount --bind '$ROOT' /mnt/tree
		mount -t tmpfs -o mode=755 none /var/cache
		mount -t tmpfs -o mode=755 none /run
		mount -t tmpfs -o mode=1777 none /tmp
		$(put_tree_back)
		export HOME=/nonexistent; unset TMPDIR
		as_user() { $AS_USER \"\$@\"; }
		through() { \"\$@\" nvtaskset --mps off -v -t 3 true 2>&1 | sed -n 's,.* through \\(.*\\)/[0-9a-f]*\$,\\1,p'; }
		$1"
}

# --- root ------------------------------------------------------------------------------------------------

@test "every user can read root's directory, and only root can write it" {
	run on_machine 'through env'
	[ "$output" = /var/cache/nvtaskset ]
	run on_machine 'umask 077; through env; nvtaskset --mps off -t 3 '"$AS_USER"' where 1'
	[ "${lines[0]}" = /var/cache/nvtaskset ]
	[[ "${lines[1]}" == *"on TPCs 3 ("* ]]
	run on_machine 'cache=$(mktemp -d); chmod 755 $cache; [ "$(through env XDG_CACHE_HOME=$cache)" = $cache/nvtaskset ]
		mkdir -p /run/real; ln -s /run/real /run/link; through env XDG_CACHE_HOME=/run/link/below'
	[ "$output" = /run/real/below/nvtaskset ]
}

@test "if /var/cache cannot be written, /run; if neither can, nothing starts" {
	run -1 on_machine 'mount -o remount,ro /var/cache; through env
		mount -t tmpfs -o mode=755,ro none /run; nvtaskset --mps off -t 3 true'
	[ "${lines[0]}" = /run/nvtaskset ]
	[ "${lines[1]}" = "nvtaskset: /var/cache/nvtaskset: Read-only file system; there is no other place for links to our library: set XDG_CACHE_HOME to a directory that only you can write to" ]
	[ "${#lines[@]}" -eq 2 ]
}

@test "root in a user namespace is treated as an ordinary user" {
	$AS_USER unshare --user --map-root-user true || skip "namespaces are not permitted"
	run on_machine 'through as_user unshare --user --map-root-user
		mkdir /run/user; chown 65534 /run/user; through as_user unshare --user --map-root-user env XDG_RUNTIME_DIR=/run/user
		through as_user unshare --user --map-root-user env XDG_CACHE_HOME=/run/user/below'
	[ "$output" = "/tmp/nvtaskset-0
/run/user/nvtaskset
/run/user/below/nvtaskset" ]
}

# --- programs that become another user ---------------------------------------------------------------------

@test "a program that changes its user finds our library, although root's own directory is closed" {
	run on_machine 'mkdir -m 700 /run/home; export XDG_CACHE_HOME=/run/home/.cache
		nvtaskset --mps off -t 3 '"$AS_USER"' where 1; through env'
	[[ "${lines[0]}" == *"on TPCs 3 ("* ]]
	[ "${lines[1]}" = /var/cache/nvtaskset ]
	[ "${#lines[@]}" -eq 2 ]
}

@test "if a program that changes its user would run unrestricted, a message says so" {
	export WORK BUILD
	said="other users cannot read it: a program that changes its user runs unrestricted"
	closed='mkdir -p -m 700 /run/closed; cp -r $BUILD/nvtaskset $BUILD/lib $BUILD/sim /run/closed; '
	# Our library is closed, or the driver, in one of two ways.
	for command in '/run/closed/nvtaskset --mps off -t 3 true' \
		'NVTASKSET_DRIVER=/run/closed/sim/libcuda.so.1 nvtaskset --mps off -t 3 true' \
		'ln -sf $BUILD/sim/libcuda.so.1 /run/closed/sim/; unset NVTASKSET_DRIVER
		LD_LIBRARY_PATH=/run/closed/sim nvtaskset --mps off -t 3 true'; do
		run -0 on_machine "$closed$command"
		[ "$output" = "nvtaskset: /run/closed: $said; most programs do not" ]
	done
	refuses "/run/closed: $said, so --strict does not start COMMAND" \
		on_machine "$closed"'/run/closed/nvtaskset --mps off --strict -t 3 echo started'
	# The directory of links is closed, and there is no open one.
	run on_machine 'mount -o remount,ro /var/cache; mkdir -m 700 /tmp/closed; mount --bind /tmp/closed /run
		XDG_CACHE_HOME=/run nvtaskset --mps off -t 3 true'
	[ "$output" = "nvtaskset: /run: $said; most programs do not" ]
}

@test "no such message where no program can change its user" {
	run -0 on_machine 'mkdir /run/closed; cp -r $BUILD/nvtaskset $BUILD/lib /run/closed; chown -R 65534 /run/closed; chmod 700 /run/closed
		as_user /run/closed/nvtaskset --mps off --strict -t 3 echo ran'
	[ "$output" = ran ]
	run -0 on_machine 'mkdir -m 700 /run/closed; cp -r $BUILD/nvtaskset $BUILD/lib /run/closed
		setpriv --bounding-set -setuid --inh-caps -setuid /run/closed/nvtaskset --mps off --strict -t 3 echo ran'
	[ "$output" = ran ]
}

# --- other users --------------------------------------------------------------------------------------------

@test "another user's directory in /tmp keeps nobody from starting" {
	run on_machine 'through as_user; mkdir /tmp/nvtaskset-65534.1; rm -r /tmp/nvtaskset-65534
		mkdir -m 777 /tmp/nvtaskset-65534; through as_user; through as_user; ls /tmp | grep nvtaskset'
	[ "$(xargs <<<"$output")" = \
		"/tmp/nvtaskset-65534 /tmp/nvtaskset-65534.2 /tmp/nvtaskset-65534.2 nvtaskset-65534 nvtaskset-65534.1 nvtaskset-65534.2" ]
	run on_machine 'ln -s /run /tmp/nvtaskset-65534; chmod 777 /run; through as_user'
	[ "$output" = /tmp/nvtaskset-65534.1 ]
}

@test "with all names in /tmp taken, it says what to do" {
	run on_machine 'mkdir /tmp/nvtaskset-65534; for i in $(seq 15); do mkdir /tmp/nvtaskset-65534.$i; done
		as_user nvtaskset --mps off -t 3 true || as_user env XDG_CACHE_HOME=/tmp/own nvtaskset --mps off -t 3 echo started'
	[ "${lines[0]}" = "nvtaskset: /nonexistent: Permission denied; there is no other place for links to our library: set XDG_CACHE_HOME to a directory that only you can write to" ]
	[ "${lines[1]}" = started ]
}

@test "a user's cache, session directory, or directory in /tmp: the first that nobody else can write" {
	run on_machine 'mkdir -p /run/home /run/user /run/theirs; chown 65534 /run/home /run/user
		export HOME=/run/home XDG_RUNTIME_DIR=/run/user
		through as_user; chmod g+w /run/home/.cache; through as_user; chmod 777 /run/user; through as_user
		chmod 755 /run/user /run/home/.cache; rm -r /run/home/.cache; touch /run/home/.cache; through as_user
		for cache in /run/home/a:b /proc /run/home/.cache /run/theirs relative; do
			through as_user env XDG_CACHE_HOME=$cache HOME=/nonexistent
		done'
	[ "$(uniq -c <<<"$output" | xargs)" = \
		"1 /run/home/.cache/nvtaskset 1 /run/user/nvtaskset 1 /tmp/nvtaskset-65534 6 /run/user/nvtaskset" ]
}
