#!/usr/bin/env bats
# --memory: a limit of GPU memory, with MPS and without: at the start, live, of groups, and as programs see it
# needs: tests/programs/memory tests/gpu/memory bench/calls.so
# takes: long

load helpers
load playing
load containers

play() { # options and SET -- steps
	local options steps
	take_steps "$@"
	nv "${options[@]}" "$BUILD/tests/programs/play" "${steps[@]}"
}

@test "sizes: M, G and T, powers of 1024" {
	[ "$(play --memory 512M all -- room)" = 512/512 ]
	[ "$(play --memory 2G all -- room)" = 2048/2048 ]
	[ "$(play --memory 1T all -- room)" = 16384/16384 ]
	[ "$(play --memory max all -- room)" = 16384/16384 ]
	rule="must be a whole number and M, G or T (powers of 1024), such as 512M or 2G, or 'max'"
	for size in 0G 2 2g 2GB 2GiB 1.5G -1G G '' 1K 9999999999G ' 2G' 0x2G; do
		refuses "--memory $size: $rule" nv --memory "$size" all true
	done
	refuses "--memory: needs a value; try 'nvtaskset --help'" nvtaskset --memory
}

@test "who allocates more gets CUDA_ERROR_OUT_OF_MEMORY and goes on, on each GPU, with MPS and without" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt SIM_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	fake nvidia-cuda-mps-control -d 3>&-
	for mode in on off; do
		run -0 fake nvtaskset --mps $mode --memory 64M -G all all "$BUILD/tests/programs/play" \
			room allocate 40 allocate 30 room free allocate 20
		[ "$output" = "64/64
0 0
2 2
24/64
0 0" ]
	done
	[ "$(play -G all all -- allocate 70)" = "0 0" ]
}

