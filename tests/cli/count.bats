#!/usr/bin/env bats
# nvtaskset -n: a number of free TPCs

load helpers

OWN_GPUS=yes

chosen() {
	sed -n 's/^nvtaskset: GPU .*TPCs: //p' "$WORK/errors"
}

@test "a number of TPCs: packed takes whole GPCs first, and the choice is printed" {
	start nvtaskset --mps off --strategy packed -n 8 "$BUILD/demo/where" 60
	wait_for_line "kernels run"
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: $(chosen)" ]
	for gpc in 0 1 2 3 4 5 6 7; do
		[ "$(nvtaskset --dry-run -g $gpc)" != "$(chosen)" ] || break
	done
	[ "$(nvtaskset --dry-run -g $gpc)" = "$(chosen)" ]
}

@test "a share of the GPU; the strategies; nothing is started by --dry-run" {
	[ "$(nvtaskset --dry-run -n 100%)" = 0-65 ]
	[ "$(nvtaskset --dry-run -n 50% | tr , '\n' | wc -l)" -gt 1 ]
	[ "$(nvtaskset --dry-run -n 25%)" = "$(nvtaskset --dry-run -n 16)" ]
	[ "$(nvtaskset --dry-run -n 75%)" = "$(nvtaskset --dry-run -n 49)" ]
	[ "$(nvtaskset --dry-run -n 8)" = 0-1,8-9,16-17,24-25 ]
	[ "$(nvtaskset --dry-run --strategy distributed -n 8)" = 0-1,8-9,16-17,24-25 ]
	[ "$(nvtaskset --dry-run --strategy packed -n 8)" = 0,8,16,24,62-65 ]
	[ "$(nvtaskset --dry-run --strategy packed -n 66 touch "$WORK/ran")" = 0-65 ]
	[ ! -e "$WORK/ran" ]
}

@test "the printed choice can be pasted as options" {
	run -0 --separate-stderr nvtaskset --dry-run -n 20
	[ -n "$output" ]
	[ "$(nvtaskset --dry-run -t "$output")" = "$output" ]
	own_gpus h200-x2
	run --separate-stderr nvtaskset --dry-run -G all -n 20
	[ -n "$output" ]
	[ "$(nvtaskset --dry-run -t $output)" = "$output" ]
}

@test "the second program gets TPCs that the first left" {
	start_program -n 60
	first=$PROGRAM
	free=$(nvtaskset --dry-run -n 6)
	refuses "7 TPCs: of this GPU's 66 only 6 are free: $free" nv -n 7 true
	start_program -n 6
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: $free" ]
	refuses "1 TPC: none of this GPU's 66 is free; see nvtaskset -l" nv -n 1 true
}

# Its environment alone says so, and takes a while to read.
@test "a program that calls exec all the time keeps its TPCs" {
	again='exec sh -c "$0" "$0"'
	LONG=$(printf '%0100000d' 0) start nvtaskset --mps off -n 3 "${WITHOUT_SEGMENT[@]}" sh -c "$again" "$again"
	wait_until grep -qz NVTASKSET_PARTITION= "/proc/$PROGRAM/environ"
	for _ in $(seq 100); do
		if nvtaskset --dry-run -n 64 2>"$WORK/errors"; then
			return 1
		fi
	done
	grep -q "64 TPCs: of this GPU's 66 only 63 are free" "$WORK/errors"
}

# 22 programs with 3 TPCs each, started at the same moment, every second one by `COMMAND…`: together they have all 66. All are kept until
# each has its TPCs, however long that takes, or has ended: one that could not choose says why.
start_many() { # COMMAND…
	local command choosers=()
	for i in $(seq 22); do
		command=()
		[ $((i % 2)) -eq 0 ] || command=("$@")
		"${command[@]}" nvtaskset --mps off -n 3 sh -c 'echo "$NVTASKSET_PARTITION"; exec sleep 10000' >"$WORK/$i" 2>"$WORK/error.$i" 3>&- &
		choosers[i]=$!
	done
	for i in "${!choosers[@]}"; do
		while [ ! -s "$WORK/$i" ] && kill -0 "${choosers[i]}" 2>/dev/null; do
			sleep 0.05
		done
	done
	# shellcheck disable=SC2046
	kill $(jobs -p)
	cat "$WORK"/error.* >&2
}

