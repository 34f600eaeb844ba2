#!/usr/bin/env bats
# No file's comments and lines get worse (tests/prose).
# sanitizers: no

load helpers

prepare() {
	needs git
	mkdir -p "$WORK"/{.ci,src,tests}
	cp "$ROOT/tests/prose" "$WORK/tests/"
	git init -q "$WORK"
	printf '/* It does what it says. */\nint x; /* one,\n*/\n' >"$WORK/src/old.c"
	git -C "$WORK" add .
	"$WORK/tests/prose" --lower
}

# Adds a file of these lines, and checks.
check() { # STATUS FILE LINE…
	printf '%s\n' "${@:3}" >"$WORK/$2"
	git -C "$WORK" add .
	run "-$1" "$WORK/tests/prose"
}

@test "what was there is allowed, and no more of it" {
	[ "$(cat "$WORK/.ci/prose.list")" = "src/old.c 3 0 0" ]
	check 0 src/old.c '/* It does what it says. */'
	check 1 src/old.c '/* It does what it says,' ' * whatever happens. */'
	[ "$output" = "src/old.c: 4 words for nouns in comments, 3 allowed: lines 1, 1, 1, 2" ]
	check 1 src/old.c 'int a; /* a size in bytes,' ' */' 'int b; /* the number of all places, */'
	[ "$output" = "src/old.c: 1 comments that run on, 0 allowed: lines 3" ]
	check 1 src/old.c "$(printf '\t%0113d;' 0)"
	[ "$output" = "src/old.c: 1 lines of more than 120 columns, 0 allowed: lines 1" ]
}

@test "a new file may have one such word in twenty, and paths of files count as none" {
	check 0 src/new.c "/* that $(printf 'word %.0s' {1..19})" "$(printf 'word %.0s' {1..19}) libcuda.so */"
	check 1 tests/new.bats '# It is such a test' 'true # which it was'
	[ "$output" = "tests/new.bats: 4 words for nouns in comments, 0 allowed: lines 1, 1, 2, 2" ]
}

@test "--lower takes away what a file no longer needs, and gives nothing" {
	check 0 src/old.c '/* It does what the name says. */'
	check 1 src/new.c '/* It is such a file. */'
	printf 'src/old.c 9 0 0\n' >>"$WORK/.ci/prose.list"
	"$WORK/tests/prose" --lower
	[ "$(cat "$WORK/.ci/prose.list")" = "src/old.c 2 0 0" ]
}
