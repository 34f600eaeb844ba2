#!/bin/bash
# Real profilers and debuggers, each on a program in a partition of 8 TPCs: TAP on standard output, their output on
# standard error. Needs a GPU and the CUDA toolkit. Most run without MPS, since SM ids mean nothing under MPS.
#
#   make check-tools
# shellcheck disable=SC2317 # functions that check calls
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
export BUILD
PATH=$BUILD:$PATH:/usr/local/cuda/bin
programs=$BUILD/tests/hardware
where=$BUILD/demo/where
output=$(mktemp)
trap 'rm -f "$output"' EXIT
count=0 failed=0

inside() {
	nvtaskset --mps off -t 0-7 "$@"
}

# Runs the command and reports whether it succeeded; if not, also its output.
check() { # what, and the command
	local what=$1 verdict=ok
	shift
	count=$((count + 1))
	timeout 300 bash -c '"$@"' check "$@" >"$output" 2>&1 || verdict="not ok"
	[ "$verdict" = ok ] || { failed=1; sed 's/^/    /' "$output" >&2; }
	echo "$verdict $count - $what"
}

# One that is known not to end, until the issue is resolved; that it succeeds is then a failure, so that this mark goes.
hangs_yet() { # the issue, what, and the command
	local issue=$1 what=$2 status=0
	shift 2
	count=$((count + 1))
	timeout 60 "$@" >"$output" 2>&1 || status=$?
	[ "$status" = 124 ] || { failed=1; issue="$issue, but it ended with status $status"; }
	echo "not ok $count - $what # TODO $issue"
}

# The same, if the tool is installed.
check_tool() { # the tool, what, and the command
	local tool=$1
	shift
	if command -v "$tool" >/dev/null; then
		check "$@"
	else
		count=$((count + 1))
		echo "ok $count - $1 # SKIP no $tool here"
	fi
}

# Runs the command, which starts `where`: all kernels must run in the partition, and the tool's output must match the
# pattern.
stays() { # a pattern, and the command
	local says=$1 log status=0
	shift
	log=$("$@" 2>&1) || status=$?
	echo "$log"
	[ "$status" -eq 0 ] && grep -q 'on TPCs 0-7 (' <<<"$log" && ! grep 'on TPCs' <<<"$log" | grep -vq 'on TPCs 0-7 (' &&
		grep -Eq "$says" <<<"$log"
}

export -f inside stays
torch=$(python3 -c 'import torch' 2>/dev/null && echo python3 || echo torch)

check "CUPTI: callbacks and records, subscribed again and again" nvtaskset --mps off all "$programs/cupti"
check "CUPTI before us" "$programs/cupti_first"
check "CUPTI, injected by the driver" stays 'injected: heard [1-9]' inside env CUDA_INJECTION64_PATH="$programs/injected.so" "$where" 2
check "CUPTI, injected by LD_PRELOAD" stays 'injected: heard [1-9]' \
	inside env INJECTED_EARLY=1 LD_PRELOAD="$programs/injected.so" "$where" 2
check_tool "$torch" "torch.profiler" inside python3 tests/hardware/torch_profiler.py "$programs/where.so" 0-7
# Launches wait there for timestamps which the profiler has taken, for 100 ms each: the thousand take 100 s.
if [ "$torch" = python3 ]; then
	for time in --priority=60 --quota=90%; do
		hangs_yet "issue 34" "torch.profiler under MPS, with $time" \
			nvtaskset --mps auto "$time" all python3 tests/hardware/torch_launches.py
	done
fi
check_tool ncu "Nsight Compute, inside" stays '==PROF== Profiling "where"' inside ncu --launch-count 3 "$where" 2
check_tool ncu "Nsight Compute, around" stays '==PROF== Profiling "where"' \
	ncu --target-processes all --launch-count 3 "$BUILD/nvtaskset" --mps off -t 0-7 "$where" 2
# By this we know that it is there (src/launch/account/account.c).
set_by_ncu() {
	ncu --target-processes all env 2>&1 | grep '^NV_COMPUTE_PROFILER_PERFWORKS_DIR='
}
export -f set_by_ncu
check_tool ncu "Nsight Compute sets the variable that tells of it" set_by_ncu
check_tool nsys "Nsight Systems, inside" stays 'Generated|generated' inside nsys profile -t cuda -o "$output.nsys" -f true "$where" 2
rm -f "$output".nsys*
check_tool compute-sanitizer "compute-sanitizer, inside" stays 'ERROR SUMMARY: 0 errors' inside compute-sanitizer "$where" 2
check_tool compute-sanitizer "compute-sanitizer, around" stays 'ERROR SUMMARY: 0 errors' \
	compute-sanitizer --target-processes all "$BUILD/nvtaskset" --mps off -t 0-7 "$where" 2
check_tool cuda-gdb "cuda-gdb, inside" stays 'exited normally' inside cuda-gdb -batch -ex run --args "$where" 2
check_tool cuda-gdb "cuda-gdb, around" stays 'exited normally' \
	cuda-gdb -batch -ex run --args "$BUILD/nvtaskset" --mps off -t 0-7 "$where" 2
echo "1..$count"
exit "$failed"
