#!/usr/bin/env bats
# nvtaskset -p: shows a partition, and changes it while the program runs

load helpers
load playing

@test "change, and the next kernel obeys" {
	start_program -t 0-7
	run -0 nvtaskset -tp 8-15 "$PROGRAM"
	[ "${lines[0]}" = "pid $PROGRAM's current TPC list: 0-7" ]
	[ "${lines[1]}" = "pid $PROGRAM's new TPC list: 8-15" ]
	runs_on 8-15
	nvtaskset -gp 2 "$PROGRAM"
	runs_on 1,9,17,25,32,39,46,53
	nvtaskset -p 3 "$PROGRAM"
	runs_on 0-1
	nvtaskset -p all "$PROGRAM"
	runs_on 0-65
}

@test "a program started on one GPU is changed there, whatever this environment sees" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	second=$(sed -n 's/^gpu //p' "$NVTASKSET_TOPOLOGY" | tail -n 1)
	start_program -G 1 -t 0-7
	run -0 nvtaskset -tp 3 "$PROGRAM"
	run nvtaskset -G 1 -tp "$PROGRAM"
	[ "$output" = "pid $PROGRAM's current TPC list: 3" ]
	run nvtaskset -G "$second" -tp "$PROGRAM"
	[ "$output" = "pid $PROGRAM's current TPC list: 3" ]
	run nvtaskset -G 0 -tp "$PROGRAM"
	[ "$output" = "pid $PROGRAM's current TPC list: 0-65" ]
}

@test "a program on two GPUs: the command line must name the GPU to change" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	start_program -t -G 0:0-3 -G 1:4-7
	refuses "the partition spans 2 GPUs: say which one to change (-G)" nvtaskset -tp 9 "$PROGRAM"
	run nvtaskset -tp "$PROGRAM"
	[ "${#lines[@]}" -eq 2 ]
	[[ "${lines[0]}" == "pid $PROGRAM's current TPC list on GPU "*": 0-3" ]]
	nvtaskset -G 0 -tp 9 "$PROGRAM"
	runs_on 9
	# All of them change at once.
	run -0 nvtaskset -tp -G 0:10 -G 1:10 "$PROGRAM"
	run nvtaskset -tp "$PROGRAM"
	[[ "${lines[0]}" == *": 10" && "${lines[1]}" == *": 10" ]]
	refuses "TPC 66: this GPU has TPCs 0-65" nvtaskset -tp -G 0:11 -G 1:66 "$PROGRAM"
	run nvtaskset -tp "$PROGRAM"
	[[ "${lines[0]}" == *": 10" && "${lines[1]}" == *": 10" ]]
}

@test "a thread's id means its process" {
	start_waiting nvtaskset --mps off -t 0-7 "$BUILD/tests/programs/play-needed" launch wait
	[ "$(ls "/proc/$PROGRAM/task" | wc -l)" -gt 1 ]
	for thread in "/proc/$PROGRAM/task/"*; do
		[ "$(nvtaskset -tp "${thread##*/}")" = "pid $PROGRAM's current TPC list: 0-7" ]
	done
}

@test "out of descriptors, the command does not say that a process has no partition" {
	start_program -t 0-7
	for limit in 4 5; do
		run -1 bash -c "exec 3>&-; ulimit -n $limit; nvtaskset -tp $PROGRAM"
		[[ "$output" == "nvtaskset: pid $PROGRAM: "*"Too many open files" ]]
		run -1 bash -c "exec 3>&-; ulimit -n $limit; nvtaskset -l"
		[[ "$output" == "nvtaskset: /proc: Too many open files" ]]
	done
}

@test "a change that cannot be reported is made, and has an exit status of its own" {
	start_program -t 0-7
	run -3 bash -c "nvtaskset -tp 5 $PROGRAM >/dev/full"
	[ "$output" = "nvtaskset: standard output: No space left on device; the change has been made" ]
	runs_on 5
	run -3 bash -c "nvtaskset -tp 6 $PROGRAM >&-"
	[ "$output" = "nvtaskset: standard output: Bad file descriptor; the change has been made" ]
	runs_on 6
	# A command that only shows changes nothing.
	refuses "standard output: No space left on device" bash -c "nvtaskset -tp $PROGRAM >/dev/full"
	run -1 bash -c "nvtaskset --dry-run -tp 7 $PROGRAM >/dev/full"
	runs_on 6
}
