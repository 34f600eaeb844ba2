#!/bin/bash
# Everything at once on a GPU, for SOAK_SECONDS (480): TAP on standard output, with what was seen as comments. A mixed load whose
# partition changes and whose editors are killed (tests/gpu/soak.c), priorities and a quota in turns, a lender and a borrower
# under MPS that is killed again and again, programs that are attached to, top, -l and metrics. Nothing may be lost, stopped,
# outside its partition, or in the kernel's log.
#
#   BUILD=build tests/hardware/soak.sh      after make build-check; on a machine without compilers with these files of BUILD:
#                                           nvtaskset lib tests/gpu/soak demo/where
# shellcheck disable=SC2317 # finish is called by a trap
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
PATH=$BUILD:$BUILD/demo:$PATH:/usr/local/nvidia/bin
seconds=${SOAK_SECONDS:-480}
work=$(mktemp -d)
export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/log XDG_CACHE_HOME=$work/cache XDG_RUNTIME_DIR=$work
unset CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
mkdir "$work/mps" "$work/log" "$work/cache"
chmod 755 "$work"
count=0 failed=0

is() { # what, expected, got
	local verdict=ok
	count=$((count + 1))
	[ "$2" = "$3" ] || { verdict="not ok" failed=1 && echo "#   expected '$2', got '$3'"; }
	echo "$verdict $count - $1"
}

finish() {
	nvtaskset mps stop --force 2>&1 | sed 's/^/# /'
	rm -rf "$work"
}
trap finish EXIT

kernel_log() {
	dmesg 2>/dev/null | grep -c 'NVRM\|nvidia\|segfault\|general protection' || true
}

over() {
	[ "$SECONDS" -ge "$seconds" ]
}

# A program for the whole time. Its output is NAME.
lasts() { # NAME, options and SET
	nvtaskset "${@:2}" timeout -s INT -k 20 "$seconds" where 100000 busy >"$work/$1" 2>"$work/$1.errors" &
}

# Each of these goes on until time is over, and counts how often it went wrong in NAME.wrong, and how often not in NAME.right.
again() { # NAME FUNCTION
	local right=0 wrong=0
	until over; do
		if "$2" >"$work/$1.said" 2>&1; then
			right=$((right + 1))
		else
			wrong=$((wrong + 1)) && sleep 0.2
			sed "s/^/#   $1: /" "$work/$1.said" | tail -n 20 >>"$work/wrongs"
		fi
	done
	echo "$right" >"$work/$1.right"
	echo "$wrong" >"$work/$1.wrong"
}

attaches() {
	local pid status=1 file=$work/attached
	: >"$file"
	where 60 >"$file" &
	pid=$!
	for _ in {1..200}; do [ ! -s "$file" ] || break && sleep 0.1; done
	nvtaskset -tp 3 --attach "$pid" && for _ in {1..100}; do
		grep -q ' on TPCs 3 ' "$file" && status=0 && break
		sleep 0.1
	done
	kill "$pid"
	wait "$pid"
	return $status
}

dies_borrowing() {
	local status=0
	timeout -s KILL "$((1 + RANDOM % 4)).$((RANDOM % 10))" nvtaskset --mps auto --borrow -t 4-5 where 60 busy >"$work/borrower" || status=$?
	[ "$status" = 137 ] && ! grep ' on TPCs ' "$work/borrower" | grep -vqE ' TPCs [0-9,-]+ '
}

watches() {
	local status=0 words
	for words in "top --once --delay 0.3" "-l --busy --json" metrics -T; do
		# shellcheck disable=SC2086 # words
		nvtaskset $words >"$work/watched" 2>&1 || { status=1 && echo "nvtaskset $words:" && cat "$work/watched"; }
	done
	return $status
}

# No launch of the programs that last was outside; the ends of all were counted.
outside() {
	nvtaskset -l | awk '$12 == "where" || / where / { outside += $11 } END { print outside + 0 }'
}

lines=$(kernel_log)
SECONDS=0
SOAK_SECONDS=$((seconds - 40 > 5 ? seconds - 40 : 5)) nvtaskset --mps off all "$BUILD/tests/gpu/soak" >"$work/soak" 2>&1 &
soak=$!
lasts first --mps off --priority 80 -t 8-15
lasts second --mps off --priority 20 -t 8-15
lasts third --mps off --quota 20% -t 6-7
lasts lender --mps auto --lend -t 0-5
again attach attaches &
again borrow dies_borrowing &
again watch watches &
sleep "$((seconds - 15 > 5 ? seconds - 15 : 5))"
is "no kernel was launched outside" 0 "$(outside)"
wait "$soak"
is "the mixed load lost nothing (tests/gpu/soak)" 0 $?
sed 's/^/#   /' "$work/soak"
wait
is "nothing went wrong while attaching, borrowing, watching" "0 0 0" "$(cat "$work"/{attach,borrow,watch}.wrong | xargs)"
echo "# times: attached $(cat "$work/attach.right"), borrowers killed $(cat "$work/borrow.right"), watched $(cat "$work/watch.right")"
for name in first second third lender; do
	is "$name ran to its end inside" 0 "$(grep -c 'error\|failed' "$work/$name" "$work/$name.errors" | awk -F: '{ n += $2 } END { print n }')"
	sed "s/^/#   $name: /" "$work/$name.errors"
	echo "#   $name: $(tail -n 1 "$work/$name")"
done
is "a program runs afterwards" 1 "$(nvtaskset --mps off -t 3 where 2 | grep -c ' on TPCs 3 ')"
is "no line in the kernel's log" "$lines" "$(kernel_log)"
head -n 100 "$work/wrongs" 2>/dev/null
echo "1..$count"
exit $failed
