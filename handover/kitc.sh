#!/bin/bash
set -uo pipefail
eval "$(sed -n '/^prepare()/,/^}/p' build-kita/kita.sh)"
everything() {
	mkdir -p /tmp/tap
	cp build-kita/lib*.so* /usr/local/lib 2>/dev/null
	prepare
	export BENCH_HELD_PRIORITY_SECONDS=64 BENCH_HELD_COST_SECONDS=62 BENCH_HELD_QUOTA_SECONDS=4 BENCH_TIMEGRAPH_SECONDS=110
	BENCH_OUT=/tmp/results-23 BENCH_SECONDS=$((540 - SECONDS)) timeout -k 5 $((550 - SECONDS)) bench/run held_priority held_cost held_quota timegraph prediction 2>&1 | tee /tmp/tap/bench.txt
	dmesg 2>/dev/null | grep -iE 'xid' | tail -n 50 >/tmp/tap/dmesg.txt
	cat /tmp/tap/dmesg.txt
	tar -czf "$OUT/tap.tar.gz" -C /tmp tap results-23
}
everything 2>&1 | tee "$OUT/log.txt"
