#!/usr/bin/env bats
# nvtaskset -a -p: a process and its descendants

load helpers

# A shell in a partition that starts two programs; PROGRAM is the shell, FIRST and SECOND are its children.
start_tree() {
	start nvtaskset --mps off "$@" bash -c "
		'$BUILD/demo/where' 60 >'$WORK/first' & echo \$! >'$WORK/pid.first'
		'$BUILD/demo/where' 60 >'$WORK/second' & echo \$! >'$WORK/pid.second'
		wait"
	wait_until [ -s "$WORK/first" ]
	wait_until [ -s "$WORK/second" ]
	FIRST=$(cat "$WORK/pid.first")
	SECOND=$(cat "$WORK/pid.second")
	ALL+=("$FIRST" "$SECOND")
}

@test "shown together" {
	start_tree -t 0-7
	run -0 nvtaskset -atp "$PROGRAM"
	[ "${#lines[@]}" -eq 3 ]
	[ "${lines[0]}" = "pid $PROGRAM's current TPC list: 0-7" ]
	[[ "$output" == *"pid $FIRST's current TPC list: 0-7"* ]]
	[[ "$output" == *"pid $SECOND's current TPC list: 0-7"* ]]
}

# Process ids wrap around: then a child has a smaller id than its parent.
@test "a process whose parent comes later in /proc" {
	needs_namespaces --pid --fork --mount-proc
	mkfifo "$WORK/never"
	run -0 timeout 60 unshare --pid --fork --kill-child --mount-proc bash -c '
		echo 400 >/proc/sys/kernel/ns_last_pid
		nvtaskset --mps off -t 0-7 bash -c "
			echo 300 >/proc/sys/kernel/ns_last_pid
			bash -c \"
				echo 200 >/proc/sys/kernel/ns_last_pid
				\\\"$0\\\" 60 >\\\"$1\\\"; true\"; true" &
		# Another process would take one of these numbers.
		until [ -s "$1" ]; do read -r -t 0.05 <>"$2"; done
		nvtaskset -atp 5 $!' "$BUILD/demo/where" "$WORK/output" "$WORK/never" 3>&-
	[ "$(grep -c "new TPC list: 5" <<<"$output")" -eq 2 ]
	[[ "$output" == *"pid 201's new TPC list: 5"* ]]
}

@test "without -a: a line where descendants keep partitions of their own, and status 3; none where they have the wanted one" {
	start_tree -t 0-7
	run -3 --separate-stderr nvtaskset -tp 8-9 "$PROGRAM"
	[ "${lines[-1]}" = "pid $PROGRAM's new TPC list: 8-9" ]
	local first=$((FIRST < SECOND ? FIRST : SECOND))
	[ "$stderr" = "nvtaskset: pid $PROGRAM: descendants with partitions of their own, such as pid $first, keep what they have: -a changes all" ]
	[ "$(nvtaskset -tp "$FIRST")" = "pid $FIRST's current TPC list: 0-7" ]
	run -3 nvtaskset -p --quota 50% "$PROGRAM"
	nvtaskset -tp 0-7 "$PROGRAM"
	nvtaskset -atp 10-11 "$PROGRAM"
	nvtaskset -tp 10-11 "$PROGRAM"
	nvtaskset -tp "$PROGRAM"
}

@test "changed together; another process is not changed" {
	start_program -t 20-21
	stranger=$PROGRAM
	start_tree -t 0-7
	run -0 nvtaskset --all-tasks -tp 8-9 "$PROGRAM"
	[ "$(nvtaskset -tp "$FIRST")" = "pid $FIRST's current TPC list: 8-9" ]
	[ "$(nvtaskset -tp "$SECOND")" = "pid $SECOND's current TPC list: 8-9" ]
	[ "$(nvtaskset -tp "$stranger")" = "pid $stranger's current TPC list: 20-21" ]
}

@test "-n with -a: all processes get the same TPCs" {
	start_tree -t 0-7
	nvtaskset -anp 4 "$PROGRAM"
	list=$(list_of "$FIRST")
	[ "$(nvtaskset -tp "$SECOND")" = "pid $SECOND's current TPC list: $list" ]
}

