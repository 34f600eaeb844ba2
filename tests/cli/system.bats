#!/usr/bin/env bats
# system enable and system disable, on a machine of each test's own: a mount namespace with its own /etc, whose dynamic
# linker's cache knows a driver, and an installed nvtaskset.
# takes: long
# sanitizers: no

load helpers

configuration=/etc/ld.so.conf.d/00-000-nvtaskset.conf

is_elsewhere() { # pid
	[ "$(readlink "/proc/$1/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]
}

prepare() {
	needs_namespaces -m
	setpriv --pdeathsig KILL unshare -m sleep infinity 3>&- &
	MACHINE=$!
	wait_until is_elsewhere "$MACHINE"
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

# All files of the machine that the command could write, in one text.
state() {
	on_machine sh -c 'find /etc /mnt/driver /mnt/usr -printf "%p %y %m %u %l %s\n" | grep -v " d " | sort; sha256sum /etc/ld.so.cache'
}

# Starts a program without nvtaskset, and waits until it has a context.
start_innocent() {
	start_waiting nsenter -m -t "$MACHINE" -- "$BUILD/tests/programs/play" where wait where
}

@test "every program can be given a partition; after disable, all is as before" {
	before=$(state)
	[ "$(on_machine "$installed" system enable)" = "enabled: programs that start from now on can be given a partition with -p
containers that get what 'ldconfig -p' lists, as by Apptainer's --nv, get the driver alone: all TPCs" ]
	start_innocent
	[ "$(cat "$WORK/output" "$WORK/errors")" = "0-65
waiting" ]
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-65" ]
	nvtaskset -tp 3-5 "$PROGRAM"
	kill -USR1 "$PROGRAM"
	wait "$PROGRAM"
	[ "$(tail -n 1 "$WORK/output")" = 3-5 ]
	[ "$(on_machine "$installed" system disable)" = "disabled: programs that start from now on find the driver alone" ]
	diff <(echo "$before") <(state)
	start_innocent
	run -1 nvtaskset -p "$PROGRAM"
	[[ "$output" == *"was started without nvtaskset"* ]]
}

# Each name that the dynamic linker's cache has for the driver, and its path.
listed() {
	on_machine /sbin/ldconfig -p | sed -n 's/^[[:blank:]]*\(libcuda\.so[^ ]*\) (.*64).* => \(.*\)/\1 \2/p'
}

# A root directory with this machine's programs, but without its drivers.
make_container() {
	local directory
	on_machine mkdir -p /mnt/root/etc /mnt/root/libs
	for directory in usr proc dev tmp "$ROOT" "$(realpath "$BUILD")"; do
		on_machine mkdir -p "/mnt/root/$directory"
		on_machine mount --rbind "/$directory" "/mnt/root/$directory"
	done
	on_machine cp -a /bin /lib /lib64 /mnt/root/
}

where_in_container() { # NAME, and variables
	on_machine chroot /mnt/root env "${@:2}" "$BUILD/tests/programs/play" open "$1" where
}

@test "a container into which a tool copies what ldconfig lists has the driver as before, by each name" {
	make_container
	on_machine "$installed" system enable
	# As Apptainer does: the first file of each name, in a directory of LD_LIBRARY_PATH.
	listed | awk '!seen[$1]++ {print $2}' | on_machine xargs cp -L -t /mnt/root/libs
	for name in libcuda.so.1 libcuda.so.01 libcuda.so; do
		[ "$(where_in_container $name LD_LIBRARY_PATH=/libs)" = 0-65 ]
	done
	# In a directory of the container's own cache, in two orders.
	for names in "libcuda.so.1 libcuda.so.01" "libcuda.so.01 libcuda.so.1"; do
		on_machine sh -c 'rm -rf /mnt/root/libs; mkdir /mnt/root/libs; echo /libs >/mnt/root/etc/ld.so.conf'
		for name in $names libcuda.so.nvtaskset libcuda.so; do
			listed | awk -v name=$name '$1 == name {print $2; exit}' | on_machine xargs cp -L -t /mnt/root/libs
		done
		on_machine ldconfig -r /mnt/root
		for name in libcuda.so.1 libcuda.so; do
			[ "$(where_in_container $name)" = 0-65 ]
		done
	done
}

@test "Triton's launchers are built, and a program that opens libcuda.so is inside" {
	on_machine "$installed" system enable
	for options in "-Wl,--as-needed -l:libcuda.so.1" "-Wl,--no-as-needed -l:libcuda.so.1" -lcuda "-L$links -lcuda"; do
		# shellcheck disable=SC2086 # several words
		run -0 on_machine env BUILD="$BUILD" "$installed" --mps off -t 3-5 env -u LD_LIBRARY_PATH "$ROOT/tests/cli/launcher" "$WORK" $options
		[[ "${lines[0]}" == libcuda.so* ]]
		[ "${lines[1]}" = 3-5 ]
	done
	run -0 on_machine "$installed" --mps off -t 3-5 env -u LD_LIBRARY_PATH "$BUILD/tests/programs/play" open libcuda.so where
	[ "$output" = 3-5 ]
}

@test "a parent that ignores SIGCHLD is no failure" {
	before=$(state)
	for word in enable disable; do
		run -0 on_machine env --ignore-signal=CHLD "$installed" system "$word"
		[[ "$output" == "${word}d: programs that start from now on "* ]]
	done
	diff <(echo "$before") <(state)
}

# system enable refuses for this reason, and changes nothing.
refuses_to_enable() { # REASON, and the command that calls nvtaskset
	local reason=$1 before
	shift
	before=$(state)
	refuses "$reason" on_machine "$@" "$installed" system enable
	diff <(echo "$before") <(state)
}

@test "enabling twice is the same as once, and so is disabling" {
	(umask 077 && on_machine "$installed" system enable)
	[ "$(on_machine stat -c %a "$links" "$links/driver" "$configuration" | xargs)" = "755 755 644" ]
	before=$(state)
	[ "$(on_machine "$installed" system enable)" = "enabled already" ]
	said="enabled: programs that start find $links/libcuda.so.01 in front of /mnt/driver/libcuda.so.1"
	[ "$(on_machine "$installed" system)" = "$said" ]
	[ "$(on_machine "${ANOTHER_USER[@]}" "$installed" system status)" = "$said" ]
	diff <(echo "$before") <(state)
	# What an older version has written, and what the driver has left since.
	on_machine sed -i 's/^#.*/# Written by another version./' "$configuration"
	[ "$(on_machine "$installed" system)" = "$said" ]
	on_machine ln -sf /elsewhere/libcuda.so.1 "$links/driver/libcuda.so.nvtaskset"
	[[ "$(on_machine "$installed" system)" == "enabled, by another installation or before the driver moved: "*"$links/libcuda.so.01; "* ]]
	on_machine "$installed" system enable
	[ "$(on_machine "$installed" system)" = "$said" ]
	# An older version's link, by the driver's name.
	on_machine sh -c "rm $links/libcuda.so.01; ln -s ../libcuda.so.1 $links/libcuda.so.1; ldconfig -X"
	[[ "$(on_machine "$installed" system)" == "enabled, by another installation"*"$links/libcuda.so.1; "* ]]
	on_machine "$installed" system enable
	[[ "$(listed)" != *"$links/libcuda.so.1
"* ]]
	[ "$(on_machine "$installed" system)" = "$said" ]
	on_machine "$installed" system disable
	before=$(state)
	[ "$(on_machine "$installed" system disable)" = "not enabled" ]
	[ "$(on_machine "$installed" system)" = "not enabled" ]
	diff <(echo "$before") <(state)
}

@test "one at a time" {
	before=$(state)
	run -124 on_machine flock /mnt/usr/lib/nvtaskset timeout 2 "$installed" system enable
	diff <(echo "$before") <(state)
	on_machine "$installed" system enable
}

@test "--dry-run says to any user what would be written; -v says what is done" {
	before=$(state)
	run -0 on_machine "${ANOTHER_USER[@]}" "$installed" system enable --dry-run
	[ "${lines[0]}" = "$configuration:" ]
	[ "${lines[3]}" = "$links" ]
	[ "${lines[4]}" = "$links/driver/libcuda.so.nvtaskset -> /mnt/driver/libcuda.so.1" ]
	diff <(echo "$before") <(state)
	run on_machine "$installed" -v system enable
	[ "${lines[0]}" = "nvtaskset: $links: links to our library and to /mnt/driver/libcuda.so.1" ]
	[ "$(on_machine cat "$configuration" | tail -n 1)" = "$links" ]
}

@test "only root, and only from a place that only root can write to" {
	refuses_to_enable "system enable: only root can change what every program loads: sudo nvtaskset system enable" \
		"${ANOTHER_USER[@]}"
	refuses "system disable: only root can change what every program loads: sudo nvtaskset system disable" \
		on_machine "${ANOTHER_USER[@]}" "$installed" system disable
	on_machine chmod 1777 /mnt/usr
	refuses_to_enable "/mnt/usr: others can write there, and every program would load our library from it: install nvtaskset elsewhere"
	on_machine chmod 755 /mnt/usr
	on_machine mv /mnt/usr "/mnt/my usr"
	refuses "/mnt/my usr/lib/nvtaskset: a path that ldconfig does not take: install nvtaskset elsewhere" \
		on_machine "/mnt/my usr/bin/nvtaskset" system enable
}

@test "nothing changes if our library does not work with the driver, others come first, or the dynamic linker does not use it" {
	refuses_to_enable "the driver has no callback table (error 500)" env SIM_FAULTS=no-table
	on_machine sh -c 'echo /mnt/driver >/etc/ld.so.conf.d/00-000-first.conf'
	refuses_to_enable "programs would still find /mnt/driver/libcuda.so.1 first: /etc/ld.so.conf, or a file in /etc/ld.so.conf.d whose name comes before ours, names its directory"
	on_machine sh -c 'echo /mnt/driver >/etc/ld.so.conf'
	refuses_to_enable "/etc/ld.so.conf does not include /etc/ld.so.conf.d/*.conf, where $configuration would stand: include it, as its first line"
}

@test "nothing changes if ldconfig fails" {
	on_machine mount --bind /bin/false /sbin/ldconfig
	refuses_to_enable "/sbin/ldconfig, which makes the dynamic linker's cache, failed: run it to see why"
	on_machine umount /sbin/ldconfig
	on_machine "$installed" system enable
	before=$(state)
	on_machine mount --bind /bin/false /sbin/ldconfig
	refuses "/sbin/ldconfig, which makes the dynamic linker's cache, failed: run it to see why" on_machine "$installed" system disable
	diff <(echo "$before") <(state)
}

@test "an LD_LIBRARY_PATH that leads around it is named" {
	on_machine sh -c 'echo LD_LIBRARY_PATH=\"/nonexistent:/mnt/driver\" >/etc/environment'
	run -0 on_machine "$installed" system enable
	[[ "$output" == *"nvtaskset: programs with the LD_LIBRARY_PATH in /etc/environment still find /mnt/driver/libcuda.so.1 and not our library: start them with nvtaskset, or use --attach"* ]]
	on_machine "$installed" system disable
	on_machine rm /etc/ld.so.conf.d/driver.conf
	on_machine ldconfig -X
	refuses_to_enable "programs find the driver, /mnt/driver/libcuda.so.1, by LD_LIBRARY_PATH (in /etc/environment), before they look into the dynamic linker's cache: start them with nvtaskset, or use --attach"
	on_machine rm /etc/environment
	refuses_to_enable "no NVIDIA driver library (libcuda.so.1) in /etc/ld.so.cache, where programs look for it: install the driver, or run ldconfig"
}

@test "an upgrade of the driver, and one of nvtaskset" {
	on_machine "$installed" system enable
	on_machine cp /mnt/driver/libcuda.so.1.1 /mnt/driver/libcuda.so.1.2
	on_machine ln -sf libcuda.so.1.2 /mnt/driver/libcuda.so.1
	on_machine rm /mnt/driver/libcuda.so.1.1
	on_machine make -s -C "$ROOT" BUILD="$BUILD" install PREFIX=/mnt/usr
	on_machine ldconfig
	start_innocent
	grep -q /mnt/driver/libcuda.so.1.2 "/proc/$PROGRAM/maps"
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-65" ]
}

@test "nvtaskset in front of a command works as before; a program without a partition gets no message, whatever goes wrong" {
	on_machine "$installed" system enable
	[ "$(on_machine "$installed" --mps off -t 3-5 "$BUILD/tests/programs/play" where)" = 3-5 ]
	[ "$(on_machine "$installed" --mps off --strict -t 3-5 "$BUILD/tests/programs/play" where)" = 3-5 ]
	for fault in no-table slot-taken; do
		run on_machine env SIM_FAULTS=$fault "$BUILD/tests/programs/play" where
		[ "$output" = 0-65 ]
	done
}

# Everything is enabled, and root's program may be run by others with root's privileges.
make_privileged() {
	! is_sanitized || skip "sanitizers do not run with other privileges"
	on_machine "$installed" system enable
	on_machine cp "$BUILD/tests/programs/play" /mnt/privileged
	on_machine chmod 4755 /mnt/privileged
}

@test "a privileged program loads the library, which believes no variable" {
	make_privileged
	start_waiting nsenter -m -t "$MACHINE" -- "${ANOTHER_USER[@]}" env NVTASKSET_PARTITION=nonsense \
		NVTASKSET_STRICT=1 /mnt/privileged open libcuda.so.1 wait
	[ "$(cat "$WORK/output" "$WORK/errors")" = waiting ]
	grep -q /memfd:nvtaskset "/proc/$PROGRAM/maps"
}

# Its user could say in a file, or by a descriptor, where root's program runs.
@test "a privileged program is in no group: neither its user's file nor the descriptor that it inherits counts" {
	make_privileged
	mkdir "$WORK/another"
	chown 65534 "$WORK/another"
	as_user=(nsenter -m -t "$MACHINE" -- "${ANOTHER_USER[@]}")
	on_machine install -d -o 65534 /mnt/groups
	NVTASKSET_GROUP_FILE=/mnt/groups/job "${as_user[@]}" "$installed" --mps off -t 0-7 true 3>&-
	# Without privileges, both count.
	on_machine cp "$BUILD/tests/programs/play" /mnt/plain
	for program in plain:0-7 privileged:0-65; do
		NVTASKSET_GROUP_FILE=/mnt/groups/job start_waiting "${as_user[@]}" "/mnt/${program%:*}" open libcuda.so.1 context wait
		is_given "${program#*:}"
		start_waiting "${as_user[@]}" "$installed" --mps off --group "g$$" -t 0-7 "/mnt/${program%:*}" context wait
		is_given "${program#*:}"
	done
}

is_given() { # TPCs
	run on_machine "$installed" -l --json
	jq -c ".processes[] | select(.pid == $PROGRAM)" <<<"$output"
	[ "$(jq "[.processes[] | select(.pid == $PROGRAM) | .group] | length" <<<"$output")" -eq 1 ]
	[ "$(jq ".processes[] | select(.pid == $PROGRAM) | .group == null" <<<"$output")" = "$([ "$1" = 0-7 ] && echo false || echo true)" ]
	run on_machine "$installed" -tp "$PROGRAM"
	[[ "$output" == *": $1" ]]
	stop_program
}

@test "children with fewer privileges do not get a privileged program's own partition" {
	make_privileged
	printf '#!/bin/sh\nexec setpriv --reuid 65534 %q where\n' "$BUILD/tests/programs/play" | on_machine tee /mnt/child
	on_machine chmod 755 /mnt/child
	mkdir "$WORK/another"
	chown 65534 "$WORK/another"
	run -0 nsenter -m -t "$MACHINE" -- "${ANOTHER_USER[@]}" NVTASKSET_TOPOLOGY="$NVTASKSET_TOPOLOGY" "$installed" --mps off -t 0-7 \
		/mnt/privileged open libcuda.so.1 spawn /mnt/child 3>&-
	[ "${lines[-1]}" = 0-7 ]
}

as_before() {
	on_machine "$installed" system disable
	[ "$(on_machine "$BUILD/tests/programs/play" where)" = 0-65 ]
	on_machine ldconfig -X
	diff <(echo "$1") <(state)
}

@test "a system disable that was killed before it made the cache anew is finished by the next one" {
	before=$(state)
	on_machine "$installed" system enable
	on_machine mv "$configuration" /etc/ld.so.conf.d/.nvtaskset
	as_before "$before"
}

# Runs the command and kills it, alone or with the ldconfig that it has started.
killed() {
	on_machine timeout "$1" -s KILL "$2" "$installed" "$3" >/dev/null 2>&1 || true
	[ "$(on_machine "$BUILD/tests/programs/play" where)" = 0-65 ]
}

@test "killed at any moment: programs find a driver, and it can be undone" {
	before=$(state)
	for after in 0.002 0.01 0.015 0.02 0.025 0.03 0.035 0.04 0.05 0.06 0.08 0.1 0.15; do
		for way in --foreground --kill-after=1; do
			killed $way $after system enable
			as_before "$before"
			on_machine "$installed" system enable
			on_machine test -e "$configuration"
			killed $way $after system disable
			as_before "$before"
		done
	done
}

@test "make uninstall disables first" {
	on_machine "$installed" system enable
	on_machine test -e "$configuration"
	on_machine make -s -C "$ROOT" BUILD="$BUILD" uninstall PREFIX=/mnt/usr
	[ -z "$(on_machine find /mnt/usr /etc/ld.so.conf.d -name '*nvtaskset*')" ]
	[[ "$(on_machine ldconfig -p)" != *"/mnt/usr"* ]]
}
