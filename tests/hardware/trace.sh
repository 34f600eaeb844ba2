#!/bin/bash
# nvtaskset trace beside what kernels saw on %globaltimer, beside CUPTI's records, and at 50 000 launches a second: TAP
# on standard output. 90 seconds.
#
#   BUILD=build tests/hardware/trace.sh      after make all build/bench/duty build/bench/task
#
# The simulated GPU has no CUPTI: that test is left out. A launch waits there for the kernel in front, so no begin is
# compared; clocks are compared when the machine has time: ends may be off by 100 us. There are 2000 launches a second.
#   NVTASKSET_TOPOLOGY=share/topologies/h200.txt NVTASKSET_DRIVER=$PWD/build/sim/libcuda.so.1 tests/hardware/trace.sh
# shellcheck disable=SC2317 # called by name
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
PATH=$BUILD:$BUILD/bench:$PATH
work=$(mktemp -d)
# shellcheck disable=SC2046 # many words
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
export CUDA_DEVICE_ORDER=PCI_BUS_ID
count=0 failed=0
a_ms=50 # launches
bounds="1 3" # of ends and begins, in us
[ -z "${NVTASKSET_DRIVER:-}" ] || a_ms=2 bounds=100

ok() { # WHAT COMMAND…
	local verdict=ok
	count=$((count + 1))
	"${@:2}" >"$work/output" 2>&1 || verdict="not ok" failed=1
	sed 's/^/#   /' "$work/output"
	echo "$verdict $count - $1"
}

# Waits a minute.
await() { # COMMAND…
	local tries=1200
	until "$@"; do
		[ "$((tries--))" -gt 0 ] || { cat "$work/errors" "$work/recorder"; return 1; }
		sleep 0.05
	done
}
says() { grep -q "^$1" "$work/said"; }

# A program of bench/support/conversation.h, up to "ready", and from there to the end.
begin() { # COMMAND…
	rm -f "$work/said"
	nvtaskset --mps off all "$@" >"$work/said" 2>"$work/errors" &
	program=$!
	await says ready
}
let_work() { # SECONDS
	kill -USR1 "$program" && sleep "$1" && kill -USR2 "$program" && await says rest
}

record() { # SECONDS COMMAND…
	rm -f "$work/trace"
	begin "${@:2}" || return
	nvtaskset trace -o "$work/trace" "$program" 2>"$work/recorder" &
	local recorder=$!
	await test -s "$work/trace" && let_work "$1"
	local result=$?
	kill -INT "$recorder"
	wait "$recorder" || result=1
	kill -TERM "$program"
	wait "$program"
	tail -n 1 "$work/recorder"
	return "$result"
}

compare() { # WHAT…
	python3 tests/hardware/trace.py "$@"
}

# Four kernels of 1 ms in each 10 ms: three of them begin behind another kernel.
clocks_agree() {
	# shellcheck disable=SC2086 # two words
	record 5 duty 40 10 4 && compare clocks "$work/trace" "$work/said" $bounds
}

# PyTorch's profiler takes its records from CUPTI.
cupti_agrees() {
	record 4 python3 tests/hardware/trace.py work &&
		begin python3 tests/hardware/trace.py work "$work/cupti" && let_work 1 && kill -TERM "$program" &&
		wait "$program" &&
		compare names "$work/trace" "$work/cupti"
}

none_is_lost() {
	record 10 task compute --size 1 --rounds 1 --repeat "$a_ms" --period 1000 --at-rest &&
		compare number "$work/trace" $(($(grep -c '^[0-9.]*$' "$work/said") * a_ms))
}

ok "kernels begin and end as they saw on %globaltimer" clocks_agree
if [ -z "${NVTASKSET_DRIVER:-}" ]; then
	ok "names, grids, numbers and mean lengths are those of CUPTI's records" cupti_agrees
else
	ok "names, grids, numbers and mean lengths are those of CUPTI's records # SKIP no CUPTI here" true
fi
ok "of $a_ms 000 plain launches a second for 10 s, each is in the trace or counted" none_is_lost
echo "1..$count"
exit $failed
