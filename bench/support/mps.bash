# Starts and ends an MPS daemon of the benchmark's own, in a private directory.
#
#   BENCH_WORK      a directory for this run alone, with a short path: MPS has sockets there
#   BENCH_MPS       set by start_mps: the control program; empty where there is none

# The directories in which NVIDIA's packages and container images put the control program.
find_mps() {
	PATH=$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin command -v nvidia-cuda-mps-control || true
}

# The daemon outlives the shell that starts it, so it inherits none of our descriptors.
start_mps() { # the arguments of the daemon, beside -d
	BENCH_MPS=$(find_mps)
	export BENCH_MPS
	[ -n "$BENCH_MPS" ] || return 0
	mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
	timeout 20 "$BENCH_MPS" -d "$@" </dev/null >"$BENCH_WORK/mps-start" 2>&1 3>&- 4>&- || {
		echo "bench: MPS does not start: $(head -n 1 "$BENCH_WORK/mps-start")" >&2
		BENCH_MPS=
	}
}

ask_mps() { # COMMAND
	echo "$1" | timeout 10 "$BENCH_MPS" 2>/dev/null
}

# A server whose client was killed in the middle of a kernel may not answer any more. It is ours, so we kill it.
stop_mps() {
	local daemon servers process
	[ -n "${BENCH_MPS:-}" ] || return 0
	daemon=$(cat "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid" 2>/dev/null || true)
	servers=$(ask_mps get_server_list | grep -E '^[0-9]+$' || true)
	ask_mps "quit -t 5" >/dev/null || true
	for process in $daemon $servers; do
		for _ in $(seq 30); do
			is_mps "$process" || continue 2
			sleep 0.1
		done
		kill -KILL "$process" 2>/dev/null || true
	done
	rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
}

# Process ids are used again.
is_mps() { # PID
	grep -q nvidia-cuda-mps "/proc/$1/cmdline" 2>/dev/null
}
