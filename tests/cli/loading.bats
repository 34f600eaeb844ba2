#!/usr/bin/env bats
# The ways in which programs load the driver, and whether their partition is in force.
# processes: no
# takes: long

load helpers
load playing

play() { # options of nvtaskset, --, and the steps
	local options steps
	take_steps "$@"
	run nv "${options[@]}" -t 3-5 "$BUILD/tests/programs/play" "${steps[@]}"
}

# A directory in which programs find the driver as they would without nvtaskset.
make_driver_directory() {
	mkdir "$WORK/driver"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/driver/"
	ln -s libcuda.so.1 "$WORK/driver/libcuda.so"
}

is_inside() {
	[ "$status" -eq 0 ]
	[ "$output" = 3-5 ]
}

# --- ways to the driver ---------------------------------------------------------------------------------

@test "opened by name: first by the one without a version, as Rust's libloading, Java's JNA, numba; with global symbols, as Go" {
	play -- global libcuda.so.1 where
	is_inside
	make_driver_directory
	LD_LIBRARY_PATH=$WORK/driver play -- open libcuda.so where
	is_inside
}

@test "needed by the program itself, or by a library: JNI" {
	run nv -t 3-5 "$BUILD/tests/programs/play-needed" where
	is_inside
}

@test "opened by our library's path, as Java does after it has looked through its own search path" {
	run nv -v -t 3-5 true
	play -- open "$(sed -n 's/.*through //p' <<<"$output")/libcuda.so.1" where
	is_inside
}

@test "a partition changes for the driver in every namespace" {
	! is_sanitized || skip "sanitizers are for one namespace"
	start_playing -t 3-5 -- namespace libcuda.so.1 where wait where
	[ "$(nvtaskset -tp 8-9 "$PROGRAM" | tail -n 1)" = "pid $PROGRAM's new TPC list: 8-9" ]
	go_on
	wait_for_line '^8-9$'
	[ ! -s "$WORK/errors" ]
}

@test "opened, closed and opened again" {
	play -- open libcuda.so.1 close close open libcuda.so.1 where close close where
	[ "$status" -eq 0 ]
	[ "${lines[*]}" = "3-5 3-5" ]
}

# --- ways around our library: reported, and closed by --strict --------------------------------------------

not_in_force="its partition is not in force: the driver was loaded without our library, is being loaded just now, or our library said on standard error why not"
closed="has closed the file of its partition, which is out of reach until the program makes its next CUDA context"

# The program has a partition that is not in force, and -p says so.
shows_in_vain() { # the TPCs that it has
	local status=0
	nvtaskset -tp "$PROGRAM" >"$WORK/stdout" 2>"$WORK/stderr" || status=$?
	[ "$status" -eq 1 ]
	[ "$(cat "$WORK/stdout")" = "pid $PROGRAM's current TPC list: $1" ]
	[ "$(cat "$WORK/stderr")" = "nvtaskset: pid $PROGRAM: $not_in_force" ]
}

# With --strict, it stays inside.
escapes_but_for_strict() { # the program and its arguments
	start_waiting nvtaskset --mps off -t 3-5 "$@" where wait
	[ "$(head -n 1 "$WORK/output")" = 0-65 ]
	shows_in_vain 3-5
	nvtaskset -l | grep -A 1 "^ *$PROGRAM " | grep -qx "        $not_in_force"
	[ "$(listed not_in_force)" = "$not_in_force" ]
	stop_program
	run nv --strict -t 3-5 "$@" where
	is_inside
}

@test "a library that could not set itself up" {
	SIM_FAULTS=no-table start_playing -t 3-5 -- where wait
	shows_in_vain 3-5
}

