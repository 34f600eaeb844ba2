#!/usr/bin/env bats
# nvtaskset -l

load helpers

@test "a program with its partition, its launches and its command" {
	start_program -t 0-7
	run nvtaskset -l
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" == *"PID USER"*"LAUNCHES"*"INSIDE"*"COMMAND" ]]
	[[ "$output" =~ $PROGRAM\ +[^\ ]+\ +[0-9]+\ +[0-9]+\ +$BUILD/demo/where\ 60 ]]
	[[ "$output" == *"GPU 0000:00:06.0: TPCs 0-7"* ]]
}

@test "what was let through is named" {
	SIM_FAULTS=bad-qmd start_program -t 0-7
	run nvtaskset --list
	[[ "$output" =~ [0-9]+\ times:\ the\ launch\ descriptor\ has\ an\ unknown\ version ]]
}

@test "overlaps are pointed out" {
	start_program -t 0-7
	first=$PROGRAM
	start_program -t 4-11
	run nvtaskset -l
	kill "$first"
	[[ "$output" == *"$first and $PROGRAM share TPCs 4-7 of GPU 0000:00:06.0"* ]] ||
		[[ "$output" == *"$PROGRAM and $first share TPCs 4-7 of GPU 0000:00:06.0"* ]]
}

@test "it takes no arguments" {
	refuses "'1': one argument too many; try 'nvtaskset --help'" nvtaskset -l 1
}

@test "a command line that would move the cursor does not" {
	nvtaskset --mps off -t 0-3 "$BUILD/demo/where" $'60\e[2J' >"$WORK/output" 3>&- &
	PROGRAM=$!
	while [ ! -s "$WORK/output" ]; do sleep 0.05; done
	run nvtaskset -l
	[[ "$output" == *"where 60?[2J"* ]]
}
