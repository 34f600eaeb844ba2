#!/usr/bin/env bats
# Each wrong input gets its own reason, in one line, and exit status 1; and nothing changes.

load helpers

@test "sets that are empty" {
	refuses "an empty list: name at least one TPC" nv -t "" true
	refuses "an empty set: a program without TPCs would never run" nv 0 true
	refuses "an empty set: a program without TPCs would never run" nv 0x000 true
	refuses "'': a mask without digits" nv "" true
	refuses "'0x': a mask without digits" nv 0x true
}

@test "TPCs and GPCs that the GPU lacks" {
	refuses "TPC 66: this GPU has TPCs 0-65" nv -t 66 true
	refuses "TPC 70: this GPU has TPCs 0-65" nv -t 0-70 true
	refuses "GPC 9: this GPU has GPCs 0-7" nv -g 9 true
	refuses "TPC 4294967297: this GPU has TPCs 0-65" nv -t 4294967297 true
}

# unit/tpcset.c has all that is none.
@test "garbage lists and masks" {
	refuses "3-1: the range runs backwards" nv -t 3-1 true
	refuses "'-1': a number was expected" nv -t -- -1 true
	refuses "mask 40000000000000000: wider than the GPU, which has TPCs 0-65" nv 40000000000000000 true
	refuses "'0-7': not a hexadecimal mask; -t takes a list of TPCs, -g of GPCs, -n a number of TPCs" nv 0-7 true
}

@test "a number of a hundred thousand digits" {
	digits=$(printf '9%.0s' $(seq 100000))
	refuses "TPC 99999999999999999999…: this GPU has TPCs 0-65" nv -t "$digits" true
	run -1 nv "$digits" true
	[ "${#output}" -lt 200 ]
}

@test "too little on the command line" {
	refuses "no SET and no COMMAND: try 'nvtaskset -t 0-7 COMMAND', 'nvtaskset -T' to see the GPU, or 'nvtaskset --help'" nvtaskset
	refuses "no COMMAND; try 'nvtaskset --help'" nvtaskset -t 0
	refuses "-p: no PID; try 'nvtaskset --help'" nvtaskset -p
	refuses "'3': one argument too many; try 'nvtaskset --help'" nvtaskset -p 1 2 3
	refuses "-G: needs a value; try 'nvtaskset --help'" nvtaskset -G
}

@test "options that do not exist, or not with that value" {
	refuses "-Z: unknown option; try 'nvtaskset --help'" nvtaskset -Z
	refuses "--nonsense: unknown option; try 'nvtaskset --help'" nvtaskset --nonsense
	refuses "--mps maybe: must be one of: auto on off" nvtaskset --mps maybe -t 0 true
	refuses "--connections 0: must be 1-32" nvtaskset --connections 0 -t 0 true
	refuses "--connections 33: must be 1-32" nvtaskset --connections 33 -t 0 true
	refuses "--connections x: must be 1-32" nvtaskset --connections x -t 0 true
	for options in "--mps off" "--quota 30%"; do
		for word in "" "cdi add"; do
			refuses "--connections: only clients of MPS have them; leave it out, or use --mps on" \
				nvtaskset $word $options --connections 4 -t 0 true
		done
	done
	refuses "--policy: unknown option; try 'nvtaskset --help'" nvtaskset --policy ht --priority 80 -t 0-7 true
	refuses "--policy=pe: unknown option; try 'nvtaskset --help'" nvtaskset -p --policy=pe $$
	refuses "--weight: needs a value; try 'nvtaskset --help'" nvtaskset --weight
	refuses "-t, -g and -n: SET is a list of TPCs, a list of GPCs or a number: choose one" nvtaskset -t -g 0 true
}

