#!/bin/bash
# Two ranks of NCCL on two GPUs, each a process: all-reduces and tensor-parallel products, eager and in a graph. In partitions of all
# sizes, moved while they run, attached to in the middle, with quotas and priorities in turns, and as lender and as borrower, with MPS
# and without. All results are right, and nobody hangs. TAP on standard output; at the end, how many steps a second each had.
#
#   BUILD=build tests/hardware/ranks.sh [SECONDS]
#
# Needs two GPUs and PyTorch. On both GPUs, a neighbour works meanwhile. Takes some two minutes, with control daemons of its own.
# shellcheck disable=SC2317 # functions that are called by name
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
PATH=$BUILD:$PATH:/usr/local/nvidia/bin
seconds=${1:-4}
work=$(mktemp -d)
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/log PYTHONWARNINGS=ignore
unset CUDA_VISIBLE_DEVICES
mkdir "$work/mps" "$work/log"
count=0 failed=0

finish() {
	kill "${neighbours[@]}" 2>/dev/null
	wait
	nvtaskset mps stop --force 2>&1 | sed 's/^/# /'
	rm -rf "$work"
}
trap finish EXIT

report() { # NAME STATUS FILE
	local verdict=ok
	count=$((count + 1))
	if [ "$2" != 0 ] || ! grep -q 'steps/s' "$3"; then
		verdict="not ok" failed=1
		tail -n 5 "$3" | sed 's/^/# /'
	fi
	echo "$verdict $count - $1: $(grep 'steps/s' "$3" || echo "exit status $2")"
}

ranks() { # COMMAND…: that runs two ranks
	timeout -k 5 $((seconds + 60)) "$@" python3 tests/hardware/ranks.py "$seconds"
}

# Runs some at the same time: lines of NAME: options and SET.
together() {
	local name options pids=() names=() i
	while IFS=: read -r name options; do
		# shellcheck disable=SC2086
		ranks nvtaskset $options >"$work/ranks-${#pids[@]}" 2>&1 &
		pids+=($!) names+=("$name")
	done
	for i in "${!pids[@]}"; do
		wait "${pids[i]}"
		report "${names[i]}" $? "$work/ranks-$i"
	done
}

# The ranks, and a command that is repeated while they work: it gets the number of the time and the processes' ids.
while_they_work() { # NAME COMMAND -- COMMAND…: that runs the ranks
	local name=$1 does=$2 number=0 pid
	shift 3
	ranks "$@" >"$work/ranks" 2>&1 &
	pid=$!
	until [ "$(grep -o ready "$work/ranks" | wc -l)" = 2 ]; do kill -0 $pid 2>/dev/null || break; sleep 0.05; done
	while kill -0 $pid 2>/dev/null; do
		$does $((number++)) || break
	done 2>>"$work/does"
	wait $pid
	report "$name, $number times" $? "$work/ranks"
}

pids_of_ranks() {
	pgrep -f 'multiprocessing.spawn.*spawn_main'
}

move() { # NUMBER
	local sets=(0-7 8-65 all 20-21) pid
	for pid in $(pids_of_ranks); do
		nvtaskset -G all -tp "${sets[$1 % 4]/all/0-65}" "$pid" >/dev/null || return 1
	done
	sleep 0.03
}

attach() {
	local pid
	for pid in $(pids_of_ranks); do
		nvtaskset --attach -G all -tp 0-7 "$pid" >/dev/null || return 1
	done
	return 1
}

neighbours=()
neighbour() { # GPU COMMAND…
	CUDA_VISIBLE_DEVICES=$1 "${@:2}" python3 bench/batch.py products >/dev/null 2>&1 &
	neighbours+=($!)
}

[ "$(nvidia-smi -L | grep -c '^GPU')" -ge 2 ] || { echo "1..0 # skip there is one GPU only"; exit 0; }
for gpu in 0 1; do neighbour $gpu nvtaskset --mps off -t 0-65; done
together <<'END'
in turns, all TPCs: --mps off all
in turns, 8 TPCs: --mps off -G all -t 8-15
in turns, 2 TPCs: --mps off -G all -t 8-9
in turns, 1 TPC: --mps off -G all -t 8
END
together <<'END'
in turns, quota 30 % and 30 %: --mps off --quota 30% -G all -t 0-65
in turns, priority 20: --mps off --priority 20 -G all -t 0-65
in turns, priority 80: --mps off --priority 80 -G all -t 0-65
END
while_they_work "in turns, moved" move -- nvtaskset --mps off all
while_they_work "in turns, attached to" attach -- env
kill "${neighbours[@]}" 2>/dev/null
wait "${neighbours[@]}" 2>/dev/null
neighbours=()
for gpu in 0 1; do neighbour $gpu nvtaskset --mps auto --borrow -t 40-65; done
# Kernels of NCCL wait for each other: under MPS, two pairs of ranks that share TPCs may keep each other out. So each pair has its own.
together <<'END'
under MPS, all TPCs: --mps auto all
END
together <<'END'
under MPS, 8 TPCs: --mps auto -G all -t 8-15
under MPS, 2 TPCs: --mps auto -G all -t 16-17
under MPS, 1 TPC: --mps auto -G all -t 18
END
together <<'END'
under MPS, lender: --mps auto --lend -G all -t 0-15
under MPS, borrower: --mps auto --borrow -G all -t 16-31
END
together <<'END'
under MPS, priority 80: --mps auto --priority 80 -G all -t 0-15
under MPS, priority 20: --mps auto --priority 20 -G all -t 16-31
END
timeout -k 5 $((seconds + 60)) nvtaskset --mps auto --quota 30% all python3 tests/hardware/late_rank.py "$seconds" >"$work/late" 2>&1
report "under MPS, quota 30 %, one rank late" $? "$work/late"
while_they_work "under MPS, moved" move -- nvtaskset --mps auto all
echo "1..$count"
exit $failed
