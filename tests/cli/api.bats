#!/usr/bin/env bats
# What other programs use: nvtaskset.h, libnvtaskset and the Python module, as they are installed.
# shellcheck disable=SC2046 # several words are meant, where there are no quotes
# needs: bench/change
# sanitizers: address thread

load helpers

install_api() {
	in_source install-api PREFIX="$WORK/usr"
	export PKG_CONFIG_PATH=$WORK/usr/lib/pkgconfig
}

# If the build is sanitized, the program needs the sanitizer's run-time library, too.
compile() { # OUTPUT SOURCE FLAG...
	local sanitizer=
	! is_sanitized asan || sanitizer=-fsanitize=address,undefined
	! is_sanitized tsan || sanitizer=-fsanitize=thread
	${CC:-cc} -Wall -Wextra -Werror $sanitizer -o "$@"
}

@test "the header compiles as C11 without extensions, and as C++" {
	echo '#include <nvtaskset.h>' >"$WORK/include.c"
	compile "$WORK/include.o" "$WORK/include.c" -c -std=c11 -pedantic -D_POSIX_C_SOURCE=200809L -I"$ROOT/include"
	needs "${CXX:-c++}"
	"${CXX:-c++}" -x c++ -Wall -Wextra -Werror -pedantic -I"$ROOT/include" -fsyntax-only "$WORK/include.c"
}

@test "pkg-config knows the version, and the directory of a staged package" {
	in_source install-api PREFIX=/usr DESTDIR="$WORK/stage"
	export PKG_CONFIG_SYSROOT_DIR=$WORK/stage PKG_CONFIG_PATH=$WORK/stage/usr/lib/pkgconfig
	export PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
	[ "nvtaskset $(pkg-config --modversion nvtaskset)" = "$(nvtaskset --version)" ]
	compile "$WORK/scheduler" "$ROOT/examples/scheduler.c" $(pkg-config --cflags --libs nvtaskset)
	in_source uninstall-api PREFIX=/usr DESTDIR="$WORK/stage"
	[ -z "$(find "$WORK/stage" -type f -o -type l)" ]
}

@test "the example gives programs the GPU in turns" {
	install_api
	compile "$WORK/scheduler" "$ROOT/examples/scheduler.c" $(pkg-config --cflags --libs nvtaskset)
	LD_LIBRARY_PATH=$WORK/usr/lib
	export LD_LIBRARY_PATH
	start_program -t 0-7
	first=$PROGRAM
	start_as second nvtaskset --mps off -t 5 "$BUILD/demo/where" 60
	"$WORK/scheduler" 1 3 "$first" "$second" >"$WORK/turns"
	printf '%s\n' "$first: 0,2-65" "$second: 1-65" "$first: 0,2-65" | diff - "$WORK/turns"
	[ "$(nvtaskset -tp "$first")" = "pid $first's current TPC list: 0-7" ]
	"$WORK/scheduler" 60000 2 "$first" "$second" >"$WORK/turns" 3>&- &
	scheduler=$!
	runs_on 0,2-65
	refuses "pid $scheduler: has not loaded CUDA" nvtaskset -tp 0-3 "$scheduler"
	kill "$second"
	runs_on 0-65
	stop_program
	wait "$scheduler"
	printf '%s\n' "$first: 0,2-65" "$second: gone" "$first: 0-65" "$first: gone" | diff - "$WORK/turns"
}

@test "the example, linked with the archive" {
	install_api
	compile "$WORK/scheduler" "$ROOT/examples/scheduler.c" $(pkg-config --cflags nvtaskset) "$WORK/usr/lib/libnvtaskset.a"
	[ "$(readelf -d "$WORK/scheduler" | grep -c libnvtaskset)" -eq 0 ]
	run -1 "$WORK/scheduler" 1 1 $$
	[ "$output" = "scheduler: pid $$: has not loaded CUDA" ]
}

@test "the Python module" {
	! is_sanitized || skip "a sanitizer's run-time library must come with python"
	install_api
	start_program -t 0-7
	export PYTHONPATH=$WORK/usr/share/nvtaskset/python:$ROOT/tests/python PYTHONDONTWRITEBYTECODE=1 PROGRAM BUILD
	run -0 python3 -m unittest api
	[[ "$output" == *"Ran 34 tests"* ]]
	runs_on "$(nvtaskset -tp "$PROGRAM" | sed -n "1s/.*: //p")"
}

@test "a partition changes while a program runs: the bench really does what it measures" {
	run -0 "$BUILD/bench/change" 100
	[ "$(grep -cE '^[0-9]+\.[0-9]$' <<<"$output")" -eq 100 ]
	run -1 "$BUILD/bench/change" 0
}

@test "the man page and the Python module have the header's codes" {
	grep -oE 'NVTASKSET_ERROR_[A-Z_]+ = [0-9]+' "$ROOT/include/nvtaskset.h" >"$WORK/codes"
	[ "$(wc -l <"$WORK/codes")" -ge 15 ]
	in_source "$BUILD/man/nvtaskset.3"
	sed -n 's/^\\fB\(NVTASKSET_ERROR_[A-Z_]*\)\\fR (\([0-9]*\))$/\1 = \2/p' "$BUILD/man/nvtaskset.3" | diff "$WORK/codes" -
	PYTHONPATH=$ROOT/tools/python PYTHONDONTWRITEBYTECODE=1 python3 -c 'import nvtaskset
for code in nvtaskset.ErrorCode:
    print(f"NVTASKSET_ERROR_{code.name} = {code.value:d}")' | diff "$WORK/codes" -
}
