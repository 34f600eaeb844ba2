#!/bin/bash
# The masks of waiting launches change all the time (churn.c), and each program has the same results, bit by bit, as a
# program without changes beside it: both as clients of MPS, in the same half of a GPU. `nccl` has two ranks, on two
# GPUs. `kills`: two programs without changes have the same results while KILLS programs with changes are killed in the
# other half. TAP on standard output.
#
#   BUILD=build tests/hardware/churn.sh [CASE...]          resnet llama jax generate graph nccl kills
#                                   after make all build/tests/hardware/churn/libcuda.so.1 build/bench/task
#
# Needs PyTorch, timm, transformers and JAX; four minutes. A case is over after so many CHANGES, and CHURN_SECONDS after
# the start at the latest. The simulated GPU, after make build/tests/programs/play:
#   NVTASKSET_TOPOLOGY=share/topologies/h200.txt NVTASKSET_DRIVER=$PWD/build/sim/libcuda.so.1 \
#   PATH=$PWD/tests/fake-mps:$PATH PROGRAM="python3 tests/hardware/churn.py simulated" \
#   VICTIM="build/tests/programs/play busy wait" CHANGES=1000000 KILLS=10 tests/hardware/churn.sh graph kills
# shellcheck disable=SC2317 # called by name
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
export BUILD
: "${CHANGES:=100000000}" "${CHURN_SECONDS:=100}" "${KILLS:=100}"
read -ra program <<<"${PROGRAM:-python3 tests/hardware/churn.py}"
read -ra victim <<<"${VICTIM:-$BUILD/bench/task compute --repeat 800}"
cases=("${@:-resnet llama jax generate graph nccl kills}")
work=$(mktemp -d)
chmod 755 "$work" && mkdir "$work/lib" "$work/mps" "$work/log"
cp "$BUILD/nvtaskset" "$work"
cp -P "$BUILD"/lib/* "$work/lib"
cp "$BUILD/tests/hardware/churn/libcuda.so.1" "$work/lib/"
export PATH=$PATH:/usr/local/nvidia/bin CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/log
export CUDA_DEVICE_ORDER=PCI_BUS_ID PYTHONWARNINGS=ignore
# The GPUs of CUDA_VISIBLE_DEVICES, or all; a simulated one has no name.
visible=${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=uuid --format=csv,noheader 2>/dev/null | paste -sd,)}
IFS=, read -ra gpus <<<"$visible"
count=0 failed=0

ok() { # WHAT COMMAND…
	local verdict=ok
	"${@:2}" >"$work/output" 2>&1 || verdict="not ok" failed=1
	sed 's/^/#   /' "$work/output"
	echo "$verdict $((++count)) - $1"
}

finish() {
	# shellcheck disable=SC2046 # many words
	kill $(jobs -p)
	wait
	"$BUILD/nvtaskset" mps stop --force
	rm -rf "$work"
} >/dev/null 2>&1
trap finish EXIT

number() { # CASE CHANGES (0) or WALKS (8)
	od -An -td8 -j "$2" -N 8 "$work/$1/count" | tr -d ' '
}
lines() { # CASE RUN
	wc -l <"$work/$1/$2"
}

# Waits until the condition holds, a program has ended or the time is over. Returns whether the condition holds.
await() { # CONDITION…
	local end=$((began + CHURN_SECONDS))
	until "$@" || [ $SECONDS -ge $end ] || ! kill -0 "${pids[@]}"; do sleep 0.1; done 2>/dev/null
	"$@"
}
is_changed() { [ "$(number "$1" 0)" -ge "$2" ]; }
works() { [ "$(lines "$1" fixed)" -gt 0 ] && [ "$(lines "$1" changed)" -gt 0 ]; }
has_caught_up() { [ "$(lines "$1" fixed)" -ge "$(lines "$1" changed)" ]; }

kill_beside() { # CASE
	local pid kills=0 goes_on=true before
	await works "$1"
	while $goes_on && [ $kills -lt "$KILLS" ] && [ $SECONDS -lt $((began + CHURN_SECONDS)) ]; do
		before=$(number "$1" 0)
		"$work/nvtaskset" -t 33-65 "${victim[@]}" >/dev/null 2>"$work/$1/victim" &
		pid=$!
		await is_changed "$1" $((before + 1)) || goes_on=false
		sleep "0.$(printf %03d $((RANDOM % 300)))"
		if kill -KILL $pid; then kills=$((kills + 1)); else goes_on=false; fi
		wait $pid
	done 2>/dev/null
	echo "$kills killed"
	$goes_on || tail -n 3 "$work/$1/victim"
}

begin() { # CASE RUN DIRECTORY of nvtaskset: of both runs, one is in `changed`, the other in `fixed`
	CHURN_OVER=$work/$1/$2-over timeout -k 5 $((CHURN_SECONDS + 60)) "$3/nvtaskset" "${gpu[@]}" -t 0-32 \
		"${program[@]}" "${1/kills/graph}" >"$work/$1/$2" 2>"$work/$1/$2.errors" &
	pids+=($!)
}

# On one of the GPUs. Says how many changes there were.
run() { # CASE GPU
	local pids=() gpu=() began=$SECONDS library=$work
	[ "$1" != nccl ] || gpu=(-G all)
	[ "$1" = nccl ] || [ -z "$visible" ] || export CUDA_VISIBLE_DEVICES=${gpus[$2]}
	[ "$1" != kills ] || library=$BUILD
	export CHURN_COUNT=$work/$1/count
	begin "$1" changed "$library"
	begin "$1" fixed "$BUILD"
	if [ "$1" = kills ]; then
		kill_beside "$1"
	else
		await is_changed "$1" "$CHANGES" || "$BUILD/nvtaskset" -l
	fi
	touch "$work/$1/changed-over"
	wait "${pids[0]}" || echo "exit status $?"
	began=$SECONDS
	await has_caught_up "$1"
	touch "$work/$1/fixed-over"
	wait "${pids[1]}" || echo "exit status $?"
	echo "$(number "$1" 0) changes in $(number "$1" 8) walks; $(tail -n 1 "$work/$1/changed.errors")"
}

# All at the same time, on the GPUs in turn.
run_all() { # CASE…
	local case pids=() next=0
	for case; do
		mkdir "$work/$case"
		head -c 16 /dev/zero >"$work/$case/count"
		run "$case" $((next++ % (${#gpus[@]} > 0 ? ${#gpus[@]} : 1))) >"$work/$case/said" 2>&1 &
		pids+=($!)
	done
	[ $# = 0 ] || wait "${pids[@]}"
	for case; do
		ok "$case: the same results" same_results "$case"
		if [ "$case" = kills ]; then
			ok "kills: $KILLS" grep -x "$KILLS killed" "$work/kills/said"
		else
			ok "$case: $CHANGES changes" is_changed "$case" "$CHANGES"
		fi
	done
}

# Each result with changes is among the results without, and there is a result.
compare() { # FIXED CHANGED
	[ -s "$2" ] && ! grep -vxFf "$1" "$2"
}
same_results() { # CASE
	cat "$work/$1/said"
	echo "$(lines "$1" changed) results, the last $(tail -n 1 "$work/$1/changed")"
	compare "$work/$1/fixed" "$work/$1/changed" && ! grep 'exit status' "$work/$1/said" && return
	tail -n 3 "$work/$1"/*.errors
	return 1
}

a_difference_is_found() { # DIRECTORY of a case
	sed '$s/.$/x/' "$1/changed" >"$work/one" && [ -s "$work/one" ] && ! compare "$1/fixed" "$work/one"
}

xids() { dmesg | grep 'NVRM: Xid'; }
no_new_xid() {
	if dmesg >/dev/null; then diff "$work/xids" <(xids); fi
}
no_fatal_error() {
	! grep -i fatal "$work/log/server.log"
}

nvidia-cuda-mps-control -d || exit
xids >"$work/xids" 2>/dev/null
together=() apart=()
# shellcheck disable=SC2068 # words
for case in ${cases[@]}; do
	case $case in nccl | kills) apart+=("$case") ;; *) together+=("$case") ;; esac
done
run_all "${together[@]}"
for case in "${apart[@]}"; do
	if [ "$case" = nccl ] && [ ${#gpus[@]} -lt 2 ]; then
		ok "nccl # SKIP there are no two GPUs" true
	else
		run_all "$case"
	fi
done
[ ! -e "$work/$case" ] || ok "a single different result is found" a_difference_is_found "$work/$case"
ok "the kernel driver reports no error (Xid)" no_new_xid
ok "MPS reports no fatal error" no_fatal_error
echo "1..$count"
exit $failed
