#!/bin/bash
# Programs whose launches change their masks all the time while they wait (churn.c) have the results that they have without, bit by bit.
# Each runs beside the one without, as clients of one MPS, in a half of the GPU.
#
#   churn.sh [PROGRAM:STEPS…]
set -u
BUILD=${BUILD:-build}
here=$(dirname "$0") with=$(mktemp -d) failed=0
trap 'rm -rf "$with"' EXIT
mkdir "$with/lib"
cp "$BUILD/nvtaskset" "$with"
cp -P "$BUILD"/lib/* "$with/lib"
cp "$BUILD/tests/hardware/churn/libcuda.so.1" "$with/lib/"
for case in "${@:-resnet:120 llama:120 generate:12 graph:1500 jax:1500}"; do
	for program in $case; do
		steps=${program#*:} program=${program%:*}
		timeout 100 "$BUILD/nvtaskset" -t 0-32 python3 "$here/churn.py" "$program" "$steps" >"$with/before" 2>"$with/errors" &
		timeout 100 "$with/nvtaskset" -t 0-32 python3 "$here/churn.py" "$program" "$steps" >"$with/after" 2>"$with/changes"
		wait $!
		sed 's/^/without: /' "$with/before"
		sed 's/^/with:    /' "$with/after"
		grep churn: "$with/changes" || tail -3 "$with/changes"
		if [ ! -s "$with/before" ] || [ "$(sed 's/.*: //' "$with/before")" != "$(sed 's/.*: //' "$with/after")" ]; then
			echo "$program: DIFFERENT"
			failed=1
		fi
	done
done
exit $failed
