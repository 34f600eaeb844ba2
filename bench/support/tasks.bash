# Programs under a mechanism: in the foreground, or in the background, each with a name. In the background they are at rest until
# they are to work (turns.bash; support/conversation.h). A program that runs unrestricted under nvtaskset has failed, since its
# results would be wrong.

# Passes on the program's output and the reason of a failure, which the caller notes.
measure_under() { # MECHANISM PART COMMAND…
	local result=0
	(under "$@") 2>"$BENCH_WORK/measured.err" || result=1
	! ran_unrestricted measured || result=1
	[ $result = 0 ] || echo "  $1: $3: $(head -n 1 "$BENCH_WORK/measured.err")" >&2
	return $result
}

ran_unrestricted() { # NAME
	grep -q 'runs\? unrestricted' "$BENCH_WORK/$1.err"
}

declare -A task_pids

start() { # NAME MECHANISM PART COMMAND…
	local name=$1
	shift
	# Emptied now, not when the task starts: the output of an earlier task of that name must not count.
	: >"$BENCH_WORK/$name.out"
	under "$@" >"$BENCH_WORK/$name.out" 2>"$BENCH_WORK/$name.err" &
	task_pids[$name]=$!
}

start_task() { # NAME MECHANISM PART ARGUMENT…
	local name=$1 mechanism=$2 part=$3
	shift 3
	start "$name" "$mechanism" "$part" task "$@" --at-rest
}

# Waits until each task is ready. Fails with its reason if one ended instead.
await() { # NAME…
	local name
	for name in "$@"; do
		until [ -s "$BENCH_WORK/$name.out" ]; do
			kill -0 "${task_pids[$name]}" 2>/dev/null || break
			sleep 0.01
		done
		if [ ! -s "$BENCH_WORK/$name.out" ]; then
			finish "$name" && complain "$name"
			return 1
		fi
	done
}

# One that fails is reported, and takes no turns.
await_all() {
	local name
	for name in "${!task_pids[@]}"; do
		await "$name" || true
	done
}

# Prints what failed, and the reason: what it said first, but of Python's many lines the last.
complain() { # NAME
	local reason
	reason=$(head -n 1 "$BENCH_WORK/$1.err")
	! grep -q '^Traceback ' "$BENCH_WORK/$1.err" || reason=$(tail -n 1 "$BENCH_WORK/$1.err")
	echo "  $1: $reason" >&2
	note_failure
}

# Waits until each task has ended by itself. One that was waited for before does not count as a failure again.
finish() { # NAME…
	local name result=0
	for name in "$@"; do
		[ -n "${task_pids[$name]:-}" ] || continue
		if ! wait "${task_pids[$name]}" || ran_unrestricted "$name"; then
			complain "$name"
			result=1
		fi
		unset "task_pids[$name]"
	done
	return $result
}

# Asks the tasks to end, and waits until they have.
stop() { # NAME…
	local name
	for name in "$@"; do
		[ -z "${task_pids[$name]:-}" ] || kill -TERM "${task_pids[$name]}" 2>/dev/null || true
	done
	finish "$@"
}

# Prints the number of SMs that a task has. The task reports it, unless nvtaskset partitions it.
sms() { # NAME MECHANISM PART
	case $2 in
	nvtaskset*) echo "$(($(count_of "$3") * sms_per_tpc))" ;;
	*) sed -n '1s/^ready //p' "$BENCH_WORK/$1.out" ;;
	esac
}