@test "a library that waits until a profiler unsubscribes" {
	SIM_FAULTS=slot-taken start_playing -t 3-5 -- where wait
	[ "$(head -n 1 "$WORK/output")" = 0-65 ]
	[ "$(wc -l <"$WORK/errors")" -eq 1 ]
	run -3 --separate-stderr nvtaskset -tp 8-9 "$PROGRAM"
	[ "${lines[-1]}" = "pid $PROGRAM's new TPC list: 8-9" ]
	slot_taken="its partition is not in force until another tool (a profiler or debugger) gives up the driver's callback slot"
	[ "$stderr" = "nvtaskset: pid $PROGRAM: $slot_taken" ]
	# The document is printed all the same.
	run -1 --separate-stderr nvtaskset -p --json "$PROGRAM"
	[ "$stderr" = "nvtaskset: pid $PROGRAM: $slot_taken" ]
	[ "$(jq -r '.processes[0].partitions[0].tpc_list' <<<"$output")" = 8-9 ]
	nvtaskset -l | grep -A 1 "^ *$PROGRAM .* 8-9 " | grep -qx "        $slot_taken"
	[ "$(listed not_in_force)" = "$slot_taken" ]
}

@test "a run path (DT_RPATH) to the driver; its path; a wrapper that puts its directory first" {
	escapes_but_for_strict "$BUILD/tests/programs/play-rpath"
	escapes_but_for_strict "$BUILD/tests/programs/play" open "$BUILD/sim/libcuda.so.1"
	make_driver_directory
	make_script "$WORK/wrapper" '#!/bin/sh' 'LD_LIBRARY_PATH=$DRIVER:$LD_LIBRARY_PATH exec "$@"'
	export DRIVER=$WORK/driver
	escapes_but_for_strict "$WORK/wrapper" "$BUILD/tests/programs/play"
}

@test "the driver by LD_PRELOAD" {
	! is_sanitized asan || skip "AddressSanitizer wants to be the first"
	escapes_but_for_strict env LD_PRELOAD="$BUILD/sim/libcuda.so.1" "$BUILD/tests/programs/play"
}

@test "a program's own LD_PRELOAD and LD_AUDIT stay" {
	LD_AUDIT=/nonexistent.so LD_PRELOAD=/nonexistent2.so run nv --strict -t 3-5 sh -c 'echo $LD_AUDIT $LD_PRELOAD'
	[[ "$output" == *"/lib/libnvtaskset-audit.so:/nonexistent.so /nonexistent2.so" ]]
}

@test "nvtaskset under nvtaskset: the inner partition is in force, and the outer one's settings are not" {
	NVTASKSET_LIBRARY=theirs run nv --strict --hide --on-misfit fail -t 3-5 nvtaskset --mps off -t 7 sh -c \
		'env | grep -E "^(LD_AUDIT|NVTASKSET_(STRICT|SHIM|HIDE|ON_MISFIT|LIBRARY))="; where 1'
	[ "${lines[0]}" = NVTASKSET_LIBRARY=theirs ]
	[[ "${lines[1]}" == *"on TPCs 7 ("* ]]
	[ "${#lines[@]}" -eq 2 ]
}

@test "the Python module under --strict" {
	! is_sanitized || skip "a sanitizer's run-time library must come with python"
	PYTHONPATH=$ROOT/tools/python PYTHONDONTWRITEBYTECODE=1 NVTASKSET_LIBRARY=$(realpath "$BUILD/api/libnvtaskset.so.0") \
		run nv --strict -t 3-5 python3 -c 'import nvtaskset; print(len(nvtaskset.gpus()))'
	[ "$output" = 1 ]
}

# --- where the driver is -----------------------------------------------------------------------------------

# The command finds the driver that the dynamic linker finds for the same program, and the program runs inside.
finds_as_linker() { # LD_LIBRARY_PATH [PROGRAM]
	local program=${2:-$BUILD/tests/programs/play-needed} found
	found=$(LD_LIBRARY_PATH=$1 LD_TRACE_LOADED_OBJECTS=1 "$program" | sed -n 's/^\t\(libcuda.so.1\) (0x.*/\1/p; s/.*libcuda.so.1 => \(.*\) (0x.*/\1/p')
	LD_LIBRARY_PATH=$1 NVTASKSET_DRIVER='' run --separate-stderr nv -v -t 3-5 "$program" where
	is_inside
	# shellcheck disable=SC2154 # set by run
	[ "$(realpath "$found")" = "$(realpath "$(sed -n 's/.*: driver: \(.*\), through .*/\1/p' <<<"$stderr")")" ]
}