@test "one that is out of reach: the others are changed, and it is named" {
	start nvtaskset --mps off -t 0-7 bash -c "
		'$BUILD/demo/where' 60 >'$WORK/first' &
		'$BUILD/tests/programs/play' where closefrom 3 wait >'$WORK/second' 3>&- &
		wait"
	wait_until [ -s "$WORK/first" ]
	wait_until grep -q waiting "$WORK/second"
	mapfile -t children < <(pgrep -P "$PROGRAM")
	ALL+=("${children[@]}")
	closed=$(pgrep -P "$PROGRAM" play)
	reason="nvtaskset: pid $closed: has closed the file of its partition, which is out of reach until the program makes its next CUDA context"
	run -1 --separate-stderr nvtaskset -atp "$PROGRAM"
	[ "${#lines[@]}" -eq 2 ]
	[ "$stderr" = "$reason" ]
	run -3 --separate-stderr nvtaskset -atp 8-9 "$PROGRAM"
	[ "$stderr" = "$reason" ]
	[ "$(nvtaskset -tp "$(pgrep -P "$PROGRAM" where)" | sed 's/.*: //')" = 8-9 ]
}

# Each process takes two descriptors.
@test "more processes than this program may have descriptors" {
	start_tree -t 0-7
	for _ in $(seq 6); do
		start_as more nvtaskset --mps off -t 0-7 where 60
	done
	(ulimit -S -n 12 && nvtaskset -atp 5 $$) >"$WORK/changed"
	[ "$(grep -c 'new TPC list: 5' "$WORK/changed")" -ge 8 ]
}

@test "a process without CUDA, and one that does not exist" {
	start sleep 60
	refuses "pid $PROGRAM: has not loaded CUDA" nvtaskset -atp "$PROGRAM"
	refuses "pid 4194304: no such process" nvtaskset -atp 4194304
	start bash -c 'sleep 60; true'
	wait_for_child "$PROGRAM" sleep
	refuses "pid $PROGRAM: neither it nor any of its 1 descendants has a partition" nvtaskset -atp "$PROGRAM"
	ALL+=("$child")
}

# In `reads`: how often a command and its children read a file.
count_reads() { # COMMAND…
	reads=$(bash -c '"$@" >/dev/null; sed -n "s/^syscr: //p" "/proc/$$/io"' bash "$@")
}

is_old() { # PID
	[ "$(ps -o etimes= -p "$1")" -ge 1 ]
}

# Each was looked for among all processes, for a message about one of them.
@test "idle descendants: a change of all reads at most twice what -l reads" {
	[ -r /proc/self/io ] || skip "needs a kernel that counts reads (CONFIG_TASK_IO_ACCOUNTING)"
	start nvtaskset --mps off -t 0-7 bash -c 'for _ in $(seq 200); do sleep 1000 & done; echo "$!"; wait'
	wait_for_line .
	mapfile -t children < <(pgrep -P "$PROGRAM")
	ALL+=("${children[@]}")
	# Before that, they may be about to start a program, and are waited for.
	wait_until is_old "$(cat "$WORK/output")"
	count_reads nvtaskset -l
	list=$reads
	count_reads nvtaskset -atp 5 "$PROGRAM"
	[ "$reads" -le $((2 * list)) ]
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 5" ]
}

# Each of those that are about to start a program would be waited for. The command itself is in the tree, too.
@test "a tree with the command in it, and with programs of the same name" {
	cp "$(command -v sleep)" "$WORK/nvtaskset"
	start "$BUILD/nvtaskset" --mps off -t 0-3 bash -c 'for _ in $(seq 8); do "$0" 1000 & done
		"$1" -tp -a 0-2 $$
		kill $(jobs -p)' "$WORK/nvtaskset" "$BUILD/nvtaskset"
	wait_for_line "new TPC list: 0-2" || {
		pkill -P "$PROGRAM"
		false
	}
	wait "$PROGRAM"
}
