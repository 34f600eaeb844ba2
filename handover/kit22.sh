#!/bin/bash
# The measurements of issue 22 on the device machine, in two calls (a third one for one experiment more).
#
#   here, once, in the tree that is measured, after `make build-check` (without a sanitizer):
#
#       /work/wt/kit22.sh pack TREE            makes TREE/build-kit22, which git ignores (`build-*`)
#
#   then, with the tool `run` (TREE must be the checkout that travels, /work/main; its carry: ["build-kit22"]):
#
#       bash build-kit22/kit22.sh first        timeout_s 290: slices priority preemption bursts
#       bash build-kit22/kit22.sh second       timeout_s 290: weights decode_priority resnet
#       bash build-kit22/kit22.sh NAME…        these experiments, each within the limit in its own head
#
#   and of what came back, here:
#
#       /work/wt/kit22.sh unpack TREE FILES_AT MACHINE    results into TREE/bench/data/MACHINE (h100), compressed
#
# In $OUT: results-WHAT.tar.gz (CSV, tables.md, pictures where there is matplotlib), log-WHAT.txt (what bench/run said), and
# look-WHAT.txt (whether priorities are in force there at all, what the kernel log says).
set -euo pipefail

pack() { # TREE
	local kit=$1/build-kit22 program
	rm -rf "$kit"
	mkdir -p "$kit/bench"
	cp -a "$1"/build/{nvtaskset,lib} "$kit"
	for program in task slice split startup; do cp "$1/build/bench/$program" "$kit/bench"; done
	cp -L "$(ldd "$1/build/nvtaskset" | awk '/libjansson/ {print $3}')" "$kit/libjansson.so.4"
	find "$kit" -name '*.[od]' -delete
	strip --strip-debug "$kit/nvtaskset" "$kit"/bench/*
	git -C "$1" describe --always --dirty >"$kit/commit"
	cp "$0" "$kit/kit22.sh"
	du -sh "$kit"
}

# Built on another machine: what it has may be too old for our binaries.
prepare() {
	BUILD=$PWD/build-kit22
	# bench/run takes the real GPU only where nothing says otherwise.
	unset NVTASKSET_DRIVER NVTASKSET_TOPOLOGY
	ldconfig -p | grep -q 'libjansson\.so\.4' || { cp "$BUILD/libjansson.so.4" /usr/local/lib && ldconfig; }
	if ! "$BUILD/nvtaskset" --version; then
		echo "kit22: built there anew" >&2
		make -s -j"$(nproc)" BUILD="$PWD/build" build/nvtaskset build/lib/libcuda.so.1 build/bench/{task,slice,split,startup}
		BUILD=$PWD/build
	fi
	BENCH_COMMIT=$(cat build-kit22/commit)
	export BUILD BENCH_COMMIT
}

# Before minutes are spent: are both programs' priorities in force, and what is said of it? Some 6 s.
look() {
	local one other side
	nvidia-smi --query-gpu=name,driver_version,clocks.sm,compute_mode --format=csv || true
	"$BUILD/nvtaskset" --priority 80 all "$BUILD/bench/task" compute --size 132 --rounds 308 --period 2000 --seconds 5 >/tmp/high &
	one=$!
	"$BUILD/nvtaskset" --priority 20 all "$BUILD/bench/task" compute --size 264 --rounds 7700 --in-flight --seconds 5 >/tmp/low &
	other=$!
	sleep 3
	"$BUILD/nvtaskset" -l || true
	"$BUILD/nvtaskset" -l --json || true
	wait $one $other || echo "kit22: a program failed"
	# The median and the slowest of the last thousand.
	for side in high low; do
		echo "$side: $(tail -n +2 "/tmp/$side" | tail -n 1000 | sort -n | awk '{us[NR] = $1} END {print "n", NR, "p50", us[int(NR / 2)], "p99", us[int(NR * .99)], "max", us[NR], "us"}')"
	done
}

measure() { # WHAT NAME…
	local what=$1 status=0
	prepare >"$OUT/look-$what.txt" 2>&1
	look >>"$OUT/look-$what.txt" 2>&1 || echo "kit22: the look failed" >>"$OUT/look-$what.txt"
	cat "$OUT/look-$what.txt"
	BENCH_OUT=/tmp/results-$what
	export BENCH_OUT
	# Before the call's own limit, so that what is there comes back.
	BENCH_SECONDS=${BENCH_SECONDS:-262} timeout --kill-after=5 "${KIT_SECONDS:-272}" bench/run "${@:2}" 2>&1 | tee "$OUT/log-$what.txt" ||
		status=$?
	{
		echo "--- the kernel log"
		dmesg 2>/dev/null | grep -iE 'xid|nvrm' | tail -n 50 || true
	} >>"$OUT/look-$what.txt"
	tar -czf "$OUT/results-$what.tar.gz" -C /tmp "results-$what"
	exit $status
}

unpack() { # TREE FILES_AT MACHINE
	local work file
	work=$(mktemp -d)
	find "$2" -name 'results-*.tar.gz' -exec tar -xzf {} -C "$work" \;
	for file in "$work"/results-*/*.csv; do
		gzip -9 -n -c "$file" >"$1/bench/data/$3/$(basename "$file").gz"
		echo "$1/bench/data/$3/$(basename "$file").gz: $(grep -vc '^#' "$file") lines"
	done
	cat "$work"/results-*/tables.md 2>/dev/null
	rm -rf "$work"
}

case ${1:-} in
pack | unpack) "$@" ;;
first) measure first slices priority preemption bursts ;;
second) measure second weights decode_priority resnet ;;
'') sed -n '2,/^set/s/^# \{0,1\}//p' "$0" ;;
*) measure "$(tr ' ' - <<<"$*")" "$@" ;;
esac