# Copies the driver with one byte changed.
make_wrong() { # NAME OFFSET BYTE
	mkdir "$WORK/$1"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/$1/"
	printf %b "$3" | dd of="$WORK/$1/libcuda.so.1" bs=1 seek="$2" conv=notrunc status=none
}

@test "a driver of another class or machine is passed over, as by the dynamic linker; so is a file that is no library" {
	make_driver_directory
	make_wrong class32 4 '\x01'
	make_wrong s390 18 '\x16\x00'
	finds_as_linker "$WORK/class32:$WORK/s390:$WORK/driver"
	LD_LIBRARY_PATH=$WORK/class32:$WORK/driver NVTASKSET_DRIVER='' play --strict -- where
	is_inside
	mkdir -p "$WORK"/{text,empty,pipe,directory/libcuda.so.1}
	echo 'INPUT(libcuda.so.1)' >"$WORK/text/libcuda.so.1"
	: >"$WORK/empty/libcuda.so.1"
	mkfifo "$WORK/pipe/libcuda.so.1"
	LD_LIBRARY_PATH=$WORK/text:$WORK/empty:$WORK/pipe:$WORK/directory:$WORK/driver NVTASKSET_DRIVER='' play -- where
	is_inside
	NVTASKSET_DRIVER=$WORK/class32/libcuda.so.1 \
		refuses "NVTASKSET_DRIVER=$WORK/class32/libcuda.so.1: not a driver library" nvtaskset --mps off -t 3-5 true
}

@test "a driver that another user may not read is passed over" {
	needs_another_user
	make_driver_directory
	make_wrong secret 16 '\x03'
	chmod 600 "$WORK/secret/libcuda.so.1"
	LD_LIBRARY_PATH=$WORK/secret:$WORK/driver NVTASKSET_DRIVER='' \
		run "${ANOTHER_USER[@]}" nvtaskset --mps off -t 3-5 "$BUILD/tests/programs/play" where
	is_inside
}

@test "the driver by an empty element of LD_LIBRARY_PATH, by \$LIB, \$PLATFORM and \$ORIGIN, and in glibc-hwcaps" {
	local lib platform level
	make_driver_directory
	cd "$WORK/driver"
	finds_as_linker "/nowhere:"
	finds_as_linker ":/nowhere"
	cd /
	for lib in lib lib64 "lib/$(uname -m)-linux-gnu"; do
		mkdir -p "$WORK/tree/$lib/plugins"
		cp "$BUILD/sim/libcuda.so.1" "$WORK/tree/$lib/"
		cp "$BUILD/sim/libcuda.so.1" "$WORK/tree/$lib/plugins/"
	done
	for platform in "$(uname -m)" haswell; do
		mkdir -p "$WORK/tree/plugins/$platform"
		cp "$BUILD/sim/libcuda.so.1" "$WORK/tree/plugins/$platform/"
		LD_LIBRARY_PATH="$WORK/tree/plugins/\$PLATFORM" "$BUILD/tests/programs/play-needed" where || {
			rm -r "$WORK/tree/plugins/$platform"
			continue
		}
		finds_as_linker "$WORK/tree/plugins/\$PLATFORM"
	done
	cp "$BUILD/tests/programs/play-needed" "$WORK/tree/play"
	finds_as_linker "$WORK/tree/\$LIB"
	finds_as_linker "/nowhere:$WORK/tree/\${LIB}/plugins"
	finds_as_linker "\$ORIGIN/lib" "$WORK/tree/play"
	finds_as_linker "\${ORIGIN}/\${LIB}/plugins" "$WORK/tree/play"
	for level in 2 3 4; do
		mkdir -p "$WORK/driver/glibc-hwcaps/x86-64-v$level"
		cp "$BUILD/sim/libcuda.so.1" "$WORK/driver/glibc-hwcaps/x86-64-v$level/"
		finds_as_linker "$WORK/driver"
	done
}

