#!/bin/bash
# All at once on every GPU for a while: partitions that change, lending, priorities, weights and quotas, side by side and in turns;
# CUDA graphs, NCCL, attaching, killed editors, and those that look. Each program compares its results, and ends by itself. TAP on
# standard output.
#
#   BUILD=build tests/hardware/soak.sh [SECONDS]
#
# Needs PyTorch; and takes eight minutes, with a control daemon of its own.
# shellcheck disable=SC2317 # functions that are called by name
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
PATH=$BUILD:$BUILD/bench:$PATH:/usr/local/nvidia/bin
seconds=${1:-480}
work=$(mktemp -d)
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/log PYTHONWARNINGS=ignore
unset CUDA_VISIBLE_DEVICES
mkdir "$work/mps" "$work/log"
gpus=$(nvidia-smi -L | grep -c '^GPU')
end=$((SECONDS + seconds))

lines_in_log() {
	dmesg 2>/dev/null | grep -ci 'xid\|nvrm'
}
lines_before=$(lines_in_log)
count=0 failed=0 pids=() names=()
trap 'kill $(jobs -p) 2>/dev/null; nvtaskset mps stop --force >/dev/null 2>&1; rm -rf "$work"' EXIT

report() { # NAME STATUS
	local verdict=ok
	count=$((count + 1))
	[ "$2" = 0 ] || verdict="not ok" failed=1
	echo "$verdict $count - $1"
	[ "$2" = 0 ] || tail -n 3 "$work/$1.err" 2>/dev/null | sed 's/^/# /'
}

# A program that ends by itself, and fails if a result was wrong.
start() { # NAME GPU COMMAND…
	CUDA_VISIBLE_DEVICES=$2 "${@:3}" >"$work/$1-$2.out" 2>"$work/$1-$2.err" &
	pids+=($!) names+=("$1-$2")
	printf -v "pid_${1//-/_}_$2" %s $!
}

python() { # FILE ARGUMENT…
	echo python3 "bench/$1" "${@:2}" --seconds "$seconds"
}

echo "100 ~100 0.3" >"$work/pattern"
for ((gpu = 0; gpu < gpus; gpu++)); do
	# shellcheck disable=SC2046 # words
	{
		start lender $gpu nvtaskset --mps auto --lend -t 0-15 $(python decode.py --layers 6 --pattern "$work/pattern")
		start borrower $gpu nvtaskset --mps auto --borrow -t 16-23 $(python batch.py products --size 3072)
		start high $gpu nvtaskset --mps auto --priority 80 -t 24-39 $(python decode.py --layers 4 --pause 5000)
		start low $gpu nvtaskset --mps auto --priority 20 -t 24-39 $(python batch.py products --size 2048)
		start quota $gpu nvtaskset --mps auto --quota 30% -t 40-43 $(python batch.py products --size 1024)
		start moved $gpu nvtaskset --mps auto -t 44-45 $(python decode.py --layers 2 --pause 2000)
		start turn-high $gpu nvtaskset --mps off --priority 80 all $(python decode.py --layers 2 --pause 20000)
		start turn-weight $gpu nvtaskset --mps off --weight 200 -t 0-31 $(python batch.py products --size 2048)
		start turn-quota $gpu nvtaskset --mps off --quota 20% all $(python batch.py training)
		start attached $gpu $(python decode.py --layers 2 --pause 10000)
	}
done

# Until the end, again and again: how often, and whether it always succeeded.
again() { # NAME COMMAND
	local times=0 bad=0
	while [ $SECONDS -lt $end ]; do
		$2 $times >"$work/$1.out" 2>"$work/$1.err" || { bad=$((bad + 1)); cp "$work/$1.err" "$work/$1.bad"; }
		times=$((times + 1))
	done
	echo "$1: $times times, $bad failed $(head -n 1 "$work/$1.bad" 2>/dev/null)" >>"$work/again"
	[ $bad = 0 ]
}

move() { # NUMBER
	local gpu set sets=(44-45 44-63 46-47 50-65)
	for ((gpu = 0; gpu < gpus; gpu++)); do
		set=pid_moved_$gpu
		nvtaskset -tp "${sets[$1 % 4]}" "${!set}" || return
	done
	sleep 0.05
}

# An editor that is killed at any time; the set comes back with the next one.
kill_editors() {
	local pid
	nvtaskset -tp 44-45 "$pid_moved_0" &
	pid=$!
	sleep "0.00$((RANDOM % 9))"
	kill -KILL "$pid"
	wait "$pid"
	return 0
}

attach() {
	local gpu set
	for ((gpu = 0; gpu < gpus; gpu++)); do
		set=pid_attached_$gpu
		nvtaskset --attach -tp "$((8 * ($1 % 4)))-65" "${!set}" || return
	done
	sleep 1
}

look() {
	nvtaskset -l && nvtaskset -T && nvtaskset metrics && nvtaskset top --once --delay 0.5
}

ranks() {
	[ "$gpus" -ge 2 ] || { sleep 10; return; }
	timeout -k 5 60 nvtaskset --mps auto -G all -t 46-65 python3 tests/hardware/ranks.py 8
}

# For the time that programs take to start and end.
sleep 30
end=$((end - 15))
for name in move kill_editors attach look ranks; do
	again $name $name &
	pids+=($!) names+=("$name")
done
for i in "${!pids[@]}"; do
	wait "${pids[i]}"
	report "${names[i]}" $?
done
sed 's/^/# /' "$work/again"
for name in "${names[@]}"; do
	[ ! -s "$work/$name.out" ] || [[ $name != *-[0-9] ]] || echo "# $name: $(grep -c '[0-9]' "$work/$name.out") steps"
done
report "no line in the kernel's log" "$(($(lines_in_log) - lines_before))"
nvtaskset -l >"$work/left"
report "nothing is left" "$(grep -c nvtaskset "$work/left")"
echo "1..$count"
exit $failed
