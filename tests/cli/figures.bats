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

# C without comments, scripts without lines of comments.
without_comments() { # FILE, from standard input
	case $1 in
	*.[chS]) gcc -fpreprocessed -dD -E -P -x c - ;;
	*) sed '/^[[:space:]]*#[^!]/d' ;;
	esac
}

# README's data measure where and when kernels run: sources that no launch passes may change.
@test "since README's data were measured, the way of a launch has changed in comments only" {
	local commit file
	cd "$ROOT"
	commit=$(sed -n 's/^| \*H[0-9]*: \([0-9a-f]*\) .*/\1/p' README.md | head -n 1)
	git cat-file -e "$commit^{commit}" || skip "README's commit is not in this clone"
	for file in $(git diff --name-only "$commit" -- \
		src/driver src/gpu src/launch src/mps src/shim src/state/kernels src/time tools/nvtaskset/start); do
		diff <(git show "$commit:$file" | without_comments "$file") <(without_comments "$file" <"$file")
	done
}
