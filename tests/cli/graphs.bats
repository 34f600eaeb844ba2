#!/usr/bin/env bats
# What users are told about nodes of CUDA graphs that cannot follow a change.

bats_require_minimum_version 1.5.0
load helpers

REASON="a node of a CUDA graph keeps the partition that it was uploaded with"

@test "the message comes once" {
	run nv all "$BUILD/tests/gpu/graphs_changed"
	[ "$status" -eq 0 ]
	[ "$(grep -c "^nvtaskset: $REASON\$" <<<"$output")" -eq 1 ]
}

@test "no message if all nodes follow" {
	run nv all "$BUILD/tests/gpu/graphs"
	[ "$status" -eq 0 ]
	[[ $output == *test_* ]]
	[[ $output != *nvtaskset:* ]]
}

@test "--strict ends the program" {
	run nv --strict all "$BUILD/tests/gpu/graphs_changed"
	[ "$status" -eq 1 ]
	[[ ${lines[-1]} == "nvtaskset: $REASON; --strict lets nothing run unrestricted" ]]
}