# --- the dynamic linker itself ------------------------------------------------------------------------------

@test "ld.so PROGRAM runs inside, as COMMAND, as the interpreter of a script, under another name, with --strict too" {
	! is_sanitized || skip "not with a sanitizer: it stands in the loader's way"
	local linker
	linker=$(realpath "$(ldd "$BUILD/tests/programs/play" | grep -o '/[^ ]*/ld-linux[^ ]*')")
	cp "$linker" "$WORK/linker-0123"
	make_driver_directory
	mkdir "$WORK/empty"
	printf '#!%s %s\n' "$linker" "$BUILD/tests/programs/play" >"$WORK/where"
	chmod +x "$WORK/where"
	for strict in '' --strict; do
		for name in "$linker" "$WORK/linker-0123"; do
			# shellcheck disable=SC2086 # none, or one
			run nv -v $strict -t 3-5 "$name" --inhibit-cache "$BUILD/tests/programs/play" where
			[ "$status" -eq 0 ]
			[ "${lines[-1]}" = 3-5 ]
			[[ "$output" != *"statically linked"* ]]
			# shellcheck disable=SC2086 # none, or one
			NVTASKSET_DRIVER='' run nv $strict -t 3-5 "$name" --library-path "$WORK/empty:$WORK/driver" "$BUILD/tests/programs/play" where
			is_inside
			# shellcheck disable=SC2086 # none, or one
			run nv $strict -t 3-5 "$name" --argv0 x --library-path '' "$BUILD/tests/programs/play" where
			is_inside
		done
		# The kernel puts the script's name behind, which is no step of the program's.
		# shellcheck disable=SC2086 # none, or one
		run nv -v $strict -t 3-5 "$WORK/where" where
		[[ "$output" != *"statically linked"* ]]
		[[ "${lines[-1]}" = *"no such step" ]]
	done
	run nv -t 3-5 "$linker" --library-path
	[[ "$output" != *nvtaskset* ]]
}

# --- work that others do --------------------------------------------------------------------------------------

# A line says that the work is done outside, and what to do; with --strict, COMMAND is not started.
hands_over() { # why, COMMAND…
	local reason=$1
	shift
	run --separate-stderr nv -t 3 "$@"
	[ "$stderr" = "nvtaskset: $reason" ]
	[ "$output" = "ran" ]
	refuses "$reason" nvtaskset --mps off --strict -t 3 "$@"
}

keeps() { # COMMAND…
	run -0 nv -t 3 "$@"
	[ "$output" = "ran" ]
}

