# bench/network.py as a task: it is started once, and measures each time that it is told to.

has_pytorch() {
	python3 -c 'import torch' 2>/dev/null
}

declare -A network_orders

# This shell keeps the pipe open both ways, so that neither side waits for the other, or sees its end.
start_network() { # NAME MECHANISM PART
	local pipe=$BENCH_WORK/$1.orders descriptor
	mkfifo "$pipe"
	exec {descriptor}<>"$pipe"
	network_orders[$1]=$descriptor
	start "$1" "$2" "$3" python3 "$BENCH_ROOT/bench/network.py" "$pipe"
}

# Does not wait.
infer() { # NAME SECONDS
	rm -f "$BENCH_WORK/$1.inferred"
	echo "$2 $BENCH_WORK/$1.inferred" >&"${network_orders[$1]}"
}

# Fails with its reason if the network has ended instead.
await_inferred() { # NAME
	until [ -e "$BENCH_WORK/$1.inferred" ]; do
		kill -0 "${task_pids[$1]:-}" 2>/dev/null || {
			finish "$1" && complain "$1"
			return 1
		}
		sleep 0.01
	done
}

inferred() { # NAME
	sed -n "1,$(pick '$' 5)p" "$BENCH_WORK/$1.inferred"
}

# How many of its kernels have run outside of its partition so far.
outside() { # NAME
	nvtaskset -l --json | awk -F '[:,]' -v pid="${task_pids[$1]}" '
		/"pid":/ {is_own = $2 == pid}
		is_own && /"outside":/ {print $2 + 0; is_own = 0}'
}
