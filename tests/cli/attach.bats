#!/usr/bin/env bats
# nvtaskset --attach: a partition for a program that was started without nvtaskset. The program must not notice.
# tests/unit/attach.c tests what can happen inside the program.
# needs: tests/attach/all

load helpers

# A sanitizer inside the program replaces parts of the dynamic linker and the allocator.
attach_setup() {
	needs_attach
	! is_sanitized || skip "not with a sanitizer"
	PATH=$BUILD/tests/attach:$PATH
}

# Starts a program without nvtaskset, and waits for its first line; PROGRAM is its pid. It ends when descriptor 9, a
# fifo, is closed.
start_plain() { # COMMAND…
	attach_setup
	mkfifo "$WORK/input"
	empty_output
	LD_LIBRARY_PATH=$BUILD/sim "$@" <"$WORK/input" >"$WORK/output" 2>"$WORK/errors" 3>&- &
	PROGRAM=$!
	exec 9>"$WORK/input"
	wait_for_line .
}

# The program has lost nothing, and has ended with success.
end_intact() {
	exec 9>&-
	wait "$PROGRAM"
	PROGRAM=
	[ "$(tail -n 1 "$WORK/output")" = intact ]
}

# If this shell has a filter of its own, as in a container, a program's filter would be a second one.
needs_no_filter() {
	grep -q '^Seccomp:.*0$' /proc/self/status || skip "our own system calls are filtered"
}

has_library() {
	grep -q nvtaskset-library "/proc/$1/maps"
}

@test "without --attach: the reason, and what to do; a SET that is wrong changes nothing" {
	start_plain busy launch=1
	refuses "pid $PROGRAM: was started without nvtaskset: --attach gives it a partition all the same" \
		nvtaskset -tp 0-7 "$PROGRAM"
	refuses "pid $PROGRAM: was started without nvtaskset: --attach gives it a partition all the same" \
		nvtaskset --attach --dry-run -tp 0-7 "$PROGRAM"
	refuses "TPC 999: this GPU has TPCs 0-65" nvtaskset --attach -tp 0-999 "$PROGRAM"
	refuses "GPU 7: CUDA sees one GPU here, number 0" nvtaskset --attach -G 7 -tp 0-3 "$PROGRAM"
	not grep -q 'nvtaskset-library\|memfd:nvtaskset' "/proc/$PROGRAM/maps"
	refuses "pid $PROGRAM: was started without nvtaskset: --attach gives it a partition all the same" nvtaskset -p "$PROGRAM"
	end_intact
}

@test "to be attached to is a change, also where the output is lost" {
	start_plain busy launch=1
	runs_on 0-65
	run -3 bash -c "nvtaskset --attach -p $PROGRAM >/dev/full"
	[ "$output" = "nvtaskset: standard output: No space left on device; the change has been made" ]
	[ "$(list_of "$PROGRAM")" = 0-65 ]
	end_intact
}

@test "attach and change, and the next kernel obeys" {
	start_plain busy launch=1
	runs_on 0-65
	run -0 nvtaskset --attach -tp 0-7 "$PROGRAM"
	[ "${lines[0]}" = "pid $PROGRAM's current TPC list: 0-65" ]
	[ "${lines[1]}" = "pid $PROGRAM's new TPC list: 0-7" ]
	runs_on 0-7
	nvtaskset -tp 8-15 "$PROGRAM"
	runs_on 8-15
	run nvtaskset -l
	[[ "$output" == *"$PROGRAM "*"8-15"* ]]
	end_intact
	[ ! -s "$WORK/errors" ]
}

@test "the command passes the topology to the program, which then does not ask the kernel driver" {
	sed 's/^  compute/  uuid GPU-01234567-89ab-cdef-0123-456789abcdef\n&/' "$NVTASKSET_TOPOLOGY" >"$WORK/known.txt"
	SIM_TOPOLOGY=$WORK/known.txt start_plain env -u NVTASKSET_TOPOLOGY busy launch=1
	NVTASKSET_TOPOLOGY=$WORK/known.txt nvtaskset --attach -tp 0-7 "$PROGRAM"
	runs_on 0-7
	end_intact
	[ ! -s "$WORK/errors" ]
}

@test "several at once: one attaches" {
	start_plain busy launch=1
	for i in 1 2 3 4; do
		nvtaskset --attach -tp "$i" "$PROGRAM" >/dev/null 3>&- &
		others[i]=$!
	done
	for i in 1 2 3 4; do
		wait "${others[i]}"
	done
	[ "$(grep -c 'r-xp.*nvtaskset-library' "/proc/$PROGRAM/maps")" -eq 1 ]
	end_intact
}

@test "-v says how long a thread stood still" {
	start_plain busy launch=1 sleep=3
	run nvtaskset --attach -vtp 0 "$PROGRAM"
	[[ "${lines[0]}" =~ ^nvtaskset:\ pid\ $PROGRAM:\ attached:\ thread\ [0-9]+\ stood\ still\ for\ [0-9.]+\ ms ]]
	end_intact
}

@test "loads and changes in turn, as on the hardware" {
	attach_setup
	LD_LIBRARY_PATH=$BUILD/sim TIMES=50 run -0 "$ROOT/tests/attach/soak" busy launch=2 allocate=1 load=1 wait=1 signal=1
	# The last of fifty changes.
	[[ "$output" == *" 20-21 "* ]]
	[ "${lines[-1]}" = intact ]
}

