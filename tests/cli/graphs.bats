#!/usr/bin/env bats
# What users are told about nodes of CUDA graphs that cannot follow a change.
# needs: tests/gpu/graphs tests/gpu/graphs_changed tests/programs/play sim/older/libcuda.so.1

load helpers
load playing

REASON="a node of a CUDA graph keeps the partition that it was uploaded with"

@test "the message comes once" {
	run -0 nv all "$BUILD/tests/gpu/graphs_changed"
	[ "$(grep -c "^nvtaskset: $REASON\$" <<<"$output")" -eq 1 ]
}

@test "no message if all nodes follow" {
	run -0 nv all "$BUILD/tests/gpu/graphs"
	[[ $output == *test_* ]]
	[[ $output != *nvtaskset:* ]]
}

@test "--strict ends the program" {
	run -1 nv --strict all "$BUILD/tests/gpu/graphs_changed"
	[[ ${lines[-1]} == "nvtaskset: $REASON; --strict lets nothing run unrestricted" ]]
}

use_older_driver() {
	export NVTASKSET_DRIVER=$BUILD/sim/older/libcuda.so.1
}

@test "a driver that uploads no node again: graphs are counted from the first change on" {
	use_older_driver
	start_playing -t 0-3 -- graph graph wait graph graph wait
	[ "$(listed outside)" = 0 ]
	nvtaskset -tp 4-9 "$PROGRAM"
	go_on
	waits 2
	[ "$(grep -c '^0-3$' "$WORK/output")" -eq 4 ]
	grep -qx "nvtaskset: $REASON" "$WORK/errors"
	[ "$(listed outside)" = 2 ]
	[ "$(listed 'reasons[] | .times')" = 2 ]
}

@test "such a driver with --strict: the program ends at the first launch of a graph after a change" {
	use_older_driver
	start_playing --strict -t 0-3 -- graph wait graph
	nvtaskset -tp 4-9 "$PROGRAM"
	run go_on_to_the_end
	[ "$(grep -c 0-3 <<<"$output")" -eq 1 ]
	grep -qxF "nvtaskset: $REASON; --strict lets nothing run unrestricted" <<<"$output"
}
