#!/bin/bash
# All of tests/gpu, tests/hardware, and the looks of kit22/kit23, on the device. pack TREE here; there: bash build-kita/kita.sh
set -uo pipefail
pack() {
	local kit=$1/build-kita name
	rm -rf "$kit"; mkdir -p "$kit"/{bench,tests/gpu,tests/programs,demo,deps}
	cp -a "$1"/build/{nvtaskset,lib,api} "$kit"
	for name in task slice split startup spent functions quota_cost quota_start aside; do cp "$1/build/bench/$name" "$kit/bench"; done
	for name in "$1"/tests/gpu/*.c; do cp "$1/build/tests/gpu/$(basename "$name" .c)" "$kit/tests/gpu"; done
	cp -a "$1"/build/tests/gpu/*.so "$kit/tests/gpu" 2>/dev/null
	find "$1/build/tests/programs" -maxdepth 1 -type f ! -name '*.[od]' -exec cp {} "$kit/tests/programs" \;
	cp "$1/build/demo/where" "$kit/demo"
	cp /usr/include/cmocka*.h /usr/include/jansson*.h "$kit/deps"
	cp -L /usr/lib/x86_64-linux-gnu/libcmocka.so.0 /usr/lib/x86_64-linux-gnu/libjansson.so.4 "$kit/deps"
	cp -L "$1"/build/libsmctrl.so.0 "$kit"; cp "$1/build/probe-nested" "$kit"; cp /work/wt/kitb.sh /work/wt/kitc.sh "$kit" 2>/dev/null
	find "$kit" -name '*.[od]' -delete
	find "$kit" -type f -perm -u+x ! -name '*.sh' -exec strip --strip-debug {} \; 2>/dev/null
	git -C "$1" describe --always --dirty >"$kit/commit"
	cp "$0" /work/wt/kit22.sh /work/wt/kit23.sh "$kit"
	du -sh "$kit"
}
prepare() {
	export BUILD=$PWD/build-kita BENCH_COMMIT
	BENCH_COMMIT=$(cat "$BUILD/commit")
	unset NVTASKSET_DRIVER NVTASKSET_TOPOLOGY
	cp "$BUILD"/deps/*.h /usr/local/include; cp "$BUILD"/deps/*.so.* /usr/local/lib
	ln -sf libcmocka.so.0 /usr/local/lib/libcmocka.so; ln -sf libjansson.so.4 /usr/local/lib/libjansson.so; ldconfig
	export PATH=$PATH:/usr/local/nvidia/bin
	"$BUILD/nvtaskset" --version
	nvidia-smi --query-gpu=name,driver_version,clocks.sm,compute_mode,memory.total --format=csv
	uname -r; date
}
BARE="attach driver_behaviour driver_toggles hangs releases tool_first smctrl_alone smctrl_beside channels"
one() { # LIMIT NAME
	local begin=$SECONDS status=0
	TEST_SECONDS=$1 BARE_TESTS="$BARE" timeout -k 5 $(($1 + 5)) tests/run "$BUILD/tests/gpu/$2" >"/tmp/tap/$2.txt" 2>&1 || status=$?
	echo "$2: rc $status, $(grep -c '^ok' "/tmp/tap/$2.txt") ok, $(grep -ci '^ok.*# skip' "/tmp/tap/$2.txt") of them skipped, $(grep -c '^not ok' "/tmp/tap/$2.txt") not ok, $((SECONDS - begin)) s"
	[ $status = 0 ] || sed -n '/^not ok/p;/error/p' "/tmp/tap/$2.txt" | head -12
	return $status
}
export -f one; export BARE
serial="priority quota channels ranks times turnstile held held_beside stepping"
everything() {
	local name rest=() failed=()
	mkdir -p /tmp/tap
	prepare
	(make -s -j6 BUILD="$PWD/build-there" build-there/tests/hardware/{cupti,cupti_first,injected.so,where.so} >/tmp/tap/tools-build.txt 2>&1; echo "tools built: $?" >>/tmp/tap/tools-build.txt) &
	local building=$!
	echo "== look 22"; (eval "$(sed -n '/^look()/,/^}/p' build-kita/kit22.sh)"; look) 2>&1 | tee /tmp/tap/look22.txt
	echo "== look 23"; (eval "$(sed -n '/^look()/,/^}/p' build-kita/kit23.sh)"; look) 2>&1 | tee /tmp/tap/look23.txt
	echo "== serial, at $SECONDS s"
	for name in $serial; do one 60 "$name" || failed+=("$name"); done
	echo "== side by side, at $SECONDS s"
	for name in tests/gpu/*.c; do
		name=$(basename "$name" .c)
		case " $serial soak " in *" $name "*) ;; *) rest+=("$name") ;; esac
	done
	printf '%s\n' "${rest[@]}" | xargs -P 4 -I{} bash -c 'one 90 {} || echo {} >>/tmp/tap/failed'
	echo "== again, alone, at $SECONDS s"
	for name in $(cat /tmp/tap/failed 2>/dev/null); do [ $SECONDS -gt 330 ] || one 40 "$name"; done
	SOAK_SECONDS=8 one 30 soak
	echo "== memory, at $SECONDS s"
	timeout -k 5 80 tests/hardware/memory.sh >/tmp/tap/memory.txt 2>&1; grep -E "^(not )?ok" /tmp/tap/memory.txt
	wait $building; cat /tmp/tap/tools-build.txt | tail -3
	mkdir -p build-kita/tests/hardware; cp build-there/tests/hardware/{cupti,cupti_first,injected.so,where.so} build-kita/tests/hardware
	echo "== tools, at $SECONDS s"
	timeout -k 5 100 tests/hardware/tools.sh 2>/tmp/tap/tools.err | tee /tmp/tap/tools.txt
	echo "== quick, at $SECONDS s"
	BENCH_OUT=/tmp/tap/quick BENCH_QUICK=1 BENCH_SECONDS=$((530 - SECONDS)) timeout -k 5 $((545 - SECONDS)) bench/run held_priority timegraph held_quota held_cost prediction quota_cost 2>&1 | tee /tmp/tap/quick.txt
	dmesg 2>/dev/null | grep -iE 'xid|nvrm' | tail -n 50 >/tmp/tap/dmesg.txt
	cat /tmp/tap/dmesg.txt | tail -5
	tar -czf "$OUT/tap.tar.gz" -C /tmp tap
}
case ${1:-} in pack) pack "$2" ;; *) everything 2>&1 | tee "$OUT/log.txt" ;; esac
