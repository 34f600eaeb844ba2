# Programs of PyTorch as tasks, for an experiment that is left out where there is no PyTorch. A simulated GPU takes no time:
# there, any work will do.

has_torch() {
	python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' 2>/dev/null
}

need_torch() {
	[ -n "${BENCH_SIMULATED:-}" ] || has_torch || {
		echo "  left out: there is no PyTorch" >&2
		exit "$LEFT_OUT"
	}
}

start_program() { # NAME MECHANISM PART PROGRAM…
	if [ -n "${BENCH_SIMULATED:-}" ]; then
		start_task "$1" "$2" "$3" compute --size 8
	else
		start "$1" "$2" "$3" python3 "$BENCH_ROOT/bench/$4" "${@:5}" --at-rest
	fi
}

# Some 15 programs may be clients of one MPS server, which has room for 48 of so many connections. Each program uses one
# stream.
export CUDA_DEVICE_MAX_CONNECTIONS=2
# The first line that a failed program leaves is the reason.
export PYTHONWARNINGS=ignore
need_torch