@test "options behind SET and PID, and SET as an option's value" {
	refuses "-p, -l, -T and words such as 'mps': choose one" nvtaskset -t 0-3 -p -l
	refuses "-t: not with -l; only with a COMMAND, -p and 'cdi add'" nvtaskset -t 0-3 -l
	refuses "--frob: unknown option; try 'nvtaskset --help'" nvtaskset -t 0-3 --frob true
	refuses "--mps maybe: must be one of: auto on off" nvtaskset -t 0-3 --mps maybe true
	refuses "-t, -g and -n: SET is a list of TPCs, a list of GPCs or a number: choose one" nvtaskset -t 0-3 -n true
	refuses "'0-3' and -G GPU:SET: give one SET for all GPUs, or one for each" nvtaskset -t 0-3 -G 0:4-5 true
	refuses "no COMMAND; try 'nvtaskset --help'" nvtaskset -t 0-3 --mps off
	refuses "'--attach': options come before PID, as in 'nvtaskset -tp 0-7 PID'" nvtaskset -tp 0-3 1 --attach
	for long in --tpc-list=0-7 --count=4 --strict=yes; do
		refuses "$long: the option takes no value; SET comes behind the options, as in '-t 0-7'; try 'nvtaskset --help'" \
			nvtaskset "$long" true
	done
	refuses "-t0-7: SET is an argument of its own, as in '-t 0-7'; try 'nvtaskset --help'" nvtaskset -t0-7 true
	refuses "-n4: SET is an argument of its own, as in '-t 0-7'; try 'nvtaskset --help'" nvtaskset -n4 true
	refuses "--frob=3: unknown option; try 'nvtaskset --help'" nvtaskset --frob=3
	refuses "-x: unknown option; try 'nvtaskset --help'" nvtaskset -x=3
	[ "$(nv -t 0-3 -- echo -t)" = -t ]
	[ "$(nv -t 0-3 echo --mps -p -t --help)" = "--mps -p -t --help" ]
	printf '#!/bin/sh\necho "$0"\n' >"$WORK/-t"
	chmod +x "$WORK/-t"
	[ "$(cd "$WORK" && nv -t 0-3 ./-t)" = ./-t ]
	[[ "$(PATH=$WORK:$PATH nv -G 0:ff -- -t)" == *-t ]]
}

misses_set() { # WORD WITH_SET ARGUMENT…
	refuses "'$1': neither a mask of TPCs nor a word (top, trace, curve, plan, metrics, mps, system, cdi, measure); a COMMAND needs a SET: 'nvtaskset $2'" \
		nvtaskset "${@:3}"
}

@test "an option with an empty name" {
	refuses "--output: an empty name" nvtaskset metrics --output ''
	refuses "--output: an empty name" nvtaskset trace -o ''
	refuses "--output: an empty name" nvtaskset cdi --output ''
	refuses "--svg: an empty name" nvtaskset curve --svg '' 1
	refuses "--group: an empty name" nvtaskset --group '' -t 0 true
}

@test "a forgotten SET, also before options of COMMAND" {
	misses_set ./infer "--priority 80 all ./infer 1" --priority 80 ./infer 1
	misses_set ./infer "--priority 80 all ./infer" --priority 80 ./infer
	misses_set python3 "all python3 -m train" python3 -m train
	misses_set ./infer "all ./infer -v 1" ./infer -v 1
	misses_set foo "--dry-run all foo" --dry-run foo
	long=$(printf 'x%.0s' $(seq 300))
	run -1 nvtaskset ./infer "$long" "$long"
	[ "${#lines[@]}" -eq 1 ]
}

@test "a PID that is missing, and SET behind PID" {
	for set in 0-7 25% all ff 0,2; do
		refuses "'$set': a SET without a PID, as in 'nvtaskset -tp 0-7 PID'" nvtaskset -tp "$set"
		refuses "'$set': SET comes before PID, as in 'nvtaskset -tp 0-7 PID'" nvtaskset -tp $$ "$set"
	done
}

@test "taskset's -c is -t" {
	[ "$(nv --dry-run -c 0-7)" = 0-7 ]
	start_program -c 0-3
	nvtaskset -cp 4-5 "$PROGRAM"
	runs_on 4-5
	refuses "-c: not with -l; only with a COMMAND, -p and 'cdi add'" nvtaskset -lc
}

@test "what is neither a mask nor a word" {
	for word in sytem ./infer help; do
		misses_set "$word" "all $word" "$word"
	done
	refuses "no COMMAND; try 'nvtaskset --help'" nvtaskset fade
	refuses "no COMMAND; try 'nvtaskset --help'" nvtaskset all
}

@test "GPUs that do not exist" {
	refuses "GPU 7: CUDA sees one GPU here, number 0" nv -G 7 -t 0 true
	for number in 4294967296 99999999999999999999; do
		refuses "GPU $number: CUDA sees one GPU here, number 0" nv -G "$number" -t 0 true
	done
	refuses "0000:99:00.0: no GPU here has this bus id" nv -G 0000:99:00.0 -t 0 true
	refuses "GPU-12345678: no GPU here has this UUID" nv -G GPU-12345678 -t 0 true
	refuses "-G nonsense: not a GPU's number, bus id or UUID, nor 'all'" nv -G nonsense -t 0 true
	refuses "-G 0: this GPU is named twice" nv -G 0 -G 0 -t 0 true
	for given in "-G 0:1 -G 1" "-G 0 -G 1:1"; do
		NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt \
			refuses "-G: give every GPU its own SET (-G 0:SET -G 1:SET), or none" nv -t $given true
	done
	CUDA_VISIBLE_DEVICES=-1 refuses "CUDA_VISIBLE_DEVICES=-1: shows none of this machine's 1 GPUs" nv -t 0 true
}

