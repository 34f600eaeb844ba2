#!/usr/bin/env bats
# --enable-system and --disable-system, on a machine of each test's own: a mount namespace with its own /etc, whose dynamic
# linker's cache knows a driver, and an installed nvtaskset.

load helpers

configuration=/etc/ld.so.conf.d/00-000-nvtaskset.conf

setup_machine() {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	unshare -m true 2>/dev/null || skip "namespaces are not permitted"
	unshare -m sleep 300 3>&- &
	MACHINE=$!
	for _ in $(seq 100); do
		[ "$(readlink "/proc/$MACHINE/ns/mnt")" = "$(readlink /proc/self/ns/mnt)" ] || break
		sleep 0.05
	done
	unset NVTASKSET_DRIVER
	on_machine mount -t tmpfs -o mode=755 none /mnt
	on_machine cp -a /etc /mnt/etc
	on_machine mount --bind /mnt/etc /etc
	on_machine mkdir /mnt/driver
	on_machine cp "$BUILD/sim/libcuda.so.1" /mnt/driver/libcuda.so.1.1
	on_machine ln -s libcuda.so.1.1 /mnt/driver/libcuda.so.1
	on_machine ln -s libcuda.so.1 /mnt/driver/libcuda.so
	on_machine sh -c 'echo /mnt/driver >/etc/ld.so.conf.d/driver.conf'
	on_machine make -s -C "$ROOT" BUILD="$BUILD" install PREFIX=/mnt/usr
	on_machine /sbin/ldconfig -X
	installed=/mnt/usr/bin/nvtaskset
	links=/mnt/usr/lib/nvtaskset/system
}

on_machine() {
	nsenter -m -t "$MACHINE" -- "$@" 3>&-
}

teardown() {
	stop_program
	[ -z "${MACHINE:-}" ] || { kill "$MACHINE" && wait "$MACHINE"; } 2>/dev/null || true
	rm -rf "$WORK"
}

# All of the machine that could be written to, in one text.
state() {
	on_machine sh -c 'find /etc /mnt/driver /mnt/usr -printf "%p %y %m %u %l %s\n" | grep -v " d " | sort; sha256sum /etc/ld.so.cache'
}

# Starts a program that knows nothing of nvtaskset, and waits until it has a context.
start_innocent() {
	nsenter -m -t "$MACHINE" -- "$@" "$BUILD/tests/programs/play" where wait where >"$WORK/output" 2>&1 3>&- &
	PROGRAM=$!
	for _ in $(seq 200); do
		! grep -q waiting "$WORK/output" || return 0
		sleep 0.05
	done
	cat "$WORK/output"
	return 1
}

@test "every program can be given a partition, and is as it was afterwards" {
	setup_machine
	before=$(state)
	[ "$(on_machine "$installed" --enable-system)" = "enabled: programs that start from now on can be given a partition with -p" ]
	start_innocent
	[ "$(cat "$WORK/output")" = "0-65
waiting" ]
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-65" ]
	nvtaskset -tp 3-5 "$PROGRAM"
	kill -USR1 "$PROGRAM"
	wait "$PROGRAM"
	[ "$(tail -n 1 "$WORK/output")" = 3-5 ]
	[ "$(on_machine "$installed" --disable-system)" = "disabled: programs that start from now on find the driver alone" ]
	diff <(echo "$before") <(state)
	start_innocent
	refuses "pid $PROGRAM: uses CUDA, but was started without nvtaskset; --attach loads the library into it" nvtaskset -p "$PROGRAM" ||
		grep -q "was started without nvtaskset" "$WORK/stderr"
}