@test "programs that shed the environment, or leave their work to a server: a line, and --strict refuses" {
	mkdir "$WORK/bin"
	for name in tmux screen docker podman flatpak systemd-run ssh sudo doas pkexec su runuser setpriv chroot env; do
		make_script "$WORK/bin/$name" '#!/bin/sh' 'echo ran'
	done
	PATH=$WORK/bin:$PATH
	hands_over "sudo: empties the environment, outside of SET: sudo nvtaskset ..." sudo ./infer
	hands_over "$WORK/bin/doas: empties the environment, outside of SET: sudo nvtaskset ..." "$WORK/bin/doas" ./infer
	hands_over "env: empties the environment, outside of SET: env -i ... nvtaskset ..." env -i A=b ./infer
	hands_over "env: empties the environment, outside of SET: env -i ... nvtaskset ..." env - ./infer
	keeps env A=b ./infer -i
	emptied="env: empties the environment, outside of SET: env -i ... nvtaskset ..."
	keeps env -u A ./infer -i
	hands_over "$emptied" env -u LD_LIBRARY_PATH ./infer
	hands_over "$emptied" env LD_LIBRARY_PATH=/x ./infer
	hands_over "$emptied" timeout 3 env -i ./infer
	hands_over "sudo: empties the environment, outside of SET: sudo nvtaskset ..." nice -n 5 env -u A sudo ./infer
	keeps runuser -u ana -- ./infer -l
	hands_over "sudo: empties the environment, outside of SET: sudo nvtaskset ..." env A=b sudo ./infer
	hands_over "su: empties the environment, outside of SET: su - USER -c 'nvtaskset ...'" su - ana -c ./infer
	hands_over "runuser: empties the environment, outside of SET: su - USER -c 'nvtaskset ...'" runuser -l ana -c ./infer
	keeps su ana -c ./infer
	hands_over "setpriv: empties the environment, outside of SET: setpriv ... nvtaskset ..." setpriv --reset-env ./infer
	hands_over "chroot: leads to a directory without our library, outside of SET: chroot DIRECTORY nvtaskset ..." \
		chroot "$WORK" ./infer
	keeps chroot --userspec=ana / ./infer
	hands_over "docker: starts containers, outside of SET: nvtaskset cdi add SET NAME, and --device nvtaskset/group=NAME" \
		docker run image
	hands_over "systemd-run: has systemd start the program, outside of SET: systemd-run nvtaskset ..., or --scope" systemd-run ./infer
	keeps systemd-run --user --scope ./infer
	keeps screen ./infer -X
	STY=1.x hands_over "screen: hands its work to a session that runs already, outside of SET: screen nvtaskset ..." screen ./infer
	STY=1.x keeps screen -d -m ./infer
	hands_over "screen: hands its work to a session that runs already, outside of SET: screen nvtaskset ..." screen -S x -X screen
}

@test "tmux: a line only where its server runs" {
	local reason="tmux: hands its work to a server that runs already, outside of SET: tmux new nvtaskset ..."
	needs tmux
	unset TMUX
	export TMUX_TMPDIR=$WORK
	run -0 nv -t 3-5 tmux -L one -f /dev/null new-session -d "sleep 600"
	[ -z "$output" ]
	run nv --strict -t 8-9 tmux -L one -f /dev/null new-session -d "sleep 600"
	[ "$status" -eq 1 ]
	[ "$output" = "nvtaskset: $reason" ]
	run -0 nv -t 8-9 tmux -Lone -f /dev/null new-session -d "sleep 600"
	[ "$output" = "nvtaskset: $reason" ]
	TMUX=$WORK/tmux-$(id -u)/one,1,0 run nv --strict -t 8-9 tmux new-window "sleep 600"
	[ "$output" = "nvtaskset: $reason" ]
	run -0 nv --strict -t 8-9 tmux -L two -f /dev/null new-session -d "sleep 600 -L one"
	[ -z "$output" ]
	TMUX=$WORK/tmux-$(id -u)/one,1,0 run -0 nv --strict -t 8-9 tmux -L three -f /dev/null new-session -d "sleep 600"
	[ -z "$output" ]
	tmux -L three kill-server || true
	tmux -L one kill-server || true
	tmux -L two kill-server || true
}

# --- forks, exits and closed descriptors -----------------------------------------------------------------

@test "vfork and posix_spawn leave the parent's partition alone" {
	play -- where vfork true where spawn true where
	[ "$status" -eq 0 ]
	[ "${lines[*]}" = "3-5 3-5 3-5" ]
}

@test "exit while another thread launches" {
	for _ in 1 2 3 4 5; do
		play -- where launch
		is_inside
	done
}

@test "a program that closes all descriptors can be found as soon as it has a context" {
	start_playing -t 3-5 -- open libcuda.so.1 closefrom 3 wait where wait where
	refuses "pid $PROGRAM: $closed" nvtaskset -p "$PROGRAM"
	nvtaskset -l | grep -qx "        $closed"
	go_on
	waits 2
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 3-5" ]
	nvtaskset -tp 7-9 "$PROGRAM"
	go_on
	wait_for_line '^7-9$'
	[ ! -s "$WORK/errors" ]
}

@test "a child of a program that closed all descriptors and opened others with the same numbers" {
	play -- open libcuda.so.1 closefrom 3 fork where
	is_inside
}

without_proc() {
	unshare -m sh -c 'mount -t tpmfs none /proc 2>/dev/null || mount -t tmpfs none /proc && exec "$@"' sh "$@"
}

