#!/bin/bash
# --memory on a GPU, with MPS and without: TAP on standard output, with what was seen as comments. Two minutes.
#
#   BUILD=build tests/hardware/memory.sh
#                  after make all build/tests/gpu/memory build/tests/programs/play build/tests/programs/memory
#
# Each way to allocate; totals; live changes; six programs at random; the kernel driver's numbers; PyTorch and JAX in
# halves; and the cost of an allocation. Uses its own control daemon. A framework that is not there is left out.
# shellcheck disable=SC2317 # finish is called by a trap
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
PATH=$BUILD:$PATH:/usr/local/nvidia/bin
play=$BUILD/tests/programs/play
memory=$BUILD/tests/programs/memory
work=$(mktemp -d)
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/log
unset CUDA_VISIBLE_DEVICES CUDA_MPS_PINNED_DEVICE_MEM_LIMIT CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
mkdir "$work/mps" "$work/log"
count=0 failed=0
SECONDS_AT_RANDOM=${SECONDS_AT_RANDOM:-20}

ok() { # what, and a command that succeeds if it is so
	local verdict=ok
	count=$((count + 1))
	"${@:2}" || verdict="not ok" failed=1
	echo "$verdict $count - $1"
}

is() { # what, expected, got
	[ "$2" = "$3" ] || echo "#   expected '$2', got '$3'"
	ok "$1" [ "$2" = "$3" ]
}

within() { # got, expected, how far off in MiB, how far off in %
	echo "#   got $1 MiB, expected $2 MiB, $3 MiB or $4 % more or less"
	awk -v got="$1" -v expected="$2" -v off="$3" -v percent="$4" \
		'BEGIN {d = got > expected ? got - expected : expected - got
			exit !(d <= off || d <= expected * percent / 100)}'
}

# nvtaskset; what it says of itself is a comment.
inside() {
	timeout -k 5 100 nvtaskset "$@" 2>"$work/errors"
	local status=$?
	sed 's/^/#   said: /' "$work/errors" >&2
	return "$status"
}

finish() {
	# shellcheck disable=SC2046 # many words
	kill $(jobs -p) 2>/dev/null
	nvtaskset mps stop --force 2>&1 | sed 's/^/# /'
	rm -rf "$work"
}

wait_for() { # the line, and files
	local line=$1 tries=300 file
	shift
	for file in "$@"; do
		until grep -qx "$line" "$file" || [ "$((tries--))" -le 0 ]; do sleep 0.1; done
	done
}

in_use() { # PID: MiB, as nvtaskset counts
	nvtaskset -l --json |
		jq "[.processes[] | select(.pid == $1) | .kernels[].memory_bytes] | (add // 0) / 1048576 | floor"
}

is_kernel_drivers() { # what PID
	local seen
	nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader 2>&1 | sed 's/^/#   nvidia-smi: /'
	seen=$(nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits 2>/dev/null |
		sed -n "s/^$2, //p")
	if [[ "$seen" =~ ^[0-9]+$ ]]; then
		ok "$1: our number is the kernel driver's" within "$(in_use "$2")" "$seen" 64 2
	else
		echo "#   $1: nvidia-smi does not tell; ours is $(in_use "$2") MiB"
	fi
}

exec 2>&1
trap finish EXIT
nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader 2>&1 | sed 's/^/# /'
nvtaskset --version | sed 's/^/# /'

# --- each way to allocate, by the driver itself -----------------------------------------------------------------------

each_way() {
	CUDA_MPS_PIPE_DIRECTORY=/dev/null nvtaskset --mps off all "$BUILD/tests/gpu/memory" >"$work/ways" 2>&1
	local status=$?
	grep -v '^\[ RUN' "$work/ways" | sed 's/^/#   /'
	return "$status"
}
ok "tests/gpu/memory: each way is refused, and given back" each_way

# --- what programs see, and live --------------------------------------------------------------------------------------

for mode in off auto; do
	got=$(inside --mps $mode --memory 8G all "$memory" total | cut -d ' ' -f 1-2)
	is "$mode: the totals are the limit" "8192 8192" "$got"
	steps=(allocate 1024 allocate 4096 wait allocate 4096 wait)
	nvtaskset --mps $mode --memory 4G all "$play" "${steps[@]}" >"$work/live" 2>&1 &
	pid=$!
	wait_for waiting "$work/live"
	is "$mode: 1 GiB of 4 is there, 4 more are not" "0 2" "$(sed -n '/^[0-9]/p' "$work/live" | cut -c 1 | xargs)"
	nvtaskset -p --memory 6G $pid | sed 's/^/#   /'
	kill -USR1 $pid
	until [ "$(grep -c waiting "$work/live")" = 2 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
	is "$mode: after a change they are" 0 "$(sed -n '/^[0-9]/p' "$work/live" | tail -n 1 | cut -c 1)"
	is_kernel_drivers "$mode, with a limit" $pid
	kill $pid
	wait $pid
	nvtaskset --mps $mode all "$play" allocate 1024 wait >"$work/unlimited" 2>&1 &
	pid=$!
	wait_for waiting "$work/unlimited"
	is_kernel_drivers "$mode, without a limit" $pid
	kill $pid
	wait $pid
done

# Under MPS: the sum of all is what the GPU lacks. The daemon's server has memory of its own, which is there before.
inside --mps auto all "$memory" total >/dev/null
before=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i 0)
for i in 1 2 3; do
	nvtaskset --mps auto all "$play" allocate $((i * 512)) wait >"$work/sum$i" 2>&1 &
