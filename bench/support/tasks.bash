# Programs under a mechanism: in the foreground, or (bench/task, or what speaks like it) in the background, each with a
# name. One that nvtaskset lets run unrestricted has failed: it would be measured as what it is not.

# What it prints is passed on; the reason of a failure, too, which the caller notes.
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
	# Now, not when the task starts: what an earlier one of that name left must not be taken for its.
	: >"$BENCH_WORK/$name.out"
	under "$@" >"$BENCH_WORK/$name.out" 2>"$BENCH_WORK/$name.err" &
	task_pids[$name]=$!
}

start_task() { # NAME MECHANISM PART ARGUMENT…
	local name=$1 mechanism=$2 part=$3
	shift 3
	start "$name" "$mechanism" "$part" task "$@"
}

# Until it has worked once. Fails where it ended instead, with its reason.
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

# What failed, and its reason.
complain() { # NAME
	echo "  $1: $(head -n 1 "$BENCH_WORK/$1.err")" >&2
	note_failure
}

# Until it has ended by itself. One that has been waited for already is not a failure again.
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

# Asks them to end, and waits for it.
stop() { # NAME…
	local name
	for name in "$@"; do
		[ -z "${task_pids[$name]:-}" ] || kill -TERM "${task_pids[$name]}" 2>/dev/null || true
	done
	finish "$@"
}

# What it measured.
samples() { # NAME
	sed -n "2,$(pick '$' 6)p" "$BENCH_WORK/$1.out"
}

# The SMs that a task has: it knows itself, unless nvtaskset partitions it.
sms() { # NAME MECHANISM PART
	case $2 in
	nvtaskset*) echo "$(($(count_of "$3") * sms_per_tpc))" ;;
	*) sed -n '1s/^ready //p' "$BENCH_WORK/$1.out" ;;
	esac
}