@test "the command without /proc says that it needs it" {
	! is_sanitized || skip "sanitizers lack it too, and say so"
	needs_namespaces -m
	refuses "/proc must be mounted: No such file or directory" without_proc nvtaskset --mps off -t 3 true
	refuses "/proc is not mounted: processes cannot be found" without_proc nvtaskset -p 1
	refuses "/proc is not mounted: processes cannot be found" without_proc nvtaskset -l
	refuses "/proc is not mounted: processes cannot be found" without_proc nvtaskset -l --json
	refuses "/proc is not mounted: processes cannot be found" without_proc nvtaskset -T
}

# --- programs that cannot load our library ---------------------------------------------------------------

# The program runs unrestricted, and a message says so; with --strict it does not run.
is_told() { # the program, why
	local reason="$1: runs with other privileges than yours ($2), and so without our library: start nvtaskset with those privileges"
	run -0 "${ANOTHER_USER[@]}" nvtaskset --mps off -t 3 "$1"
	[ "$output" = "nvtaskset: $reason; it runs unrestricted" ]
	refuses "$reason" "${ANOTHER_USER[@]}" nvtaskset --mps off --strict -t 3 "$1"
}

@test "set-user-ID and set-group-ID are reported, except to a user or group with that id" {
	needs_another_user
	cp "$BUILD/tests/programs/nothing" "$WORK/privileged"
	chmod 4755 "$WORK/privileged"
	is_told "$WORK/privileged" set-user-ID
	PATH=$WORK:$PATH is_told privileged set-user-ID
	nv -t 3 "$WORK/privileged"
	chmod 2755 "$WORK/privileged"
	is_told "$WORK/privileged" set-group-ID
	nv -t 3 "$WORK/privileged"
	# These bits have no effect where no program may get privileges.
	run -0 "${ANOTHER_USER[@]}" setpriv --no-new-privs nvtaskset --mps off -t 3 "$WORK/privileged"
	[ -z "$output" ]
}

@test "file capabilities are reported, except to root" {
	needs_another_user
	cp "$BUILD/tests/programs/nothing" "$WORK/privileged"
	needs setcap
	setcap cap_net_raw+ep "$WORK/privileged" || skip "no file capabilities here"
	is_told "$WORK/privileged" "file capabilities"
	run nv -t 3 "$WORK/privileged"
	[ -z "$output" ]
}

@test "a script runs with the privileges of its interpreter, not its own" {
	needs_another_user
	cp "$BUILD/tests/programs/nothing" "$WORK/interpreter"
	printf '#! %s -x\n' "$WORK/interpreter" >"$WORK/script"
	chmod 4755 "$WORK/script"
	run "${ANOTHER_USER[@]}" nvtaskset --mps off -t 3 "$WORK/script"
	[ -z "$output" ]
	chmod 4755 "$WORK/interpreter"
	is_told "$WORK/script" set-user-ID
}

@test "a statically linked program runs; -v says that it will not be restricted" {
	run -0 nv -t 3 "$BUILD/tests/programs/nothing-static"
	[ -z "$output" ]
	run -0 nv -v -t 3 "$BUILD/tests/programs/nothing-static"
	[[ "$output" == *"nvtaskset: $BUILD/tests/programs/nothing-static: statically linked: it does not load our library; it runs unrestricted"* ]]
}

@test "scripts that are their own interpreter, and garbage, are left to exec" {
	printf '#!%s\n' "$WORK/loop" >"$WORK/loop"
	printf '\x7fELF' >"$WORK/short"
	printf '#!' >"$WORK/empty"
	chmod +x "$WORK/loop" "$WORK/short" "$WORK/empty"
	run -126 nv -t 3 "$WORK/loop"
	# exec refuses these two, and the shell tries to run them as scripts, as it does without nvtaskset.
	run -127 nv -t 3 "$WORK/short"
	run -126 nv -t 3 "$WORK/empty"
	run -127 nv -t 3 ""
}
