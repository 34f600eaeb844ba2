#!/usr/bin/env bats
# nvtaskset measure: the measured topology must be that of the simulated GPU's topology file.

load helpers

UUID=GPU-00000000-0000-0000-0001-000000000006 # of the simulated H200: its PCI address

# The simulated GPU, without a topology file for nvtaskset.
nobody_tells() {
	export SIM_TOPOLOGY=${1:-$NVTASKSET_TOPOLOGY}
	unset NVTASKSET_TOPOLOGY
}

# shellcheck disable=SC2120 # some tests pass options
measure() {
	XDG_CACHE_HOME=$WORK/cache nvtaskset measure "$@"
}

# The names of the cached topologies; links to libraries may lie beside them.
kept() {
	[ ! -e "$WORK/cache" ] || find "$WORK/cache" -type f -printf '%f\n' | sort
}

# Mask bits and virtual GPCs: only these can be measured.
bits_of() {
	awk '$1 == "tpc" { print $2, $4, $5 }' "$@"
}

@test "every shipped GPU is measured correctly, bit for bit" {
	nobody_tells
	for gpu in h200 h200-x2 hopper-synthetic blackwell turing ada; do
		rm -rf "$WORK/cache"
		SIM_TOPOLOGY=$ROOT/share/topologies/$gpu.txt run measure
		echo "$gpu: $output"
		[ "$status" -eq 0 ]
		diff <(bits_of "$WORK"/cache/nvtaskset/GPU-*.txt) <(bits_of "$ROOT/share/topologies/$gpu.txt")
	done
}

@test "it prints its result, and that the reported topology is the same" {
	export SIM_TOPOLOGY=$NVTASKSET_TOPOLOGY
	run -0 measure
	[ "${lines[0]}" = "GPU 0000:00:06.0 (NVIDIA H200): 66 TPCs in 12 virtual GPCs, 4 of them single" ]
	[ "${lines[1]}" = "  mask bit and virtual GPC of each are as NVTASKSET_TOPOLOGY's file says" ]
	[ "${lines[2]}" = "  kept in $WORK/cache/nvtaskset/$UUID.txt" ]
	[ "${#lines[@]}" -eq 3 ]
	[ -z "$(find "$WORK" -type f ! -name "$UUID.txt")" ]
}

@test "before Hopper it says what cannot be measured" {
	nobody_tells "$ROOT/share/topologies/turing.txt"
	run measure
	[ "${lines[0]}" = "GPU 0000:65:00.0 (Synthetic Turing): 34 TPCs" ]
	[ "${lines[1]}" = "  which of them share a GPC cannot be measured before Hopper" ]
}

@test "a difference from the reported topology is an error, and nothing is kept" {
	export SIM_TOPOLOGY=$NVTASKSET_TOPOLOGY NVTASKSET_TOPOLOGY=$WORK/topology
	sed 's/^  tpc  62 .*/  tpc  62    1    12    76/' "$SIM_TOPOLOGY" >"$NVTASKSET_TOPOLOGY"
	refuses "GPU 0000:00:06.0: TPC 62: its mask bit is 75 as measured, 76 as NVTASKSET_TOPOLOGY's file says; nothing was kept" \
		measure
	[ -z "$(kept)" ]
}

@test "commands and programs use the measured topology" {
	[ ! -e /dev/nvidiactl ] && [ ! -e /proc/driver/nvidia/gpus ] || skip "a GPU is here"
	nobody_tells
	export XDG_CACHE_HOME=$WORK/cache
	nvtaskset measure
	start_program -t 3-5
	runs_on 3-5
	nvtaskset -tp 62-65 "$PROGRAM"
	runs_on 62-65
	refuses "GPCs: this GPU's are unknown; name TPCs instead (-t)" nv -g 1 true
}

@test "with the answer withheld, the result is the same, and launches keep to it" {
	SIM_TOPOLOGY=$NVTASKSET_TOPOLOGY run -0 "$ROOT/tests/hardware/measure.sh"
	[ "${lines[-1]}" = 1..8 ]
}

