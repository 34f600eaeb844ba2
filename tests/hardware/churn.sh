#!/bin/bash
# Programs whose launches change their masks all the time while the launches wait (churn.c) have the same results, bit by
# bit, as the
# same programs without changes. Both run side by side, as clients of one MPS, in one half of the GPU.
#
#   churn.sh [PROGRAM:STEPS…]
set -u
BUILD=${BUILD:-build}
here=$(dirname "$0") with=$(mktemp -d) failed=0
run() { # DIRECTORY of nvtaskset
	timeout 100 "$1/nvtaskset" -t 0-32 python3 "$here/churn.py" "$program" "$steps"
}

trap 'rm -rf "$with"' EXIT
mkdir "$with/lib"
cp "$BUILD/nvtaskset" "$with"
cp -P "$BUILD"/lib/* "$with/lib"
cp "$BUILD/tests/hardware/churn/libcuda.so.1" "$with/lib/"
for case in "${@:-resnet:120 llama:120 generate:12 graph:1500 jax:1500}"; do
	for program in $case; do
		steps=${program#*:} program=${program%:*}
		run "$BUILD" >"$with/before" 2>"$with/errors" &
		run "$with" >"$with/after" 2>"$with/changes"
		wait $!
		sed 's/^/without: /' "$with/before"
		sed 's/^/with:    /' "$with/after"
		grep churn: "$with/changes" || tail -3 "$with/changes"
		if [ ! -s "$with/before" ] || ! cmp -s <(sed 's/.*: //' "$with/before") <(sed 's/.*: //' "$with/after"); then
			echo "$program: DIFFERENT"
			failed=1
		fi
	done
done
exit $failed
