#!/bin/bash
# nvtaskset measure, while the kernel driver's answer is withheld: mask bit and virtual GPC of each TPC are those of the
# answer, and launches keep to the measured TPCs. TAP on standard output.
#
#   BUILD=build tests/hardware/measure.sh      after make all build/demo/where build/tests/hardware/withhold.so
#
# On the simulated GPU, whose answer is a file (also in tests/cli/measure.bats):
#   SIM_TOPOLOGY=share/topologies/h200.txt NVTASKSET_DRIVER=$PWD/build/sim/libcuda.so.1 tests/hardware/measure.sh
# shellcheck disable=SC2317 # called by name
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset NVTASKSET_TOPOLOGY CUDA_VISIBLE_DEVICES
count=0 failed=0

told() { # COMMAND…
	XDG_CACHE_HOME=$work/told env ${SIM_TOPOLOGY:+NVTASKSET_TOPOLOGY="$SIM_TOPOLOGY"} "$@"
}

withholding=(LD_PRELOAD="$BUILD/tests/hardware/withhold.so")
[ -z "${SIM_TOPOLOGY:-}" ] || withholding=()
withheld() { # COMMAND…
	XDG_CACHE_HOME=$work/withheld env "${withholding[@]}" "$@"
}

ok() { # WHAT COMMAND…
	local verdict=ok
	count=$((count + 1))
	"${@:2}" || { verdict="not ok" failed=1; tail -n 5 "$work/output" | sed 's/^/#   /'; }
	echo "$verdict $count - $1"
}

measures() { # told | withheld
	"$1" "$BUILD/nvtaskset" measure >"$work/output" 2>&1
}

is_refused() { ! withheld "$BUILD/nvtaskset" --mps off -t 0 true >"$work/output" 2>&1; }
is_confirmed() { grep -q 'of each are as' "$work/output"; }
is_alone() { ! is_confirmed; }

# Number, virtual GPC and mask bit of each TPC, of all GPUs.
kept_bits() { awk 'FNR == 1 { print FILENAME } $1 == "tpc" { print $2, $4, $5 }' nvtaskset/GPU-*.txt; }
is_same() {
	(cd "$work/told" && kept_bits) >"$work/bits"
	[ -s "$work/bits" ] && (cd "$work/withheld" && kept_bits) | diff "$work/bits" - >"$work/output"
}

keeps_to() { # SET
	withheld "$BUILD/nvtaskset" --mps off -t "$1" "$BUILD/demo/where" 1 >"$work/output" 2>&1 &&
		grep -q "TPCs\? $1 " "$work/output"
}

ok "the answer is withheld: nothing is known of the GPU" is_refused
ok "it is measured without the answer" measures withheld
ok "the measurement was not compared with any answer" is_alone
ok "it is measured with the answer" measures told
ok "the answer agrees" is_confirmed
ok "bits and virtual GPCs are the same without the answer" is_same
for set in 0-1 8-15; do
	ok "launches keep to measured TPCs: $set" keeps_to $set
done
echo "1..$count"
exit $failed
