#!/usr/bin/env bats
# make install and uninstall

load helpers

in_source() {
	make -s -C "$ROOT" BUILD="$BUILD" "$@" 3>&-
}

@test "what is installed runs from its new place" {
	in_source install PREFIX="$WORK/usr"
	PATH=$WORK/usr/bin:$PATH run nvtaskset --mps off -t 3 where 1
	[ "$status" -eq 0 ]
	[[ "$output" == *"on TPCs 3 ("* ]]
}

@test "install and uninstall leave DESTDIR empty" {
	in_source install DESTDIR="$WORK/stage" PREFIX=/usr
	[ -x "$WORK/stage/usr/bin/nvtaskset" ]
	[ -e "$WORK/stage/usr/lib/nvtaskset/libcuda.so.1" ]
	[ -e "$WORK/stage/usr/share/man/man1/nvtaskset.1" ]
	[ -e "$WORK/stage/usr/share/doc/nvtaskset/json.md" ]
	mkdir -p "$WORK/stage"
	in_source uninstall DESTDIR="$WORK/stage" PREFIX=/usr
	[ -z "$(find "$WORK/stage" -type f -o -type l 2>/dev/null)" ]
}

@test "the man page, the help and the options agree" {
	nvtaskset --help | grep -oE -- '--[a-z-]+' | sort -u >"$WORK/help"
	sed 's/\\-/-/g' "$ROOT/tools/man/nvtaskset.1" | grep -oE -- '--[a-z-]+' | sort -u >"$WORK/man"
	sed -n '/^static const struct option /,/^};/s/.*{"\([a-z-]*\)".*/--\1/p' \
		"$ROOT/tools/nvtaskset/options.c" | sort -u >"$WORK/options"
	diff "$WORK/help" "$WORK/man"
	diff "$WORK/help" "$WORK/options"
}

@test "the version is the same everywhere" {
	version=$(nvtaskset --version)
	grep -q "\"$version\"" "$ROOT/tools/man/nvtaskset.1"
}
