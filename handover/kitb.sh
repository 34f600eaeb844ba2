#!/bin/bash
set -uo pipefail
eval "$(sed -n '/^prepare()/,/^}/p; /^BARE=/p; /^one()/,/^}/p; /^export -f one/p' build-kita/kita.sh)"
everything() {
	local name one
	mkdir -p /tmp/tap
	cp build-kita/lib*.so* /usr/local/lib 2>/dev/null
	prepare
	export CUDA_MPS_PIPE_DIRECTORY=/tmp/p-mps CUDA_MPS_LOG_DIRECTORY=/tmp/p-log; mkdir -p /tmp/p-mps /tmp/p-log
	nvidia-cuda-mps-control -d </dev/null
	for one in "none 0" "quota 0" "none 307" "quota 307"; do
		echo "== nested, MPS, $one"; timeout 15 "$BUILD/nvtaskset" --mps on all "$BUILD/probe-nested" $one 2>&1 | tee -a /tmp/tap/nested.txt | tail -30
	done
	echo quit | nvidia-cuda-mps-control
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
	for one in "none 0" "none 307"; do
		echo "== nested, alone, $one"; timeout 15 "$BUILD/nvtaskset" --mps off all "$BUILD/probe-nested" $one 2>&1 | tee -a /tmp/tap/nested.txt | tail -30
		echo "== nested, without us, $one"; timeout 15 "$BUILD/probe-nested" $one 2>&1 | tee -a /tmp/tap/nested.txt | tail -30
	done
	for name in held channels priority smctrl smctrl_alone smctrl_beside; do one 60 "$name"; done
	echo "== bench, at $SECONDS s"
	BENCH_OUT=/tmp/results-22 BENCH_SECONDS=$((568 - SECONDS)) timeout -k 5 $((578 - SECONDS)) bench/run slices priority preemption bursts weights decode_priority resnet 2>&1 | tee /tmp/tap/bench.txt
	dmesg 2>/dev/null | grep -iE 'xid|nvrm' | tail -n 50 >/tmp/tap/dmesg.txt
	tar -czf "$OUT/tap.tar.gz" -C /tmp tap results-22
}
everything 2>&1 | tee "$OUT/log.txt"
