#!/usr/bin/env bats
# What README and docs say was measured is what bench/data says
# processes: no
# takes: long
# sanitizers: no

load helpers

@test "statistics, queries, and numbers in texts" {
	PYTHONDONTWRITEBYTECODE=1 run -0 python3 "$ROOT/tests/python/report.py"
}

@test "every number of README and docs is in the data" {
	run -0 python3 "$ROOT/bench/report/texts.py" --check
}

# C without comments and the breaks of lines, scripts without lines of comments.
without_comments() { # FILE, from standard input
	case $1 in
	*.[chS]) gcc -fpreprocessed -dD -E -P -x c - | tr -s '[:space:]' '\n' ;;
	*) sed '/^[[:space:]]*#[^!]/d' ;;
	esac
}

# Whether a commit changes more than comments in these sources.
changes() { # COMMIT PATH…
	local file commit=$1
	for file in $(git diff --name-only "$commit^" "$commit" -- "${@:2}"); do
		diff -q <(git show "$commit^:$file" 2>/dev/null | without_comments "$file") \
			<(git show "$commit:$file" 2>/dev/null | without_comments "$file") >/dev/null || return 0
	done
	return 1
}

# README's data measure where and when kernels run. A commit on the way of a launch needs new data, or says why the data
# hold, in a line "Data-hold: REASON".
@test "since README's data were measured, each change of a launch's way says why the data hold" {
	local measured commit
	local way=(src/driver src/gpu src/launch src/mps src/shim src/state/kernels src/time tools/nvtaskset/start)
	cd "$ROOT"
	measured=$(sed -n 's/^| \*H[0-9]*: \([0-9a-f]*\)[ ,].*/\1/p' README.md | head -n 1)
	git cat-file -e "$measured^{commit}" || skip "README's commit is not in this clone"
	for commit in $(git log --format=%h "$measured..HEAD" -- "${way[@]}"); do
		[ -n "$(git log -1 --format='%(trailers:key=Data-hold)' "$commit")" ] ||
			! changes "$commit" "${way[@]}" ||
			{ echo "$commit changes what README's data measure" && return 1; }
	done
}
