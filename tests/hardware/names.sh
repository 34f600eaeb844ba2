#!/bin/bash
# On two GPUs, all views call the GPU of a program by the same number, whatever CUDA_VISIBLE_DEVICES says. TAP on standard output.
#
#   BUILD=build tests/hardware/names.sh
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
PATH=$BUILD:$BUILD/bench:$PATH
export CUDA_DEVICE_ORDER=PCI_BUS_ID
unset CUDA_VISIBLE_DEVICES
count=0 failed=0 work=$(mktemp -d)
mapfile -t uuids < <(nvidia-smi --query-gpu=uuid --format=csv,noheader)
[ "${#uuids[@]}" -ge 2 ] || { echo "1..0 # skip there is one GPU only"; exit 0; }

is() { # what, expected, got
	local verdict=ok
	count=$((count + 1))
	[ "$2" = "$3" ] || { verdict="not ok" failed=1; echo "#   expected '$2', got '$3'"; }
	echo "$verdict $count - $1"
}

# The GPUs of which it says something but 0.
read_json() { # LIST PID MEMBER
	python3 -c "import json, sys
print(*(gpu['gpu'] for one in json.load(sys.stdin)['processes'] if one['pid'] == $2 for gpu in one['$1'] if gpu['$3']))"
}

# It runs on the first GPU that it sees.
check() { # VISIBLE NUMBER
	local pid
	CUDA_VISIBLE_DEVICES=$1 nvtaskset --mps off -G all -t 8-15 task compute --size 64 --rounds 1000 --period 2000 --seconds 6 >/dev/null 2>"$work/err" &
	pid=$!
	sleep 2
	is "-l: $1" "$2" "$(nvtaskset -l --json | read_json kernels "$pid" launches)"
	is "top: $1" "$2" "$(nvtaskset top --json --once --delay 0.5 "$pid" | read_json gpus "$pid" busy)"
	is "metrics: $1" "$2" "$(nvtaskset metrics | sed -n "s/^nvtaskset_launched_kernels_total{gpu=\"\([0-9]*\)\".*pid=\"$pid\".*} [1-9].*/\1/p")"
	is "-T: $1" "$2" "$(nvtaskset -G "$2" -T | grep -q "$pid" && echo "$2")"
	wait "$pid"
}

check 0,1 0
check 1,0 1
check 1 1
check "${uuids[1]},${uuids[0]}" 1
rm -rf "$work"
echo "1..$count"
exit $failed
