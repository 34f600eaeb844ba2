#!/bin/bash
# --memory on GPUs, under MPS: TAP on standard output, with what was seen, and what MPS said, as comments. A program that
# allocates more than its limit gets CUDA_ERROR_OUT_OF_MEMORY (2), and its neighbour, at the same time, does not. On two
# GPUs: whose number of a GPU CUDA_MPS_PINNED_DEVICE_MEM_LIMIT takes.
#
#   BUILD=build tests/hardware/memory.sh      after make all build/tests/programs/play build/tests/programs/memory
#
# Uses a control daemon of its own, and takes about a minute. By NVIDIA's documentation, a context's own memory counts,
# too: so the limits are some times larger than that.
# shellcheck disable=SC2317 # finish is called by a trap
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
PATH=$BUILD:$PATH:/usr/local/nvidia/bin
play=$BUILD/tests/programs/play
memory=$BUILD/tests/programs/memory
work=$(mktemp -d)
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/log
unset CUDA_VISIBLE_DEVICES CUDA_MPS_PINNED_DEVICE_MEM_LIMIT CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
mkdir "$work/mps" "$work/log"
count=0 failed=0

is() { # what, expected, got
	local verdict=ok
	count=$((count + 1))
	[ "$2" = "$3" ] || { verdict="not ok" failed=1; echo "#   expected '$2', got '$3'"; }
	echo "$verdict $count - $1"
}

# What a command says, as comments.
note() {
	echo "# \$ $*"
	"$@" 2>&1 </dev/null | sed 's/^/#   /'
}

ask_mps() { # a command
	echo "# MPS, $1:"
	timeout 20 nvidia-cuda-mps-control <<<"$1" 2>&1 | sed 's/^/#   /'
}

# nvtaskset; what it says of itself is a comment, in its place.
inside() {
	timeout -k 5 60 nvtaskset "$@" 2>"$work/errors"
	local status=$?
	sed 's/^/#   said: /' "$work/errors" >&2
	[ "$status" -eq 0 ] || echo "#   exit status $status: nvtaskset $*" >&2
	return "$status"
}

# The results of allocating 5 GiB, on each GPU that the program sees.
allocate() { # options and SET
	inside "$@" "$play" allocate 5120
}

finish() {
	ask_mps get_server_list
	for log in "$work"/log/*; do
		[ -f "$log" ] && note tail -n 60 "$log"
	done
	nvtaskset mps stop --force 2>&1 | sed 's/^/# /'
	[ -z "${limited:-}" ] || kill "$limited" "$free"
	rm -rf "$work"
}

# Waits until all of these files have this line.
wait_for() { # the line, and files
	local line=$1 tries=300 file
	shift
	for file in "$@"; do
		until grep -qx "$line" "$file" || [ "$((tries--))" -le 0 ]; do sleep 0.1; done
	done
}

exec 2>&1
trap finish EXIT
note nvidia-smi -L
note nvidia-smi --query-gpu=driver_version,memory.total,memory.used,compute_mode --format=csv
note command -v nvidia-cuda-mps-control
note nvtaskset --version
gpus=$(nvidia-smi -L | grep -c '^GPU')
all() { # a result for each GPU
	yes "$1" | head -n "$gpus" | xargs
}

# --- the limit, and a neighbour -------------------------------------------------------------------------------------

# Both keep what they have, until they get SIGUSR1.
steps=(allocate 1024 allocate 4096 allocate 1024 wait)
nvtaskset --memory 4G -G all -t 0-7 "$play" "${steps[@]}" >"$work/limited" 2>"$work/limited.errors" &
limited=$!
nvtaskset -G all -t 8-15 "$play" "${steps[@]}" >"$work/free" 2>"$work/free.errors" &
free=$!
wait_for waiting "$work/limited" "$work/free"
note cat "$work/limited.errors" "$work/free.errors"
is "1 GiB of 4 is there" "$(all 0)" "$(sed -n 1p "$work/limited")"
is "4 GiB more are not" "$(all 2)" "$(sed -n 2p "$work/limited")"
is "what fits is there all the same" "$(all 0)" "$(sed -n 3p "$work/limited")"
is "a neighbour, at the same time, has all of it" "$(all 0)/$(all 0)/$(all 0)/waiting" "$(paste -sd / "$work/free")"
# It ends one that does not wait.
kill -USR1 "$limited" "$free"
wait "$limited" && wait "$free"
is "both went on to their end" 0 $?
limited='' free=''

# --- what counts ----------------------------------------------------------------------------------------------------

got=$(inside --memory 1G -G all -t 0-7 "$memory" 1025 2>&1)
count=$((count + 1))
case $got in
*"cuMemAllocAsync 0"* | *"cuMemCreate 0"*)
	echo "not ok $count - no other way to allocate goes beyond the limit: $got"
	failed=1
	;;
*) echo "ok $count - no other way to allocate goes beyond the limit" ;;
esac

# --- whose number ---------------------------------------------------------------------------------------------------

if [ "$gpus" -gt 1 ]; then
	uuid=$(nvidia-smi -L | sed -n 's/^GPU 1:.*UUID: \(GPU-[^)]*\)).*/\1/p')
	is "only GPU 1 is limited" "0 2" "$(allocate --memory 4G -G 1 -t 0-7 | cut -d ' ' -f 1-2)"
	is "only GPU 0 is limited" "2 0" "$(allocate --memory 4G -G 0 -t 0-7 | cut -d ' ' -f 1-2)"
	is "the program sees GPU 1 only" 2 "$(CUDA_VISIBLE_DEVICES=1 allocate --memory 4G -G 0 -t 0-7)"
	is "the same by its UUID" 2 "$(CUDA_VISIBLE_DEVICES=$uuid allocate --memory 4G -G 0 -t 0-7)"
	is "the program sees them exchanged" "2 0" "$(CUDA_VISIBLE_DEVICES=1,0 allocate --memory 4G -G 0 -t 0-7)"
else
	echo "# one GPU only: whose number of a GPU the variable takes needs two"
fi
echo "1..$count"
exit $failed
