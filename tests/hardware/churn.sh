#!/bin/bash
# The masks of waiting launches change all the time (churn.c), and the results of the programs are the same, bit by bit,
# as without changes. Both run side by side, as clients of MPS, in half of the GPU. `kills`: the results of a program are
# the same while programs with changes are killed in the second half. A line for each case.
#
#   BUILD=build CHURN_SECONDS=40 tests/hardware/churn.sh [CASE...]
#                                     after make all build/tests/hardware/churn/libcuda.so.1 build/tests/programs/play
#
# Needs PyTorch, timm, transformers and JAX. Six cases of 40 seconds, and of their start.
set -u
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
export CHURN_SECONDS=${CHURN_SECONDS:-40} PYTHONWARNINGS=ignore
with=$(mktemp -d) failed=0
trap 'rm -rf "$with"' EXIT
chmod 755 "$with" && mkdir "$with/lib"
cp "$BUILD/nvtaskset" "$with"
cp -P "$BUILD"/lib/* "$with/lib"
cp "$BUILD/tests/hardware/churn/libcuda.so.1" "$with/lib/"

run() { # DIRECTORY of nvtaskset, NAME of the output
	timeout $((CHURN_SECONDS + 60)) "$1/nvtaskset" -t 0-32 python3 tests/hardware/churn.py "$program" \
		>"$with/$2" 2>"$with/$2.errors"
}

# Until two programs have ended: starts programs with changes in the second half, and kills each after a while.
kill_beside() { # PIDs
	local kills=0 victim

	while kill -0 "$1" 2>/dev/null || kill -0 "$2" 2>/dev/null; do
		"$with/nvtaskset" -t 33-65 "$BUILD/tests/programs/play" launch wait >/dev/null 2>&1 &
		victim=$!
		sleep "0.$((RANDOM % 8 + 2))"
		kill -KILL "$victim" 2>/dev/null && kills=$((kills + 1))
		wait "$victim" 2>/dev/null
	done
	echo "$kills killed" >"$with/changes"
}

# The same digest after each number of steps in both; there must be some.
compare() { # CASE, WHAT
	local both different

	both=$(join <(sort "$with/before") <(sort "$with/after"))
	different=$(awk '$2 != $3' <<<"$both")
	if [ -z "$both" ] || [ -n "$different" ]; then
		echo "not ok $1: ${different:-no result}"
		tail -n 3 "$with"/*.errors | sed 's/^/#   /'
		failed=1
	else
		echo "ok $1: $(sort -n <<<"$both" | tail -n 1 | cut -d' ' -f1) steps, $2"
	fi
}

for case in "${@:-resnet llama jax generate graph kills}"; do
	for name in $case; do
		program=${name/kills/graph}
		run "$BUILD" before &
		one=$!
		second=$with
		[ "$name" = kills ] && second=$BUILD
		run "$second" after &
		two=$!
		[ "$name" = kills ] && kill_beside "$one" "$two"
		wait "$one" "$two"
		[ "$name" = kills ] || sed -n 's/^churn: //p' "$with/after.errors" >"$with/changes"
		compare "$name" "$(cat "$with/changes")"
	done
done
exit $failed