@test "-G chooses; hidden GPUs are measured by name only" {
	nobody_tells "$ROOT/share/topologies/h200-x2.txt"
	run measure -G 1
	[[ "${lines[0]}" == "GPU 0000:00:07.0 "* ]]
	[ "$(kept | wc -l)" -eq 1 ]
	for chosen in "=00:07.0" "-G 0=00:07.0" "-G 00:06.0=00:06.0"; do
		CUDA_VISIBLE_DEVICES=1 run measure ${chosen%=*}
		[[ "${lines[0]}" == "GPU 0000:${chosen#*=} "* ]]
		[ "${#lines[@]}" -eq 2 ]
	done
	run measure -G 1 -G 0
	[[ "${lines[0]}" == "GPU 0000:00:07.0 "* ]]
	[[ "${lines[2]}" == "GPU 0000:00:06.0 "* ]]
}

@test "GPUs and SETs that make no sense" {
	nobody_tells
	refuses "GPU 1: CUDA sees one GPU here, number 0" measure -G 1
	refuses "-G nonsense: not a GPU's number, bus id or UUID, nor 'all'" measure -G nonsense
	refuses "-G: 'measure' takes no SET" measure -G 0:3-5
	refuses "'0-7': not one of its words; try 'nvtaskset measure --help'" measure 0-7
	CUDA_VISIBLE_DEVICES=-1 refuses "CUDA_VISIBLE_DEVICES=-1: shows none of this machine's 1 GPUs" measure
}

@test "a GPU that hangs is given up" {
	nobody_tells
	export NVTASKSET_MEASURE_SECONDS=1
	SIM_FAULTS=hang run -1 measure
	# On a busy machine, not even the first.
	[[ "$output" =~ ^"nvtaskset: the GPU has not answered for 1 s, after "[01]" launches"$ ]]
	NVTASKSET_MEASURE_SECONDS=0 refuses "NVTASKSET_MEASURE_SECONDS=0: must be 1-3600" measure
	NVTASKSET_MEASURE_SECONDS=1x refuses "NVTASKSET_MEASURE_SECONDS=1x: must be 1-3600" measure
}

@test "killing the command also ends its kernels on the GPU" {
	nobody_tells
	SIM_FAULTS=hang XDG_CACHE_HOME=$WORK/cache start nvtaskset measure
	wait_until grep -q . "/proc/$PROGRAM/task/$PROGRAM/children"
	child=$(cat "/proc/$PROGRAM/task/$PROGRAM/children")
	kill -KILL "$PROGRAM"
	wait "$PROGRAM" || PROGRAM=
	wait_until not kill -0 $child
}

@test "drivers that lack what is needed, fail, or crash; a GPU whose launch descriptors are not known" {
	nobody_tells
	SIM_FAULTS=no-device refuses "CUDA does not start: CUDA error 100, no CUDA-capable device is detected" measure
	SIM_FAULTS=no-context refuses "GPU 0000:00:06.0: no context: CUDA error 46, CUDA-capable device(s) is/are busy or unavailable" measure
	SIM_FAULTS=bad-qmd refuses "GPU 0000:00:06.0: launches cannot be restricted: the launch descriptor has an unknown version" measure
	SIM_FAULTS=no-table refuses "GPU 0000:00:06.0: this driver does not let launches be restricted; -v says why" measure
	SIM_FAULTS=no-table run measure -v
	[[ "$output" == *"nvtaskset: the driver has no callback table (error 500); this program runs unrestricted"* ]]
	NVTASKSET_DRIVER=/nonexistent refuses "NVTASKSET_DRIVER=/nonexistent: No such file or directory" measure
	SIM_TOPOLOGY=/nonexistent run -1 measure
	[ "${lines[1]}" = "nvtaskset: the process that launches kernels was ended by signal 6 (Aborted)" ]
	sed 's/compute 9.0/compute 13.0/' "$SIM_TOPOLOGY" >"$WORK/topology"
	SIM_TOPOLOGY=$WORK/topology refuses "GPU 0000:00:06.0: compute capability 13.0: its launch descriptors are not known" measure
}

@test "places that cannot be written" {
	nobody_tells
	mkdir -p "$WORK/nvtaskset/$UUID.txt"
	refuses "$WORK/nvtaskset/$UUID.txt: Is a directory" nvtaskset measure
}

@test "under nvtaskset, in a partition" {
	nobody_tells
	export XDG_CACHE_HOME=$WORK/cache
	run -0 env NVTASKSET_TOPOLOGY="$SIM_TOPOLOGY" nvtaskset --mps off -t 3 env -u NVTASKSET_TOPOLOGY nvtaskset measure
	diff <(bits_of "$WORK/cache/nvtaskset/$UUID.txt") <(bits_of "$SIM_TOPOLOGY")
}
