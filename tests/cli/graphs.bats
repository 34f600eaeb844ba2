#!/usr/bin/env bats
# What users are told about nodes of CUDA graphs that cannot follow a change.
# needs: tests/gpu/graphs tests/gpu/graphs_changed

load helpers

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