@test "a driver without the callback table: the reason, and nothing of ours stays" {
	SIM_FAULTS=no-table start_plain busy launch=1
	refuses "pid $PROGRAM: the driver has no callback table (error 500)" nvtaskset --attach -tp 0-7 "$PROGRAM"
	not has_library "$PROGRAM"
	run ! bash -c "ls -l /proc/$PROGRAM/fd | grep memfd:nvtaskset"
	end_intact
	[ ! -s "$WORK/errors" ]
}

@test "a partition in the environment that never came into force" {
	NVTASKSET_PARTITION=0000:00:06.0=5-6 start_plain busy launch=1
	runs_on 0-65
	nvtaskset --attach -p "$PROGRAM"
	runs_on 5-6
	end_intact
}

@test "a program and its children" {
	start_plain sh -c 'busy launch=1'
	wait_for_child "$PROGRAM"
	nvtaskset --attach -atp 2 "$PROGRAM"
	runs_on 2
	has_library "$child"
	not has_library "$PROGRAM"
	end_intact
}

@test "a program in other namespaces, with another root" {
	needs_namespaces --mount --pid --fork
	attach_setup
	root=$WORK/root
	mkdir -p "$root/proc" "$root/tmp"
	for file in "$BUILD/tests/attach/busy" "$BUILD/sim/libcuda.so.1" "$NVTASKSET_TOPOLOGY" \
		$(ldd "$BUILD/tests/attach/busy" | grep -o '/[^ ]*'); do
		mkdir -p "$root$(dirname "$(realpath "$file")")" "$root$(dirname "$file")"
		cp "$(realpath "$file")" "$root$file"
	done
	start_plain unshare --mount --pid --fork --kill-child sh -c \
		"mount -t proc none '$root/proc' && exec chroot '$root' $BUILD/tests/attach/busy launch=1 sleep=1"
	inside=$(pgrep -P "$PROGRAM")
	[ "$(readlink "/proc/$inside/root")" != / ]
	nvtaskset --attach -tp 0-7 "$inside"
	runs_on 0-7
	end_intact
}

@test "another user's program" {
	needs_another_user
	start_plain busy launch=1
	refuses "pid $PROGRAM: belongs to another user, or does not let itself be inspected" \
		"${ANOTHER_USER[@]}" "$BUILD/nvtaskset" --attach -tp 3 "$PROGRAM"
	not has_library "$PROGRAM"
	end_intact
}

@test "a user's own program, without being root" {
	needs_another_user # for a user who is not root, the other tests are this test
	scope=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)
	[ "$scope" = 0 ] || skip "this kernel lets only root attach"
	start_plain "${ANOTHER_USER[@]}" busy launch=1
	"${ANOTHER_USER[@]}" "$BUILD/nvtaskset" --attach -tp 0-7 "$PROGRAM"
	runs_on 0-7
	end_intact
}

@test "a program whose filter makes the kernel kill it at an unexpected system call" {
	needs_namespaces --mount # with SYS_ADMIN root can do this, and can also lift a filter
	needs_no_filter
	start_plain busy filter=1 launch=1
	nvtaskset --attach -tp 0-7 "$PROGRAM"
	runs_on 0-7
	end_intact
}

@test "a filter that we may not lift" {
	needs_another_user
	needs_no_filter
	start_plain "${ANOTHER_USER[@]}" busy filter=1 launch=1
	refuses "pid $PROGRAM: its system calls are filtered (seccomp): run 'sudo nvtaskset --attach -p ...'" \
		"${ANOTHER_USER[@]}" "$BUILD/nvtaskset" --attach -tp 3 "$PROGRAM"
	end_intact
}

@test "a program in a container that its user has made" {
	needs_another_user
	attach_setup
	"${ANOTHER_USER[@]}" unshare --user --map-root-user --mount --pid --fork true || skip "namespaces are not permitted"
	start_plain "${ANOTHER_USER[@]}" unshare --user --map-root-user --mount --pid --fork --kill-child busy launch=1
	inside=$(pgrep -P "$PROGRAM")
	"${ANOTHER_USER[@]}" "$BUILD/nvtaskset" --attach -tp 0-7 "$inside"
	runs_on 0-7
	end_intact
}

@test "a program under a debugger" {
	needs gdb
	start_plain busy launch=1
	mkfifo "$WORK/done"
	gdb -p "$PROGRAM" -batch -ex "shell cat '$WORK/done'" >/dev/null 2>&1 3>&- &
	local debugger=$!
	wait_until grep -q '^TracerPid:.*[1-9]' "/proc/$PROGRAM/status"
	run -1 nvtaskset --attach -tp 0 "$PROGRAM"
	[[ "$output" == "nvtaskset: pid $PROGRAM: is being debugged by pid "*": end that first" ]]
	: >"$WORK/done"
	wait $debugger
	nvtaskset --attach -tp 0 "$PROGRAM"
	runs_on 0
	end_intact
}

@test "a program without CUDA" {
	start_plain alone read
	refuses "pid $PROGRAM: has not loaded CUDA" nvtaskset --attach -tp 0 "$PROGRAM"
	printf x >&9
	end_intact
}