no_tpc_twice() {
	[ "$(cat "$WORK"/[0-9]* | wc -l)" -eq 22 ]
	run bash -c "cat $WORK/[0-9]* | sed 's/.*=//' | tr , '\n' | awk -F- '{ for (i = \$1; i <= (NF > 1 ? \$2 : \$1); i++) print i }' | sort -n | uniq -d"
	[ -z "$output" ]
}

@test "many at the same moment never get the same TPC, and all of them get some" {
	start_many
	no_tpc_twice
}

@test "nor in different network namespaces, where names of sockets are different ones" {
	needs_namespaces -n
	start_many unshare -n
	no_tpc_twice
}

# The command starts MPS after it has chosen, so the fake control program looks at it then.
@test "the next command of the same user can see who has chosen, also root's in a container" {
	needs_root
	cat >"$WORK/nvidia-cuda-mps-control" <<-END
		#!/bin/sh
		[ "\$1" != -d ] || ls -l "/proc/\$(cat "$WORK/chooser")/fd" >"$WORK/seen"
		exec "$ROOT/tests/fake-mps/nvidia-cuda-mps-control" "\$@"
	END
	chmod +x "$WORK/nvidia-cuda-mps-control"
	PATH=$WORK:$PATH "${LIMITED_ROOT[@]}" sh -c 'echo $$ >"$0"; exec nvtaskset -n 3 true' "$WORK/chooser" 3>&-
	grep nvtaskset-turn "$WORK/seen"
}

# Takes a place in the queue and keeps it: a file in memory, as the command has one.
hold_ticket() {
	exec python3 -c '
import ctypes, os, time
file = os.memfd_create("nvtaskset-turn")
os.write(file, (0).to_bytes(8, "little") + (7).to_bytes(8, "little"))
print(flush=True)
time.sleep(60)'
}

has_ticket() { # PID
	[ -n "$(find "/proc/$1/fd" -lname '/memfd:nvtaskset-turn*')" ]
}

@test "-p of a command that waits for its turn" {
	start_as holder hold_ticket
	start nvtaskset --mps off -n 3 sleep 600
	wait_until has_ticket "$PROGRAM"
	kill -STOP "$PROGRAM"
	refuses "pid $PROGRAM: nvtaskset is still starting its program there: try again" nvtaskset -tp "$PROGRAM"
	kill -KILL "$PROGRAM"
}

run_kernels() { # how many programs
	[ "$(grep -c "my kernels" "$WORK/output")" -eq "$1" ]
}

@test "with -a: also what is started while the command waits for its turn" {
	mkfifo "$WORK/go"
	start nvtaskset --mps off -t 0-7 bash -c 'where 600 & read -r <"$0"; where 600 & wait' "$WORK/go"
	wait_until run_kernels 1
	start_as holder hold_ticket
	nvtaskset -anp 4 "$PROGRAM" >"$WORK/changed" 2>&1 3>&- &
	changer=$!
	wait_until has_ticket "$changer"
	echo >"$WORK/go"
	wait_until run_kernels 2
	kill "$holder"
	wait "$changer"
	mapfile -t -O "${#ALL[@]}" ALL < <(pgrep -P "$PROGRAM")
	[ "$(grep -c "new TPC list: $(list_of "$PROGRAM")$" "$WORK/changed")" -eq 3 ]
}