done
wait_for waiting "$work/sum1" "$work/sum2" "$work/sum3"
after=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i 0)
sum=$(nvtaskset -l --json | jq '[.processes[].kernels[].memory_bytes] | (add // 0) / 1048576 | floor')
if [[ "$before $after" =~ ^[0-9]+\ [0-9]+$ ]]; then
	ok "the sum under MPS is what is not free" within "$sum" $((after - before)) 192 2
else
	echo "#   nvidia-smi does not tell what is in use; ours is $sum MiB"
fi
# shellcheck disable=SC2046 # many words
kill $(jobs -p)
wait

# --- six at random, limits changed live -------------------------------------------------------------------------------

for i in 1 2 3 4 5 6; do
	nvtaskset --mps auto --group memory --memory 6G all "$memory" random "$SECONDS_AT_RANDOM" \
		>"$work/random$i" 2>&1 &
done
sleep 3
most=6 above=0 looks=0 end=$((SECONDS + SECONDS_AT_RANDOM - 4)) lowered=0
while [ "$SECONDS" -lt "$end" ]; do
	# After it was lowered, programs first have to free some.
	together=$(nvtaskset -p --group memory 2>/dev/null | sed -n 's/.*: \([0-9.]*\)\([MG]\) in use$/\1 \2/p' |
		awk '{print $2 == "G" ? $1 * 1024 : $1}')
	looks=$((looks + 1))
	if [ "$SECONDS" -gt "$lowered" ] &&
		awk -v got="${together:-0}" -v most=$((most * 1024)) 'BEGIN {exit !(got > most + 1)}'; then
		above=$((above + 1))
		echo "#   $together MiB of $most GiB"
	fi
	if [ $((looks % 20)) -eq 0 ]; then
		most=$((most == 6 ? 9 : 6))
		nvtaskset -p --group memory --memory ${most}G >/dev/null 2>&1
		lowered=$((SECONDS + 3))
	fi
	sleep 0.1
done
wait
sed 's/^/#   /' "$work"/random?
is "never above, in $looks looks" 0 $above
is "none was refused that had room" 6 "$(cat "$work"/random? | grep -c ' failed 0$')"

# --- PyTorch and JAX in halves ----------------------------------------------------------------------------------------

total=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits -i 0)
[[ "$total" =~ ^[0-9]+$ ]] || total=16384
half=$((total / 2048))
frameworks=()
for framework in torch jax; do
	if python3 -c "import $framework" 2>/dev/null; then
		frameworks+=("$framework")
		timeout -k 5 100 nvtaskset --mps auto --memory $((half - 1))G all \
			python3 tests/hardware/memory_fill.py $framework \
			>"$work/$framework" 2>"$work/$framework.errors" &
	else
		echo "# $framework is not installed"
	fi
done
wait
for framework in "${frameworks[@]}"; do
	sed 's/^/#   /' "$work/$framework"
	tail -n 3 "$work/$framework.errors" | cut -c 1-200 | sed 's/^/#   /'
	is "$framework gets its error and goes on" "goes on" "$(tail -n 1 "$work/$framework")"
	read -r total used <"$work/$framework"
	least=$([ "$framework" = jax ] && echo 65 || echo 90)
	ok "$framework fills its half, by its size" awk -v t="${total:-0}" -v u="${used:-0}" \
		-v h=$(((half - 1) * 1024)) -v l="$least" 'BEGIN {exit !(t <= h && u <= h && u * 100 >= h * l)}'
done

# --- what it costs ----------------------------------------------------------------------------------------------------

bare=$(CUDA_MPS_PIPE_DIRECTORY=/dev/null "$memory" cost 5000)
without=$(inside --mps off all "$memory" cost 5000)
limited=$(inside --mps off --memory 8G all "$memory" cost 5000)
echo "#   an allocation of 1 MiB takes $bare ns, in nvtaskset $without, with a limit $limited (medians of 5000)"
# The simulator's allocations cost what the machine's other work lets them.
[ -n "${NVTASKSET_DRIVER:-}" ] || ok "an allocation costs at most 0.5 us more" [ $((limited - bare)) -le 500 ]

echo "1..$count"
exit $failed