@test "process ids" {
	refuses "pid 'x': not a process id" nvtaskset -p x
	refuses "pid '1x': not a process id" nvtaskset -p 1x
	refuses "pid '-1': not a process id" nvtaskset -p -- -1
	refuses "pid '99999999999': not a process id" nvtaskset -p 99999999999
	sleep 0 &
	gone=$!
	wait $gone
	refuses "pid $gone: no such process" nvtaskset -p $gone
	refuses "pid $$: has not loaded CUDA" nvtaskset -tp 0 $$
}

@test "somebody else's process" {
	needs_another_user
	start_program -t 0-7
	run ! "${ANOTHER_USER[@]}" "$BUILD/nvtaskset" -tp 3 "$PROGRAM"
	sleep 0.1
	runs_on 0-7
}

@test "a machine without GPU, and a topology that cannot be read" {
	export NVTASKSET_TOPOLOGY=/nonexistent
	refuses "NVTASKSET_TOPOLOGY=/nonexistent: No such file or directory" nv -t 0 true
	echo nonsense >"$WORK/topology"
	export NVTASKSET_TOPOLOGY=$WORK/topology
	refuses "$WORK/topology:1: the first line must be 'nvtaskset-topology 1'" nv -t 0 true
	refuses "$WORK/topology:1: the first line must be 'nvtaskset-topology 1'" nvtaskset -T
	mkfifo "$WORK/fifo"
	for path in "$WORK/fifo" "$WORK" /dev/zero; do
		NVTASKSET_TOPOLOGY=$path refuses "NVTASKSET_TOPOLOGY=$path: not a regular file" timeout 60 nvtaskset --mps off -t 0 true
	done
	unset NVTASKSET_TOPOLOGY
	# Root may have measured a GPU here.
	[ -e /dev/nvidiactl ] || compgen -G "/var/cache/nvtaskset/*.txt" ||
		refuses "no NVIDIA GPU: /dev/nvidiactl is not there; is the driver loaded?" nv -t 0 true
}

@test "drivers that cannot be used" {
	export NVTASKSET_DRIVER=/nonexistent
	refuses "NVTASKSET_DRIVER=/nonexistent: No such file or directory" nv -t 0 true
	export NVTASKSET_DRIVER=$BUILD/lib/libcuda.so.1
	refuses "NVTASKSET_DRIVER=$BUILD/lib/libcuda.so.1: not a driver library" nv -t 0 true
}

@test "options that contradict each other, or would be ignored" {
	refuses "-p, -l, -T and words such as 'mps': choose one" nvtaskset -l -p 1
	refuses "-p, -l, -T and words such as 'mps': choose one" nvtaskset mps stop -T
	refuses "--busy: not with -T; only with -l and 'metrics'" nvtaskset -T --busy
	refuses "-a: only with -p" nv -at 0-7 true
	refuses "--attach: only with -p" nv --attach -t 0-7 true
	refuses "--attach: not with -l; only with -p" nv --attach -l
	refuses "--strict: only with a COMMAND and 'cdi add'" nvtaskset --strict -tp 3 $$
	refuses "--strict: not with -l; only with a COMMAND and 'cdi add'" nvtaskset --strict -l
	refuses "--watch: only with -l, -T and 'metrics'" nv --watch -t 0 true
	refuses "--watch=0.05: must be 0.1-86400 seconds" nvtaskset -l --watch=0.05
	refuses "--watch=soon: must be 0.1-86400 seconds" nvtaskset -T --watch=soon
	refuses "--dry-run: not with -l; only with a COMMAND, -p SET, 'system enable' and 'cdi add'" nvtaskset --dry-run -l
	refuses "--mps: not with -l; only with a COMMAND, 'cdi add', 'curve' and 'plan'" nvtaskset --mps off -l
	for option in --quota=30% --priority=80 --weight=80 --lend --borrow; do
		refuses "${option%=*}: not with -l; only with a COMMAND, -p and 'cdi add'" nvtaskset "$option" -l
	done
	refuses "--group: not with -l; only with a COMMAND and -p" nvtaskset --group=g -l
	refuses "-t: not with -l; only with a COMMAND, -p and 'cdi add'" nvtaskset -tl 0-7
	refuses "-g: not with -T; only with a COMMAND, -p and 'cdi add'" nvtaskset -Tg 2 ./app
	refuses "'0-7': one argument too many; try 'nvtaskset --help'" nvtaskset -l 0-7
}
