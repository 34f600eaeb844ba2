#!/usr/bin/env bats
# nvtaskset cdi add --pool: containers with namespaces of processes lend, borrow and have priorities. Attacks by hostile
# containers are in tests/unit/pool.c.
# needs: tests/cdi/inject demo/where

load helpers
load containers

setup() {
	containers_begin
}

teardown() {
	end_daemons "$HOST_DRIVER/mps"
	containers_kill
	for pool in "$WORK"/cdi/nvtaskset/.pools/*; do
		[ ! -d "$pool" ] || umount "$pool" 2>/dev/null || true
	done
	containers_end
}

# Containers of the pool are clients of one daemon.
start_mps() {
	needs_containers
	nvidia_specification
	export PATH=$ROOT/tests/fake-mps:$PATH FAKE_MPS_LINGER=600 CUDA_MPS_PIPE_DIRECTORY=$HOST_DRIVER/mps
	nvidia-cuda-mps-control -d 3>&-
}

# The programs of two containers: LENDER, and BORROWER with kernels in flight all the time.
start_two() { # DEVICE OF THE LENDER, DEVICE OF THE BORROWER
	start_container lender "nvidia.com/gpu=0,nvtaskset/group=$1" context wait where wait
	LENDER=$PROGRAM
	start_container borrower "nvidia.com/gpu=0,nvtaskset/group=$2" context busy wait
	BORROWER=$PROGRAM
}

says() { # PATTERN, of -l
	nvtaskset -l | grep -qE "$1"
}

names_the_lender() {
	nvtaskset metrics >"$WORK/metrics"
	grep "^nvtaskset_borrowed_tpc_seconds_total{pid=\"$BORROWER\"," "$WORK/metrics" |
		grep -qE "lender=\"$LENDER\"\} [0-9.]+\$"
}

top_says() { # PID WORDS
	nvtaskset top --once --delay 0.5 >"$WORK/top"
	grep -q "^ *$1 .* $2" "$WORK/top"
}

@test "two containers of a pool: one borrows from the other, the host's views show it, and an edit holds live" {
	start_mps
	cdi add -t 8-15 --lend=1s --pool main infer
	cdi add -t 0-7 --borrow --pool main train
	start_two infer train
	wait_until says '^        borrows TPCs 8-15 now'
	wait_until says '^        others use TPCs 8-15 now'
	wait_until names_the_lender
	wait_until top_says "$BORROWER" 'borrows 8 '
	wait_until top_says "$LENDER" 'lends 8 '
	nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer" 12-15
	wait_until says '^        borrows TPCs 12-15 now'
	nvtaskset -p --lend=off --group "$WORK/cdi/nvtaskset/infer"
	wait_until not says '^        borrows TPCs'
	nvtaskset -p --lend=1s --group "$WORK/cdi/nvtaskset/infer"
	wait_until says '^        borrows TPCs 12-15 now'
}

@test "nothing is lent without a pool, nor between two pools" {
	start_mps
	cdi add -t 8-15 --lend=1s --pool main infer
	cdi add -t 16-23 --lend=1s other
	cdi add -t 0-7 --borrow --pool second train
	start_two infer train
	start_container other nvidia.com/gpu=0,nvtaskset/group=other context wait
	not says '^        borrows TPCs'
	# A container of the lender's pool.
	cdi add -t 24-31 --borrow --pool main late
	start_container late nvidia.com/gpu=0,nvtaskset/group=late context busy wait
	wait_until says '^        borrows TPCs 8-15 now'
	not says '^        borrows TPCs .*16'
}

# By the last line of a container.
runs_on() { # ID SET
	[ "$(tail -n 1 "$WORK/$1")" != waiting ] || kill -USR1 "$PROGRAM"
	[ "$(grep -E '^[0-9]' "$WORK/$1" | tail -n 1)" = "$2" ]
}

@test "a priority holds side by side: the lower one leaves TPCs while the higher one works" {
	start_mps
	cdi add -t 8-15 --priority 80 --mps on --pool main high
	cdi add -t 0-15 --priority 20 --mps on --pool main low
	start_container high nvidia.com/gpu=0,nvtaskset/group=high context busy wait
	HIGH=$PROGRAM
	local steps=(context wait)
	for _ in {1..400}; do steps+=(where wait); done
	start_container low nvidia.com/gpu=0,nvtaskset/group=low "${steps[@]}"
	wait_until runs_on low 0-7
	kill -KILL "$HIGH"
	wait_until runs_on low 0-15
}

is_aside() {
	[ "$(nvtaskset -l --json | jq ".processes[] | select(.pid == $PROGRAM) | .rank.aside_us > 0")" = true ]
}

@test "a priority holds in turns, between different users" {
	needs_containers
	nvidia_specification
	cdi add all --mps off --priority 80 --pool main high
	cdi add all --mps off --priority 20 --pool main low
	start_container high nvidia.com/gpu=0,nvtaskset/group=high context busy wait
	export EDIT='.process.user = {uid: 65534, gid: 65534}'
	start_container low nvidia.com/gpu=0,nvtaskset/group=low context busy wait
	wait_until is_aside
}

@test "a container with users of its own, all of them one user of the host" {
	start_mps
	cdi add -t 8-15 --lend=1s --pool main infer
	cdi add -t 0-7 --borrow --pool main train
	have_users 1
	start_two infer train
	wait_until says '^        borrows TPCs 8-15 now'
	nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer" 12-15
	wait_until says '^        borrows TPCs 12-15 now'
}

# By podman's own loader of devices. Each container has namespaces of its own.
@test "a container of podman borrows from a container of runc, also with users of its own" {
	command -v podman >/dev/null || skip "podman is not installed" # .ci/run does without
	! is_sanitized || skip "LeakSanitizer does not work in podman's hooks"
	start_mps
	cdi add -t 8-15 --lend=1s --pool main infer
	cdi add -t 0-7 --borrow --pool main train
	start_container lender nvidia.com/gpu=0,nvtaskset/group=infer context wait where wait
	export RUNTIME=podman
	start_container borrower nvidia.com/gpu=0,nvtaskset/group=train context busy wait
	wait_until says '^        borrows TPCs 8-15 now'
	kill -KILL "$PROGRAM"
	wait_until not says '^        borrows TPCs'
	have_users 1
	OPTIONS="--uidmap 0:100000:1 --gidmap 0:100000:1" \
		start_container second nvidia.com/gpu=0,nvtaskset/group=train context busy wait
	[ "$(awk '{ print $2 }' "/proc/$PROGRAM/uid_map")" = 100000 ]
	wait_until says '^        borrows TPCs 8-15 now'
}

@test "a container whose page is noise, empty and full again, all the time: its partners go on" {
	start_mps
	cdi add -t 8-15 --lend=1s --pool main infer
	cdi add -t 0-7 --borrow --pool main train
	cdi add -t 16-23 --lend=1s --pool main hostile
	start_two infer train
	start_container_with waiting hostile nvidia.com/gpu=0,nvtaskset/group=hostile \
		sh -c 'echo waiting; while :; do head -c 8192 /dev/urandom >/opt/nvtaskset/pages/hostile; done'
	nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer" 12-15
	wait_until says '^        borrows TPCs 12-15'
	nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer" 8-15
	wait_until says '^        borrows TPCs 8-15'
	kill -USR1 "$LENDER"
	wait_until grep -q 8-15 "$WORK/lender"
	[ ! -s "$WORK/lender.errors" ] && [ ! -s "$WORK/borrower.errors" ]
	[[ "$(cdi list)" == *"group=infer: TPCs 8-15 of GPU 0;"*"; pool main"* ]]
}

@test "a container can write its page, and nothing else of the pool" {
	start_mps
	cdi add -t 8-15 --lend --pool main infer
	cdi add -t 0-7 --pool main train
	run contain a nvidia.com/gpu=0,nvtaskset/group=train sh -c 'cd /opt/nvtaskset/pools/train && echo *
		echo >>../../pages/train || exit
		for file in list 0 1; do
			! rm $file && ! chmod 777 $file && ! truncate -s 0 $file || exit
		done 2>/dev/null
		! touch new 2>/dev/null && echo safe'
	[ "$output" = $'0 1 list\nsafe' ]
}

# Its group's programs may be hostile as well.
@test "a page that is gone keeps a program out, which says so, and comes in later" {
	start_mps
	cdi add -t 0-7 --borrow --pool main train
	: >"$WORK/cdi/nvtaskset/.pools/main/0"
	start_container borrower nvidia.com/gpu=0,nvtaskset/group=train context busy wait
	wait_until says 'others do not see its priority'
	truncate -s 4096 "$WORK/cdi/nvtaskset/.pools/main/0"
	wait_until not says 'others do not see its priority'
}

# Rates are the hardware's to tell.
@test "the test for the hardware" {
	needs_root
	needs python3
	local play=$BUILD/tests/programs/play
	export PATH=$ROOT/tests/fake-mps:$PATH FAKE_MPS_LINGER=600 PAUSE=STOP RESUME=CONT
	export LENDER="$play where jobs 50000,33000,0,4" BORROWER="$play iterations 500"
	ROUNDS=1 LENGTH=1 WITHIN=900 GAIN=-100 run -0 "$ROOT/tests/hardware/pools.sh"
}

@test "cdi add --pool: listed, in the specification, changed, refused and removed" {
	needs_containers
	nvidia_specification
	cdi add -t 0-7 --mps off --pool main a
	cdi add -t 8-15 --mps off --priority 80 --pool main b
	[ "$(cdi list)" = "nvtaskset/group=a: TPCs 0-7 of GPU 0; priority 50; pool main
nvtaskset/group=b: TPCs 8-15 of GPU 0; priority 80; pool main" ]
	pool=$WORK/cdi/nvtaskset/.pools/main
	mounts='.devices[1].containerEdits.mounts[3:] | map([.hostPath, .containerPath, .options[1]])'
	[ "$(jq -c "$mounts" "$WORK/cdi/nvtaskset.json")" = \
		"[[\"$pool\",\"/opt/nvtaskset/pools/b\",\"ro\"],[\"$pool/1\",\"/opt/nvtaskset/pages/b\",\"rw\"]]" ]
	for name in -x .x 7 a/b ''; do
		refuses "--pool $name: letters, digits and ._:@+-, at most 63, and no number alone" \
			cdi add -t 16 --mps off "--pool=$name" c
	done
	[ ! -e "$WORK/cdi/nvtaskset/c" ]
	# Without --pool, a device leaves the pool. An empty pool goes.
	cdi add -t 8-15 --mps off b
	[[ "$(cdi list)" == *"priority 80" ]]
	cdi remove a
	[ -z "$(ls "$WORK/cdi/nvtaskset/.pools")" ]
}

@test "a device stays in the pool, and its containers keep their page, where the specification cannot be written" {
	needs_containers
	nvidia_specification
	cdi add -t 0-7 --mps off --pool main a
	page=$(stat -c %i "$WORK/cdi/nvtaskset/.pools/main/0")
	mv "$WORK/cdi/nvtaskset.json" "$WORK/real"
	ln -s "$WORK/real" "$WORK/cdi/nvtaskset.json"
	for pool in --pool=second --pool=main --; do
		run -1 cdi add -t 8-15 --mps off "$pool" a
		[[ "$output" == "nvtaskset: $WORK/cdi/nvtaskset.json: "* ]]
		[ "$(ls "$WORK/cdi/nvtaskset/.pools")" = main ]
		[ "$(stat -c %i "$WORK/cdi/nvtaskset/.pools/main/0")" = "$page" ]
	done
	rm "$WORK/cdi/nvtaskset.json"
	mv "$WORK/real" "$WORK/cdi/nvtaskset.json"
	[ "$(cdi list)" = "nvtaskset/group=a: TPCs 0-7 of GPU 0; priority 50; pool main" ]
	cdi add -t 8-15 --mps off --pool second a
	[ "$(ls "$WORK/cdi/nvtaskset/.pools")" = second ]
	# A pool that cannot be left: the device is made.
	mount -o remount,ro "$WORK/cdi/nvtaskset/.pools/second"
	run -3 cdi add -t 8-15 --mps off --pool main a
	mount -o remount,rw "$WORK/cdi/nvtaskset/.pools/second"
	[ -e "$(jq -r '.devices[].containerEdits.mounts[3:][1].hostPath' "$WORK/cdi/nvtaskset.json")" ]
}

@test "a failed add leaves the device's programs clients of MPS" {
	start_mps
	cdi add -t 8-15 --lend=1s --pool main a
	cp "$WORK/cdi/nvtaskset/.pools/main/list" "$WORK/before"
	mv "$WORK/cdi/nvtaskset.json" "$WORK/real"
	ln -s "$WORK/real" "$WORK/cdi/nvtaskset.json"
	run -1 cdi add -t 8-15 --mps off --pool main a
	is_client_at=80
	[ "$(od -An -tu1 -j "$is_client_at" -N 1 "$WORK/before")" -eq 1 ]
	[ "$(od -An -tu1 -j "$is_client_at" -N 1 "$WORK/cdi/nvtaskset/.pools/main/list")" -eq 1 ]
}

@test "a change of a group whose pool cannot follow is made, and has an exit status of its own" {
	needs_containers
	nvidia_specification
	cdi add -t 0-7 --mps off --pool main a
	mount -o remount,ro "$WORK/cdi/nvtaskset/.pools/main"
	run -3 nvtaskset -tp --group "$WORK/cdi/nvtaskset/a" 8-15
	[[ "$output" == "nvtaskset: the group has changed, and its pool has not: "*"Read-only file system" ]]
	[[ "$(cdi list)" == "nvtaskset/group=a: TPCs 8-15 of GPU 0; "* ]]
	mount -o remount,rw "$WORK/cdi/nvtaskset/.pools/main"
	nvtaskset -tp --group "$WORK/cdi/nvtaskset/a" 8-15
}

@test "only who may mount makes a pool, and a failure leaves nothing" {
	needs_another_user
	chmod 755 "$HOST_DRIVER"
	mkdir "$WORK/another/cdi"
	chown 65534 "$WORK/another/cdi"
	run -1 "${ANOTHER_USER[@]}" nvtaskset cdi add -t 0 --mps off --pool main --output "$WORK/another/cdi/x.json" a
	[[ "$output" == *"--pool: a file system cannot be mounted at $WORK/another/cdi/x/.pools/main: Operation not"* ]]
	[ ! -e "$WORK/another/cdi/x.json" ]
	[ ! -e "$WORK/another/cdi/x/a" ]
}
