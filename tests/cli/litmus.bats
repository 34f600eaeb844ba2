#!/usr/bin/env bats
# The models of orders of memory (tests/litmus), and the lines of the code.
# sanitizers: no
# processes: no

load helpers

prepare() {
	needs perl
	(cd "$ROOT" && cp -r --parents tests/litmus src "$WORK")
}

lines() {
	run "$@" "$WORK/tests/litmus/lines"
}

@test "the lines stand in the code" {
	lines -0
}

@test "a line that changes, moves or goes is named with its model" {
	sed -i 's/\t*atomic_thread_fence(memory_order_seq_cst);//' "$WORK/src/state/segment/edit.c"
	lines -1
	[ "${lines[0]}" = "litmus: moved.litmus: src/state/segment/edit.c has changed: these lines are not there:" ]
	[[ "$output" == *"atomic_thread_fence(memory_order_seq_cst);"* ]]
	rm "$WORK/src/base/ring.h"
	lines -1
	[[ "$output" == *"ring.litmus: src/base/ring.h has changed"* ]]
}

@test "spaces and comments may change; a model names lines for each thread" {
	sed -i 's|= atomic_load_explicit(in_force,|=\n /* now */ atomic_load_explicit( in_force,|' \
		"$WORK/src/state/revisions.c"
	lines -0
	sed -i 's/^(\* P1, /(* P2, /' "$WORK/tests/litmus/ring.litmus"
	lines -1
	[ "$output" = "litmus: ring.litmus: P1: names no lines of the code" ]
}