@test "another user's process cannot keep anybody from choosing; one of the same user's only for a while" {
	needs_another_user
	start_as holder "${ANOTHER_USER[@]}" bash -c "$(declare -f hold_ticket); hold_ticket"
	nv -n 3 true
	# Nor where a process of this user, here bats, has got the other's ticket, as one that sudo starts may.
	exec 9<"$(find "/proc/$holder/fd" -lname '/memfd:nvtaskset-turn*')"
	nv -n 3 true
	exec 9<&-
	kill "$holder"
	start_as holder hold_ticket
	refuses "-n: another nvtaskset has been choosing TPCs for 10 s; name them instead (-t)" nv -n 3 true
	kill "$holder"
	nv -n 3 true 2>/dev/null
}

@test "-n: a line where programs of other users cannot be looked at" {
	needs_another_user
	start_program -t 0-32
	run -0 --separate-stderr "${ANOTHER_USER[@]}" nvtaskset --dry-run -n 33
	# shellcheck disable=SC2154 # set by run
	[ "$stderr" = "nvtaskset: -n: programs that you may not look at, those of other users, may have the same TPCs" ]
	run -0 --separate-stderr "${ANOTHER_USER[@]}" nvtaskset --dry-run -t 0-32
	[ -z "$stderr" ]
	! needs_to_look_into_others || run -0 --separate-stderr nvtaskset --dry-run -n 33
	[ -z "$stderr" ]
}

@test "a process that shares an ancestor's partition keeps its TPCs, also after the ancestor has ended" {
	nvtaskset --mps off -n 60 sh -c 'sleep 60 & echo $! >"$0"; exec sleep 0' "$WORK/child" 3>&- 2>/dev/null
	refuses "7 TPCs: of this GPU's 66 only 6 are free: $(nvtaskset --dry-run -n 6)" nv -n 7 true
	kill "$(cat "$WORK/child")"
	wait_until nvtaskset --dry-run -n 66 2>/dev/null
}

@test "a process that chooses anew gives up its former TPCs" {
	run -0 nvtaskset --mps off -t 0-7 nvtaskset --mps off -n 66 sh -c 'echo "$NVTASKSET_PARTITION"'
	[ "${lines[-1]}" = "$GPU=0-65" ]
	# Who has the whole GPU claims no TPC.
	start_program all
	[ "$(nvtaskset --dry-run -n 66)" = 0-65 ]
}

@test "a program that was moved away frees the TPCs that it was started with" {
	start_program -t 0-59
	nvtaskset -tp 60-65 "$PROGRAM"
	[ "$(nvtaskset --dry-run --strategy distributed -n 60)" = 0-59 ]
}

@test "-p: a program keeps TPCs of its own when it gets more, or fewer" {
	start_program -t 10-19
	first=$PROGRAM
	start_program -t 0-9
	nvtaskset -np 56 "$PROGRAM"
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-9,20-65" ]
	refuses "57 TPCs: of this GPU's 66 only 56 are free: 0-9,20-65" nvtaskset -np 57 "$PROGRAM"
	[ "$(nvtaskset --dry-run --strategy distributed -np 1 "$PROGRAM")" = 0 ]
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-9,20-65" ]
}

@test "another number on each GPU" {
	own_gpus h200-x2
	run --separate-stderr nvtaskset --dry-run --strategy distributed -n -G 0:4 -G 1:13%
	[[ "$output" =~ ^-G\ [0-9a-f:.]+:0,8,16,24\ -G\ [0-9a-f:.]+:0-1,8-9,16-17,24-25$ ]]
}

@test "impossible numbers" {
	refuses "0 TPCs: a program without TPCs would never run" nv -n 0 true
	refuses "--strategy even: must be one of: distributed packed" nv --strategy even -n 3 true
	refuses "--strategy: only with -n, where nvtaskset chooses the TPCs" nv --strategy packed -t 3 true
	refuses "-n: only with a COMMAND, -p SET and 'cdi add'" nvtaskset -np $$
}