@test "programs whose limit of descriptors was lowered after the start share the limit of memory all the same" {
	run -0 nv --memory 1G -t 0-3 bash -c 'ulimit -n 200
		coproc "$0" allocate 700 wait
		read -r result <&"${COPROC[0]}"
		echo "$result"
		"$0" allocate 700
		kill "$COPROC_PID"' "$BUILD/tests/programs/play"
	[ "$output" = "0
2" ]
}

@test "live: more, less than is in use, and none; -p, -l, top, JSON and metrics have used and limit" {
	start_playing --memory 512M -t 0-7 -- allocate 300 wait allocate 300 wait allocate 300 wait allocate 300
	[ "$(current memory)" = "512M: 300M in use" ]
	run -0 nvtaskset -p --memory 700M "$PROGRAM"
	[ "${lines[1]}" = "pid $PROGRAM's new memory: 700M: 300M in use" ]
	go_on
	waits 2
	[ "$(tail -n 2 "$WORK/output" | head -n 1)" = 0 ]
	run -0 nvtaskset -p --memory 100M "$PROGRAM"
	[ "${lines[1]}" = "pid $PROGRAM's new memory: 100M: 600M in use" ]
	go_on
	waits 3
	[ "$(tail -n 2 "$WORK/output" | head -n 1)" = 2 ]
	[[ "$(nvtaskset -l)" =~ \ 600M/100M\ .*play ]]
	[[ "$(nvtaskset top --once -d 0.1)" =~ \ 600M/100M\ .*play ]]
	[ "$(listed memory_limit_bytes)" = 104857600 ]
	[ "$(listed 'kernels[0] | [.memory_bytes, .memory_limit_bytes]')" = "[629145600,104857600]" ]
	numbers=".gpus[0] | [.memory_bytes, .memory_limit_bytes]"
	[ "$(nvtaskset top --once -d 0.1 --json | jq -c ".processes[] | select(.pid == $PROGRAM) | $numbers")" = \
		"[629145600,104857600]" ]
	nvtaskset metrics | grep -q "^nvtaskset_memory_bytes{.*pid=\"$PROGRAM\".*} 629145600$"
	nvtaskset metrics | grep -q "^nvtaskset_memory_limit_bytes{.*pid=\"$PROGRAM\".*} 104857600$"
	run -0 nvtaskset -p --memory max "$PROGRAM"
	[ "${lines[1]}" = "pid $PROGRAM's new memory: max: 600M in use" ]
	[ "$(listed memory_limit_bytes) $(listed 'kernels[0].memory_limit_bytes')" = "null null" ]
	go_on_to_the_end
	[ "$(tail -n 1 "$WORK/output")" = 0 ]
}

@test "given to a program that had none: what it has counts" {
	start_playing -t 0-7 -- allocate 300 wait allocate 300 wait
	[ -z "$(current memory)" ]
	[[ "$(nvtaskset -l)" =~ \ 300M\ .*play ]]
	nvtaskset -p --memory 512M "$PROGRAM"
	go_on
	waits 2
	[ "$(tail -n 2 "$WORK/output" | head -n 1)" = 2 ]
}

# The command, and the simulator's kernel driver: 444 MiB for each process but the command.
telling() { # WORD...
	SIM_FAULTS=tells-memory LD_PRELOAD=$BUILD/sim/libcuda.so.1 nvtaskset "$@"
}

@test "a program's start asks the kernel driver about memory only with a limit" {
	! is_sanitized || skip "a sanitizer's run-time library must come first"
	calls=(env SIM_FAULTS=tells-memory LD_PRELOAD="$BUILD/bench/calls.so" BENCH_CALLS="$WORK/calls")
	"${calls[@]}" "$BUILD/nvtaskset" --mps off -t 0-7 "$BUILD/tests/programs/play" allocate 10
	not grep '^play,open' "$WORK/calls"
	"${calls[@]}" "$BUILD/nvtaskset" --mps off --memory 1G -t 0-7 "$BUILD/tests/programs/play" allocate 10
	grep -q '^play,open nvidiactl,2,' "$WORK/calls" # before and after the context is made
}

@test "without a limit, -l, top, JSON, metrics and the API ask the kernel driver, which knows the driver's own memory" {
	! is_sanitized || skip "a sanitizer's run-time library must come first"
	start_playing -t 0-7 -- allocate 300 wait
	[[ "$(nvtaskset -l)" =~ \ 300M\ .*play ]]
	[[ "$(telling -l)" =~ \ 444M\ .*play ]]
	[[ "$(telling top --once -d 0.1)" =~ \ 444M\ .*play ]]
	[ "$(telling -l --json | jq ".processes[] | select(.pid == $PROGRAM) | .kernels[].memory_bytes")" = 465567744 ]
	telling metrics | grep -q "^nvtaskset_memory_bytes{.*pid=\"$PROGRAM\".*} 465567744$"
	read='import sys, nvtaskset; print(nvtaskset.Partition(int(sys.argv[1])).memory().used >> 20)'
	[ "$(SIM_FAULTS=tells-memory LD_PRELOAD=$BUILD/sim/libcuda.so.1 NVTASKSET_LIBRARY=$BUILD/api/libnvtaskset.so.0 \
		PYTHONPATH=$ROOT/tools/python python3 -c "$read" "$PROGRAM")" = 444 ]
	run -0 telling -p --memory 512M "$PROGRAM"
	[ "${lines[1]}" = "pid $PROGRAM's new memory: 512M: 444M in use" ]
}

@test "given to a program that had none: from the next allocation on, the driver's own memory counts as well" {
	export SIM_FAULTS=tells-memory # beside the program's own, a context has 64 MiB
	start_playing -t 0-7 -- allocate 300 wait allocate 100 wait allocate 80 wait
	nvtaskset -p --memory 450M "$PROGRAM"
	go_on
	waits 2
	go_on
	waits 3
	[ "$(grep -v waiting "$WORK/output" | xargs)" = "0 2 0" ]
	[ "$(current memory)" = "450M: 444M in use" ]
}

# --- together -----------------------------------------------------------------------------------------------------------

has_come() { # NAME
	grep -qx waiting "$WORK/$1"
}

# A program whose pid is then in the variable NAME, and its output in WORK/NAME.
start_in() { # NAME, options and SET -- steps
	local options steps
	take_steps "${@:2}"
	start_as "$1" nvtaskset --mps off "${options[@]}" "$BUILD/tests/programs/play" "${steps[@]}"
	wait_until has_come "$1"
}

@test "the file of a group is another user's: that user's programs share the limit all the same" {
	needs_another_user
	mkdir -m 755 "$WORK/groups"
	NVTASKSET_GROUP_FILE=$WORK/groups/job nv -t 0-7 true
	nvtaskset -p --group "$WORK/groups/job" --memory 512M
	another=("${ANOTHER_USER[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/job" nvtaskset --mps off all
		"$BUILD/tests/programs/play")
	start_as a "${another[@]}" allocate 300 wait
	wait_until has_come a
	[ "$("${another[@]}" room allocate 300 allocate 200 | xargs)" = "212/512 2 0" ]
	[[ "$(nvtaskset -l)" =~ \ 300M/512M\ .*play ]]
	kill -KILL "$a"
	wait "$a" || true
	[ "$("${another[@]}" room allocate 300 allocate 200 | xargs)" = "512/512 0 0" ]
	# Who may write there has the group's own.
	[ "$(NVTASKSET_GROUP_FILE=$WORK/groups/job nv all "$BUILD/tests/programs/play" allocate 500)" = 0 ]
}

nothing_is_in_use() {
	[[ "$("${apart[@]}" "$BUILD/nvtaskset" -p --group "$WORK/groups/job")" == *"memory: 512M: 0 in use" ]]
}

# A dead program is known by a lock, and neither by /proc nor by open files.
@test "programs that cannot see each other, as in two containers: a dead one's memory is there, a live one's is not" {
	needs_namespaces --pid --mount
	mkdir -m 755 "$WORK/groups"
	export NVTASKSET_GROUP_FILE=$WORK/groups/job
	nv -t 0-7 true
	nvtaskset -p --group "$WORK/groups/job" --memory 512M
	apart=(unshare --pid --fork --mount-proc --kill-child)
	player=("$BUILD/nvtaskset" --mps off all "$BUILD/tests/programs/play")
	start_as a "${apart[@]}" "${player[@]}" allocate 300 closefrom 3 wait
	wait_until has_come a
	[ "$("${player[@]}" allocate 300 allocate 200 | xargs)" = "2 0" ]
	[ "$("${apart[@]}" "${player[@]}" allocate 300 allocate 200 | xargs)" = "2 0" ]
	kill -KILL "$a"
	wait "$a" || true
	wait_until nothing_is_in_use
	[ "$("${apart[@]}" "${player[@]}" room allocate 500 | xargs)" = "512/512 0" ]
	start_in parent all -- allocate 300 fork wait
	find_child "$parent"
	ALL+=("$child")
	kill -KILL "$parent"
	wait "$parent" || true
	wait_until nothing_is_in_use
}

# Lets it do the following steps up to the next "wait", and prints what it says.
next_of() { # NAME
	local before
	before=$(grep -c waiting "$WORK/$1")
	kill -USR1 "${!1}"
	wait_until bash -c "[ \$(grep -c waiting '$WORK/$1') -gt $before ]"
	tail -n 2 "$WORK/$1" | head -n 1
}

@test "all processes of a group together; what a killed one had is there at once" {
	steps=(allocate 300 wait allocate 300 wait allocate 300 wait)
	start_in a --group "g$$" --memory 512M -t 0-7 -- "${steps[@]}"
	start_in b --group "g$$" --memory 512M -t 0-7 -- "${steps[@]}"
	start_in other -t 20 -- "${steps[@]}"
	[ "$(head -n 1 "$WORK/a") $(head -n 1 "$WORK/b") $(head -n 1 "$WORK/other")" = "0 2 0" ]
	[ "$(nvtaskset -p --group "g$$" | tail -n 1)" = "group g$$'s current memory: 512M: 300M in use" ]
	[ "$(next_of b)" = 2 ]
	kill -KILL "$a"
	wait "$a" || true
	[ "$(nvtaskset -p --group "g$$" | tail -n 1)" = "group g$$'s current memory: 512M: 0 in use" ]
	[ "$(next_of b)" = 0 ]
	[ "$(nvtaskset -p --group "g$$" | tail -n 1)" = "group g$$'s current memory: 512M: 300M in use" ]
	nvtaskset -p --group "g$$" --memory 1G
	start_in c --group "g$$" --memory 1G -t 0-7 -- "${steps[@]}"
	[ "$(head -n 1 "$WORK/c") $(next_of c) $(next_of c)" = "0 0 2" ]
	[ "$(next_of other)" = 0 ]
}

@test "a child does not keep what its killed parent had" {
	start_in parent --group "g$$" --memory 512M -t 0-7 -- allocate 300 fork wait
	find_child "$parent"
	ALL+=("$child")
	kill -KILL "$parent"
	wait "$parent" || true
	start_in after --group "g$$" --memory 512M -t 0-7 -- allocate 300 wait
	[ "$(head -n 1 "$WORK/after")" = 0 ]
	kill -0 "$child"
}

@test "a command's children share it, also those of a fork; and one that executes another program starts with nothing" {
	# shellcheck disable=SC2016 # of the shell inside
	script='"$0" allocate 300 wait >"$1/first" & until grep -q waiting "$1/first"; do sleep 0.01; done
		"$0" allocate 300; "$0" allocate 100
		kill -USR1 $!; wait; "$0" allocate 300; "$0" fork allocate 500; "$0" allocate 500 exec allocate 500'
	[ "$(nv --memory 512M -t 0-7 bash -c "$script" "$BUILD/tests/programs/play" "$WORK" | xargs)" = "2 0 0 0 0 0" ]
	[ "$(head -n 1 "$WORK/first")" = 0 ]
	start_in child --memory 512M -t 0-7 -- fork allocate 300 wait
	[[ "$(nvtaskset -l)" =~ \ 300M/512M\ .*play ]]
}

@test "one process of a group can have another limit, for itself; in a group's file, the group's holds beside it" {
	steps=(allocate 300 wait allocate 300 wait allocate 300 wait)
	start_in a --group "g$$" --memory 400M -t 0-7 -- "${steps[@]}"
	nvtaskset -p --memory 700M "$a"
	[ "$(next_of a) $(next_of a)" = "0 2" ]
	nvtaskset -p --group "g$$" --memory 1G
	[ "$(current memory "$a")" = "1G: 600M in use" ]
	mkdir "$WORK/groups"
	NVTASKSET_GROUP_FILE=$WORK/groups/job start_in b -t 0-7 -- "${steps[@]}"
	nvtaskset -p --group "$WORK/groups/job" --memory 512M
	nvtaskset -p --memory 700M "$b"
	[ "$(next_of b)" = 2 ]
}

@test "a command inside a command has its own limit; in a group's file, for all its processes, within the group's" {
	play=$BUILD/tests/programs/play
	[ "$(nv --memory 512M -t 0-7 nvtaskset --mps off --memory 1G -t 0-3 "$play" room)" = 1024/1024 ]
	[ "$(nv --memory 512M -t 0-7 nvtaskset --mps off -t 0-3 "$play" room)" = 16384/16384 ]
	mkdir "$WORK/groups"
	export NVTASKSET_GROUP_FILE=$WORK/groups/job
	nv -t 0-7 true
	nvtaskset -p --group "$WORK/groups/job" --memory 1G
	# shellcheck disable=SC2016 # of the shell inside
	script='"$0" allocate 300 wait >"$1" & until grep -q waiting "$1"; do sleep 0.01; done
		"$0" room allocate 300 allocate 200; kill -USR1 $!; wait'
	start_as a nvtaskset --mps off --memory 512M all "$play" allocate 300 wait
	wait_until has_come a
	[ "$(nv --memory 512M all bash -c "$script" "$play" "$WORK/first" | xargs)" = "212/512 2 0" ]
	[ "$(nv --memory 2G all "$play" room allocate 800 | xargs)" = "724/1024 2" ]
	nvtaskset -p --memory 900M "$a"
	[ "$(nv --memory 512M all "$play" allocate 500)" = 0 ]
}

@test "attached to, where the kernel driver tells: what was there before counts" {
	needs_attach
	! is_sanitized || skip "not with a sanitizer"
	export SIM_FAULTS=tells-memory # beside the program's own, a context has 64 MiB
	start env LD_LIBRARY_PATH="$BUILD/sim" "$BUILD/tests/programs/play" allocate 300 wait allocate 200 wait allocate 100 wait
	waits 1
	run -0 nvtaskset --attach -p --memory 512M "$PROGRAM"
	[ "${lines[1]}" = "pid $PROGRAM's new memory: 512M: 364M in use" ]
	[[ "$(nvtaskset -l)" != *"        memory: "* ]]
	go_on
	waits 2
	go_on
	waits 3
	[ "$(grep -v waiting "$WORK/output" | xargs)" = "0 2 0" ]
}

# Usually the simulator's kernel driver does not tell what a process has.
@test "attached to: it holds from then on, and what was there before is said" {
	needs_attach
	! is_sanitized || skip "not with a sanitizer"
	start env LD_LIBRARY_PATH="$BUILD/sim" "$BUILD/tests/programs/play" \
		allocate 300 wait allocate 300 wait allocate 300 wait
	waits 1
	run -0 nvtaskset --attach -p --memory 512M "$PROGRAM"
	gap="what it had allocated before it was attached to is not counted: the kernel driver does not tell"
	[ "${lines[1]}" = "pid $PROGRAM's new memory: 512M: 0 in use; $gap" ]
	[[ "$(nvtaskset -l)" == *"        memory: $gap"* ]]
	go_on
	waits 2
	go_on
	waits 3
	[ "$(grep -v waiting "$WORK/output" | xargs)" = "0 0 2" ]
}

@test "from C and Python" {
	! is_sanitized || skip "a sanitizer's run-time library must come with python"
	start_playing --memory 512M -t 0-7 -- allocate 300 wait allocate 300 wait
	NVTASKSET_LIBRARY=$BUILD/api/libnvtaskset.so.0 PYTHONPATH=$ROOT/tools/python run -0 python3 - "$PROGRAM" <<-'END'
		import sys
		import nvtaskset
		pid = int(sys.argv[1])
		with nvtaskset.Partition(pid) as partition, nvtaskset.Group.of(pid) as group:
		    print(*partition.memory(), partition.memory_limit >> 20, end=" ")
		    print(group.memory().together >> 20, group.memory().used)
		    for wanted in (0, -1, 1 << 63, "1G", 1.5):
		        try:
		            partition.memory_limit = wanted
		        except nvtaskset.Error as error:
		            print(error.code.name)
		    group.memory_limit = 1 << 30
		    print(partition.memory_limit >> 20, group.memory_limit >> 20)
		    partition.memory_limit = None
		    print(partition.memory_limit, group.memory_limit >> 20)
		    partition.memory_limit = 700 << 20
	END
	[ "$output" = "536870912 314572800 314572800 512 300 0
INVALID
INVALID
INVALID
INVALID
INVALID
1024 1024
None 1024" ]
	go_on
	waits 2
	[ "$(tail -n 2 "$WORK/output" | head -n 1)" = 0 ]
}

@test "a device of cdi has it in its group" {
	mkdir "$WORK/cdi"
	driver_of_host
	run cdi add -t 0-15 --mps off --memory 512M infer
	[ "$status" = 0 ]
	[ "$(cdi list)" = "nvtaskset/group=infer: TPCs 0-15 of GPU 0; memory 512M" ]
	chmod 755 "$HOST_DRIVER"
	export NVTASKSET_GROUP_FILE=$WORK/cdi/nvtaskset/infer
	[ "$(nv all "$BUILD/tests/programs/play" room allocate 500 allocate 20 | xargs)" = "512/512 0 2" ]
	cdi add -t 0-15 --mps off --memory 1G infer
	[ "$(cdi list)" = "nvtaskset/group=infer: TPCs 0-15 of GPU 0; memory 1G" ]
	rm -rf "$HOST_DRIVER"
}

@test "the test for the hardware runs, so that no lease is lost to a mistake in it" {
	! is_sanitized || skip "it starts the same programs as the tests above"
	mkdir "$WORK/bin"
	make_script "$WORK/bin/nvidia-smi" '#!/bin/sh' 'echo "GPU 0: simulated (UUID: GPU-0)"'
	SECONDS_AT_RANDOM=6 LD_LIBRARY_PATH=$BUILD/sim PATH=$WORK/bin:$PATH run -0 fake "$ROOT/tests/hardware/memory.sh"
	[ "$(grep -c '^ok' <<<"$output")" -ge 9 ]
	not grep -q '^not ok' <<<"$output"
}
