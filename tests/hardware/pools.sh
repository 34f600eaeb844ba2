#!/bin/bash
# Lending between containers: a borrower in a pool has the same rate as without containers, and the host's views show
# the loan. Two programs have namespaces, and the mounts of `nvtaskset cdi add --pool`; two have none. All use one MPS
# daemon. Each pair works in turn, the first also without borrowing. TAP on standard output.
#
#   BUILD=build tests/hardware/pools.sh      as root, after make all build/demo/where; needs PyTorch; 100 seconds
#
# LENDER and BORROWER print a line for each iteration, with seconds first, and obey the signals PAUSE and RESUME. The
# simulated GPU: tests/cli/pools.bats.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
: "${BUILD:=build}" "${ROUNDS:=4}" "${LENGTH:=3.6}" "${WITHIN:=3}" "${GAIN:=2}" "${LIMIT:=2ms}"
: "${PAUSE:=USR1}" "${RESUME:=USR2}"
parts=(python3 tests/hardware/pools.py)
read -ra lender <<<"${LENDER:-${parts[*]} paused service}"
read -ra borrower <<<"${BORROWER:-${parts[*]} paused resnet50}"
work=$(mktemp -d /var/lib/pools.XXXXXX)
mkdir -p "$work/mps" "$work/log" "$work/cgroup" /opt/nvtaskset
cp -a "$BUILD/nvtaskset" "$BUILD/lib" "$BUILD/demo/where" "$work" && chmod 755 "$work"
export PATH=$work:$PATH:/usr/local/nvidia/bin CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/log
declare -A jobs pids ids=([chat]=$(sha256sum <<<chat | head -c 64) [train]=$(sha256sum <<<train | head -c 64))
count=0 failed=0 working='' modes=(pool host fixed)

ok() { # WHAT COMMAND…
	local verdict=ok
	"${@:2}" >"$work/output" 2>&1 || verdict="not ok" failed=1
	tail -n 20 "$work/output" | sed 's/^/#   /'
	echo "$verdict $((++count)) - $1"
}

finish() {
	kill -KILL "${jobs[@]}" "${pids[@]}"
	wait
	for device in chat train; do nvtaskset cdi remove --output "$work/cdi.json" "$device"; done
	nvtaskset mps stop --force
	rmdir "$work"/cgroup/docker-*
	umount "$work/cgroup"
	rm -rf "$work"
	rmdir /opt/nvtaskset
} >/dev/null 2>&1
trap finish EXIT
start() { # NAME COMMAND…
	"${@:2}" >"$work/$1.log" 2>"$work/$1.errors" &
	jobs[$1]=$!
}

contain() { # DEVICE COMMAND…
	local group=$work/cgroup/docker-${ids[$1]}.scope
	[ ! "${ids[$1]}" ] || mkdir -p "$group"
	start "$1" unshare --mount --pid --ipc --fork --kill-child bash -c "
		$("${parts[@]}" device "$work/cdi.json" "$1")
		[ ! -d $group ] || echo 0 >$group/cgroup.procs
		exec $users \"\$@\"" bash "${@:2}"
}

works() { # NAME ITERATIONS
	for _ in {1..600}; do
		[ "$(wc -l <"$work/$1.log")" -lt "$2" ] || break
		kill -0 "${jobs[$1]}" && sleep 0.1
	done
	pids[$1]=${jobs[$1]}
	[[ $1 = host-* ]] || pids[$1]=$(pgrep -P "${jobs[$1]}")
	tail -n 5 "$work/$1.errors"
	[ "$(wc -l <"$work/$1.log")" -ge "$2" ]
}

measure() { # pool | host | fixed: containers, no containers, or containers without loans
	local works='' lines asked borrow=--borrow
	[ "$1" != host ] || works=host-
	[ "$1" != fixed ] || borrow=--borrow=off
	nvtaskset -p $borrow --group "$work/cdi/train" >/dev/null
	if [ "$works" != "$working" ]; then
		kill -"$PAUSE" "${pids[${working}chat]}" "${pids[${working}train]}"
		kill -"$RESUME" "${pids[${works}chat]}" "${pids[${works}train]}"
		working=$works
	fi
	sleep 0.5
	lines=$(wc -l <"$work/${works}train.log") asked=$(wc -l <"$work/${works}chat.log")
	sleep "$LENGTH"
	tail -n "+$((asked + 1))" "$work/${works}chat.log" >>"$work/$1.answers"
	"${parts[@]}" rate "$work/${works}train.log" "$lines" >>"$work/$1.rates"
}

nvidia-cuda-mps-control -d || exit
mount -t cgroup2 none "$work/cgroup" || ids=([chat]="" [train]="") # no names of containers
nvtaskset cdi add --output "$work/cdi.json" -t 33-65 --lend="$LIMIT" --mps on --pool main chat >&2
nvtaskset cdi add --output "$work/cdi.json" -t 0-32 --borrow --mps on --pool main train >&2
for users in "unshare --user --map-root-user" ""; do
	contain train timeout 20 where 1
	wait "${jobs[train]}" && break
	sed 's/^/# /' "$work/train.errors"
done
contain chat "${lender[@]}"
contain train "${borrower[@]}"
start host-chat nvtaskset -t 33-65 --lend="$LIMIT" "${lender[@]}"
start host-train nvtaskset -t 0-32 --borrow "${borrower[@]}"
for name in chat host-chat; do ok "$name works" works $name 1; done
for name in train host-train; do ok "$name works" works $name 30; done
ok "each container has namespaces of its own" "${parts[@]}" apart $$ "${pids[chat]}" "${pids[train]}"
kill -"$PAUSE" "${pids[host-chat]}" "${pids[host-train]}"
for ((i = 0; i < 3 * ROUNDS; i++)); do measure "${modes[(i + i / 3) % 3]}"; done
ok "a borrower in a pool has the rate that it has without containers" \
	"${parts[@]}" within "$work/pool.rates" "$work/host.rates" $((100 - WITHIN)) $((100 + WITHIN))
ok "answers of the lender" "${parts[@]}" answers "$work"/{pool,host,fixed}.answers
ok "a borrower gains" "${parts[@]}" within "$work/pool.rates" "$work/fixed.rates" $((100 + GAIN)) 1000
measure pool
ok "-l, top and metrics on the host show lent and borrowed TPCs, by container" \
	"${parts[@]}" shown "${pids[train]}" "${pids[chat]}" "${ids[train]}" "${ids[chat]}"
echo "1..$count"
exit $failed
