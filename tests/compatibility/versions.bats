#!/usr/bin/env bats
# Programs and commands of this version and of the version before, beside each other: `make check-compatibility`.
# limit: 600

load ../cli/helpers

# What this version says of a program of another, and what the one before may say.
ANOTHERS="its partition is another version's: use the nvtaskset that started it"
gives_reason() {
	[[ "$output" == *"$ANOTHERS"* ]] || { [ "$OTHER" != "$BUILD" ] && [[ "$output" =~ "its segment "|"has closed the file of its partition" ]]; }
}

in_each_direction() { # FUNCTION: STARTER and OTHER are the builds
	local before=$ROOT/$BEFORE_BUILD
	STARTER=$before OTHER=$BUILD "$1"
	stop_program
	STARTER=$BUILD OTHER=$before "$1"
}

start_where() {
	PROGRAM=
	: >"$WORK/output"
	"$STARTER/nvtaskset" --mps off -t 3 "$BUILD/demo/where" 600 >"$WORK/output" 3>&- &
	PROGRAM=$!
	wait_until grep -q 'on TPCs 3 ' "$WORK/output"
}

# Versions whose memory has the same layout may change each other's programs.
other_is_refused() { # COMMAND…
	run "$@"
	[ "$status" -eq 0 ] || { [ "$status" -eq 1 ] && gives_reason; }
}

keeps_its_partition() {
	start_where
	other_is_refused "$OTHER/nvtaskset" -p "$PROGRAM"
	other_is_refused "$OTHER/nvtaskset" -tp 5 "$PROGRAM"
	local is=3
	[ "$status" -ne 0 ] || is=5
	[ "$("$STARTER/nvtaskset" -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: $is" ]
	"$STARTER/nvtaskset" -tp 7 "$PROGRAM"
	wait_until grep -q 'on TPCs 7 ' "$WORK/output"
}

@test "a program keeps its partition, and is changed by the command of its version" {
	in_each_direction keeps_its_partition
}

is_listed() {
	start_where
	run -0 "$OTHER/nvtaskset" -l
	[[ "$output" == *"$PROGRAM "* ]]
	[[ "$output" == *"$PROGRAM root "*" 3 "* ]] || gives_reason
	run -0 "$OTHER/nvtaskset" top --once
	run -0 "$OTHER/nvtaskset" metrics
}

@test "a program is listed, with the reason for which its partition is not known" {
	in_each_direction is_listed
}

# After an upgrade, a shell of the version before starts programs with the library that is there now.
child_runs() {
	rm -rf "$WORK/front" && mkdir "$WORK/front"
	cp "$OTHER/lib/libcuda.so.1" "$WORK/front" && ln -s "$NVTASKSET_DRIVER" "$WORK/front/libnvtaskset-driver.so.1"
	run -0 "$STARTER/nvtaskset" --mps off -t 3 env LD_LIBRARY_PATH="$WORK/front" "$BUILD/demo/where" 1
	[[ "$output" == *"on TPCs "* ]]
	[[ "$output" == *"on TPCs 3 "* ]]
}

@test "a child with the other version's library runs, inside or with the reason" {
	in_each_direction child_runs
}

python_refuses() {
	start_where
	run env NVTASKSET_LIBRARY="$OTHER/api/libnvtaskset.so.0" PYTHONPATH="$ROOT/tools/python" python3 -c '
import nvtaskset, sys
try:
    print(nvtaskset.Partition(int(sys.argv[1])).sets)
except nvtaskset.Error as error:
    print(repr(error.code), error)' "$PROGRAM"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" != *ErrorCode* ]] || { [[ "$output" == *DAMAGED* ]] && gives_reason; }
}

@test "the library gives the reason, with its code" {
	needs python3
	in_each_direction python_refuses
}
