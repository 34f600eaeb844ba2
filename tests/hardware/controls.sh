#!/bin/bash
# Controls of NVIDIA's kernel driver beside those of nvtaskset, as an ordinary user and as root: status and effect. Each
# part has a limit of 40 s; usually all parts together take a minute.
#
#   BUILD=build tests/hardware/controls.sh >controls.log    after make all build/bench/all build/tests/hardware/controls
#
# As root: the first half runs as an ordinary user. Without MPS.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
export CUDA_MPS_PIPE_DIRECTORY=/dev/null HOME=/tmp

# For the ordinary user, who may not read the build directory.
work=$(mktemp -d)
chmod 755 "$work"
cp "$BUILD/tests/hardware/controls" "$BUILD/bench/task" "$work"
trap 'kill "$loop" 2>/dev/null; rm -rf "$work"' EXIT
loop=

part() { # USER PART
	echo "== $2, as $1"
	if [ "$1" = nobody ]; then
		timeout -k 5 40 setpriv --reuid=65534 --regid=65534 --clear-groups "$work/controls" "$2" 2>&1
	else
		timeout -k 5 40 "$work/controls" "$2" 2>&1
	fi
	echo "== exit status $?"
}

echo "== $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1 | head -n 1), $(date -u +%F)"
grep -E 'RmProfilingAdminOnly|EnableResizableBar' /proc/driver/nvidia/params 2>/dev/null
for user in nobody root; do
	for name in sms clocks switches realtime; do
		part $user $name
	done
done
echo "== realtime beside a loop of long kernels"
"$work/task" compute --rounds 3000 >/dev/null 2>&1 &
loop=$!
sleep 3
part nobody realtime
part root realtime
kill -0 "$loop" && echo "== the loop still runs"
dmesg 2>/dev/null | grep -i 'nvrm\|xid' | tail -n 20
