# The programs of TimeGraph's experiments (USENIX ATC 2011): all are clients of one MPS server, each once with nvtaskset and once
# without. A mechanism is mps, or nvtaskset with a priority or a quota.
. "$BENCH_ROOT/bench/support/loops.bash"

[ -n "$(available nvtaskset)" ] || exit "$LEFT_OUT"
export CUDA_DEVICE_MAX_CONNECTIONS=2
rounds=$(pick 2 1)

# So many kernels of 0.1 ms for each frame. Who has ended one begins the next.
start_frames() { # NAME MECHANISM KERNELS
	start_task "$1" "$2" all compute --size "$loop_blocks" --rounds "$(rounds_of 0.1)" --repeat "$3"
}

# More kernels than the GPU has time for.
start_bomb() { # NAME MECHANISM
	start_task "$1" "$2" all compute --size "$loop_blocks" --rounds "$(rounds_of 1)" --repeat 8 --in-flight
}

# The names of so many programs of a kind, as they are under this mechanism.
names() { # KIND COUNT MECHANISM
	[ "$2" = 0 ] || seq -f "$1%.0f-${3%%-*}" "$2"
}

# What nvtaskset gave them.
take_back() { # MECHANISM NAME…
	local name
	[ "$1" = mps ] || for name in "${@:2}"; do
		give "$name" --priority 50 --quota max
	done
}
