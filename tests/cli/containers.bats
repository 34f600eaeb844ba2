#!/usr/bin/env bats
# nvtaskset cdi: containers get a partition as a device
# needs: tests/cdi/inject

load helpers
load containers

setup() {
	containers_begin
}

teardown() {
	end_daemons "$HOST_DRIVER/[ab]"
	containers_end
}

# --- the specification ---------------------------------------------------------------------------------------------------

@test "the specification, as a whole" {
	run cdi add -t 0-15 --mps off infer
	[ "$status $output" = "0 nvtaskset/group=infer: TPCs 0-15 of GPU 0" ]
	BUILD=$(realpath "$BUILD")
	options='["bind", "ro", "nosuid", "nodev"]'
	diff <(jq . "$WORK/cdi/nvtaskset.json") <(jq . <<-EOF
		{"cdiVersion": "0.3.0", "kind": "nvtaskset/group", "devices": [{"name": "infer", "containerEdits": {
			"env": ["NVTASKSET_GROUP_FILE=/opt/nvtaskset/groups/infer", "CUDA_MPS_PIPE_DIRECTORY=/dev/null"],
			"mounts": [
				{"hostPath": "$BUILD/lib", "containerPath": "/opt/nvtaskset/lib", "options": $options},
				{"hostPath": "$WORK/cdi/nvtaskset/.front", "containerPath": "/opt/nvtaskset/front", "options": $options},
				{"hostPath": "$WORK/cdi/nvtaskset/infer", "containerPath": "/opt/nvtaskset/groups/infer", "options": $options}],
			"hooks": [{"hookName": "createContainer", "path": "$BUILD/nvtaskset",
				"args": ["nvtaskset-cdi-hook", "$WORK/cdi/nvtaskset/infer", "$HOST_DRIVER", ""],
				"env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "timeout": 60}]}}]}
	EOF
	)
	# For people, too.
	grep -qx '      "name": "infer",' "$WORK/cdi/nvtaskset.json"
}

# A member of the first device of this name.
edits_of() { # NAME, and what jq is to print
	jq -c --arg name "$1" "[.devices[] | select(.name == \$name).containerEdits] | .[0]$2" "$WORK/cdi/nvtaskset.json"
}

@test "devices are added, changed, listed and removed; the version is the lowest" {
	cdi add -t 0-15 --mps off infer
	run -0 cdi add -t 16-31 --quota 30% batch
	[ "${lines[0]}" = "nvtaskset: --quota: without MPS, its containers take turns on the GPU (--mps off)" ]
	[ "$(edits_of batch .env)" = '["NVTASKSET_GROUP_FILE=/opt/nvtaskset/groups/batch","CUDA_MPS_PIPE_DIRECTORY=/dev/null"]' ]
	cdi add -t 0-7 --priority 80 --weight 200 --hide --on-misfit fail infer
	[ "$(edits_of infer .env)" = '["NVTASKSET_GROUP_FILE=/opt/nvtaskset/groups/infer","CUDA_MPS_PIPE_DIRECTORY=/dev/null","NVTASKSET_HIDE=1","NVTASKSET_ON_MISFIT=fail"]' ]
	run cdi list
	[ "$output" = "nvtaskset/group=infer: TPCs 0-7 of GPU 0; priority 80, weight 200
nvtaskset/group=batch: TPCs 16-31 of GPU 0; quota 30ms/100ms" ]
	[[ "$(nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer")" = "group $WORK/cdi/nvtaskset/infer's current TPC list: 0-7"* ]]
	cdi add -t 40 --mps off 7b
	[ "$(jq -r .cdiVersion "$WORK/cdi/nvtaskset.json")" = 0.5.0 ]
	cdi remove 7b
	[ "$(jq -r .cdiVersion "$WORK/cdi/nvtaskset.json")" = 0.3.0 ]
	cdi remove infer
	[ "$(jq -c '[.devices[].name]' "$WORK/cdi/nvtaskset.json")" = '["batch"]' ]
	[ ! -e "$WORK/cdi/nvtaskset/infer" ]
	refuses "infer: no device of $WORK/cdi/nvtaskset.json" cdi remove infer
	cdi remove batch
	[ ! -e "$WORK/cdi/nvtaskset.json" ]
	[[ "$(cdi list)" == "No devices in $WORK/cdi/nvtaskset.json; to make one: nvtaskset cdi add "* ]]
}

@test "what is refused changes nothing" {
	[ "$(cdi add -n 66 --mps off --dry-run infer)" = 0-65 ]
	for name in .a a- a@b a+b _a 7 "a/b"; do
		refuses "$name: a device's name begins and ends with a letter or a digit, has letters, digits and ._:-, at most 63, and is no number alone" \
			cdi add -t 0 --mps off "$name"
	done
	refuses "TPC 66: this GPU has TPCs 0-65" cdi add -t 66 --mps off infer
	refuses "cdi add: a SET and a NAME are needed; try 'nvtaskset cdi --help'" cdi add -t 0-7
	refuses "cdi: no NAME; try 'nvtaskset cdi --help'" cdi remove
	refuses "'b': not one of its words; try 'nvtaskset cdi --help'" cdi add -t 0-7 a b
	refuses "'--strict': options come before NAME, as in 'nvtaskset cdi add -t 0-7 NAME'" cdi add -t 0-7 a --strict
	refuses "specification.txt: must be an absolute path that ends in .json: runtimes read no other files" \
		nvtaskset cdi add -t 0 --mps off --output specification.txt a
	refuses "--lend: TPCs are lent under MPS only; leave it out, or use --mps on" cdi add -t 0-7 --mps off --lend infer
	[ "$(cdi add -t 0-7 --mps off --dry-run infer)" = 0-7 ]
	[ -z "$(ls "$WORK/cdi/nvtaskset" 2>/dev/null)" ]
	[ ! -e "$WORK/cdi/nvtaskset.json" ]
	echo '{"kind": "vendor.com/device", "devices": []}' >"$WORK/cdi/nvtaskset.json"
	refuses "$WORK/cdi/nvtaskset.json: not a specification of nvtaskset's: remove it" cdi add -t 0-7 --mps off infer
	# An unreadable file may be a specification.
	ln -sf nvtaskset.json "$WORK/cdi/nvtaskset.json"
	refuses "$WORK/cdi/nvtaskset.json: Too many levels of symbolic links" cdi add -t 0-7 --mps off infer
}

@test "what a killed command has left of a device can be removed" {
	cdi add -t 0-59 --mps off infer
	jq 'del(.devices[])' "$WORK/cdi/nvtaskset.json" >"$WORK/without"
	cp "$WORK/without" "$WORK/cdi/nvtaskset.json"
	refuses "../nvtaskset/infer: no device of $WORK/cdi/nvtaskset.json" cdi remove ../nvtaskset/infer
	cdi remove infer
	[ ! -e "$WORK/cdi/nvtaskset/infer" ]
	cdi add -n 60 --mps off other
}

@test "a device whose groups' directory was removed can be removed" {
	cdi add -t 0-7 --mps off a
	rm -r "$WORK/cdi/nvtaskset"
	cdi remove a
	[ ! -e "$WORK/cdi/nvtaskset.json" ]
}

@test "those that choose at once get different TPCs, and all are in the specification" {
	for i in 1 2 3 4 5 6; do
		cdi add -n 11 --mps off "pod$i" >"$WORK/out$i" 2>&1 3>&- &
	done
	wait
	cat "$WORK"/out*
	[ "$(jq '.devices | length' "$WORK/cdi/nvtaskset.json")" -eq 6 ]
	refuses "1 TPC: none of this GPU's 66 is free; see nvtaskset -l" cdi add -n 1 --mps off more
	[ ! -e "$WORK/cdi/nvtaskset/more" ]
	cdi remove pod3
	cdi add -n 11 --mps off more
}

@test "devices that are added and removed at once are all in the specification, or all gone" {
	for i in 0 1 2 3 4 5 6 7; do
		cdi add -t "$i" --mps off "old$i"
	done
	for i in 0 1 2 3 4 5 6 7; do
		cdi add -t "$i" --mps off "new$i" 3>&- &
		cdi remove "old$i" 3>&- &
	done
	wait
	jq -r '.devices[].name' "$WORK/cdi/nvtaskset.json" | sort | diff - <(printf '%s\n' new{0..7})
	ls "$WORK/cdi/nvtaskset" | diff - <(printf '%s\n' new{0..7})
}

# A round of some ten meets the moment between both commands.
@test "a device that is added and removed at once has its group, or neither is there" {
	for i in {1..60}; do
		cdi add -t 0-7 --mps off a
		cdi remove a 3>&- &
		run cdi add -t 0-7 --mps off a
		wait
		[ "$status" -eq 0 ]
		listed=$(jq -r '.devices[].name' "$WORK/cdi/nvtaskset.json" 2>/dev/null || true)
		[ "$listed" = "$(ls "$WORK/cdi/nvtaskset")" ]
		[ -z "$listed" ] || cdi remove a
	done
}

@test "a device stays as it was where the specification cannot be written" {
	cdi add -t 0-7 --mps off a
	mv "$WORK/cdi/nvtaskset.json" "$WORK/real"
	ln -s "$WORK/real" "$WORK/cdi/nvtaskset.json"
	run -1 cdi add -t 8-15 --mps off a
	[[ "$(nvtaskset -tp --group "$WORK/cdi/nvtaskset/a")" = *"current TPC list: 0-7"* ]]
}

@test "a failed add gives containers that run no setting and no GPU that they did not have" {
	own_gpus h200-x2
	cdi add --mps off -G 0 --weight 200 -t 0-7 a
	nvtaskset --json -p --group "$WORK/cdi/nvtaskset/a" | jq "del(.time_ms)" >"$WORK/before"
	mv "$WORK/cdi/nvtaskset.json" "$WORK/real"
	ln -s "$WORK/real" "$WORK/cdi/nvtaskset.json"
	run -1 cdi add --mps off -G all --quota 30% --memory 1G --priority 80 --weight 300 -t 8-15 a
	nvtaskset --json -p --group "$WORK/cdi/nvtaskset/a" | jq "del(.time_ms)" | diff "$WORK/before" -
}

@test "a device without a name, of another program, harms no command" {
	cdi add -t 0-7 --mps off a
	jq '.devices = [{"containerEdits": {}}] + .devices' "$WORK/cdi/nvtaskset.json" >"$WORK/edited"
	cp "$WORK/edited" "$WORK/cdi/nvtaskset.json"
	cdi add -t 8-15 --mps off b
	cdi remove a
	[ "$(jq -c '[.devices[].name]' "$WORK/cdi/nvtaskset.json")" = '[null,"b"]' ]
}

@test "MPS: a device has the pipes of its daemon, at another place, and no others" {
	export PATH=$ROOT/tests/fake-mps:$PATH FAKE_MPS_LINGER=600
	for name in a b; do
		CUDA_MPS_PIPE_DIRECTORY=$HOST_DRIVER/$name nvidia-cuda-mps-control -d 3>&-
	done
	CUDA_MPS_PIPE_DIRECTORY=$HOST_DRIVER/a cdi add -t 0-15 --memory 2G --priority 20 --mps on a
	CUDA_MPS_PIPE_DIRECTORY=$HOST_DRIVER/b cdi add -t 16-31 --lend --connections 2 b
	[ "$(edits_of a .env)" = '["NVTASKSET_GROUP_FILE=/opt/nvtaskset/groups/a","CUDA_MPS_PIPE_DIRECTORY=/opt/nvtaskset/mps","CUDA_DEVICE_MAX_CONNECTIONS=8","CUDA_MPS_CLIENT_PRIORITY=1"]' ]
	[ "$(edits_of b .env)" = '["NVTASKSET_GROUP_FILE=/opt/nvtaskset/groups/b","CUDA_MPS_PIPE_DIRECTORY=/opt/nvtaskset/mps","CUDA_DEVICE_MAX_CONNECTIONS=2"]' ]
	[ "$(edits_of b '.mounts[3] | [.hostPath, .containerPath, .options[1]]')" = "[\"$HOST_DRIVER/b\",\"/opt/nvtaskset/mps\",\"rw\"]" ]
	refuses "MPS: no control daemon runs in $WORK/mps" cdi add -t 32-40 --lend c
	run -0 cdi add -t 32-40 c
	[ "${lines[0]}" = "nvtaskset: MPS: no control daemon runs in $WORK/mps: its containers take turns on the GPU with others (--mps off)" ]
	needs_containers
	[ "$(contain x nvtaskset/group=a sh -c 'test -e /opt/nvtaskset/mps/control && test ! -e "$0" && echo own' "$HOST_DRIVER")" = own ]
	[ "$(contain y nvtaskset/group=c sh -c 'test ! -e /opt/nvtaskset/mps && echo "$CUDA_MPS_PIPE_DIRECTORY"')" = /dev/null ]
}

@test "output that is lost does not hide that a device was made" {
	run -3 bash -c "nvtaskset cdi add --output '$WORK/cdi/nvtaskset.json' -t 0-7 --mps off a >/dev/full"
	[ "$output" = "nvtaskset: standard output: No space left on device; the change has been made" ]
	[ "$(edits_of a '.env[1]')" = '"CUDA_MPS_PIPE_DIRECTORY=/dev/null"' ]
	run -1 bash -c "nvtaskset cdi add --output '$WORK/cdi/nvtaskset.json' -t 8-15 --mps off --dry-run b >/dev/full"
	[ "$output" = "nvtaskset: standard output: No space left on device" ]
}

@test "an installation that others can change is not given to containers" {
	needs_root
	mkdir "$WORK/bin"
	cp -rL "$BUILD/nvtaskset" "$BUILD/lib" "$WORK/bin"
	run -1 "$WORK/bin/nvtaskset" cdi add -t 0 --mps off --output "$WORK/cdi/nvtaskset.json" infer
	[[ "$output" == *": others can write there, and containers would load our library from there: install nvtaskset elsewhere" ]]
}

# A device with TPCs 0-15, for containers that can have NVIDIA's.
give_infer() {
	needs_containers
	nvidia_specification
	cdi add -t 0-15 --mps off infer
}

# --- in containers ---------------------------------------------------------------------------------------------------------

@test "an unmodified program runs inside its partition, whichever hook runs first, in each runtime" {
	give_infer
	for RUNTIME in runc crun; do
		command -v "$RUNTIME" || continue
		[ "$(contain "a$RUNTIME" nvidia.com/gpu=0,nvtaskset/group=infer "$BUILD/tests/programs/play" where)" = 0-15 ]
		[ "$(contain "b$RUNTIME" nvtaskset/group=infer,nvidia.com/gpu=0 "$BUILD/tests/programs/play" where)" = 0-15 ]
	done
	# Without the device, as before.
	[ "$(contain c nvidia.com/gpu=0 "$BUILD/tests/programs/play" where)" = 0-65 ]
}

@test "Triton's launchers are built in a container, and run inside its partition" {
	needs_containers
	needs gcc
	nvidia_specification
	cdi add -t 3-5 infer
	for how in --as-needed --no-as-needed; do
		run contain a "$BOTH" env BUILD="$(realpath "$BUILD")" "$ROOT/tests/cli/launcher" "$WORK" "-Wl,$how" -l:libcuda.so.1
		[ "$output" = $'libcuda.so.1\n3-5' ]
	done
}

@test "a program in a container obeys its group, whatever its environment says" {
	give_infer
	cdi add -t 16-23 --mps off other
	play=$BUILD/tests/programs/play
	bare="env -i NVTASKSET_TOPOLOGY=$NVTASKSET_TOPOLOGY" # where the simulated GPU is
	[ "$(contain a "$BOTH" $bare "$play" where)" = 0-15 ]
	[ "$(contain b "$BOTH" env NVTASKSET_GROUP_FILE="$WORK/cdi/nvtaskset/other" "$play" where)" = 0-15 ]
	# What the container puts there is not mounted.
	[ "$(contain c "$BOTH" sh -c 'cp "$0" /opt/nvtaskset/groups/a; NVTASKSET_GROUP_FILE=/opt/nvtaskset/groups/a exec "$1" where' "$WORK/cdi/nvtaskset/other" "$play")" = 0-15 ]
	# A volume of the image's is, and is no file.
	volume='.mounts += [{destination: "/opt/nvtaskset/groups/a", source: "tmpfs", type: "tmpfs", options: []}]'
	[ "$(EDIT=$volume contain v "$BOTH" env NVTASKSET_GROUP_FILE=/opt/nvtaskset/groups/a "$play" where)" = 0-15 ]
	[ "$(contain d "$BOTH" $bare "$BUILD/nvtaskset" --mps off -t 0-3 "$play" where)" = 0-3 ]
	run ! contain e "$BOTH" $bare "$BUILD/nvtaskset" --mps off -t 40 "$play" where
	# Of two devices, the environment may choose.
	two=nvidia.com/gpu=0,nvtaskset/group=infer,nvtaskset/group=other
	[ "$(contain f "$two" "$play" where)" = 16-23 ]
	[ "$(contain g "$two" $bare "$play" where)" = 0-15 ]
}

@test "edits from the host reach it, and -l, top and metrics show it" {
	give_infer
	cdi add -t 16-23 --mps off other
	start_container a "$BOTH" where wait where wait where wait where wait
	infer=$PROGRAM
	start_container b nvidia.com/gpu=0,nvtaskset/group=other where wait
	[ "$(head -n 1 "$WORK/a")" = 0-15 ]
	[ "$(nvtaskset -tp "$infer") $(nvtaskset -tp "$PROGRAM")" = "pid $infer's current TPC list: 0-15 pid $PROGRAM's current TPC list: 16-23" ]
	nvtaskset -tp 3 "$infer"
	kill -USR1 "$infer"
	wait_until grep -qx 3 "$WORK/a"
	nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer" 4
	kill -USR1 "$infer"
	wait_until grep -qx 4 "$WORK/a"
	cdi add -t 5 --quota 40% infer
	[[ "$(nvtaskset -l)" == *"quota 40ms/100ms"* ]]
	kill -USR1 "$infer"
	wait_until grep -qx 5 "$WORK/a"
	run cdi list
	[ "$output" = "nvtaskset/group=infer: TPCs 5 of GPU 0; quota 40ms/100ms
        container a, pid $infer
nvtaskset/group=other: TPCs 16-23 of GPU 0
        container b, pid $PROGRAM" ]
	# Where these pids mean nothing, none is listed, and none forgotten.
	[[ "$(unshare --pid --fork --mount-proc nvtaskset cdi list --output "$WORK/cdi/nvtaskset.json")" != *container* ]]
	[ "$(cdi list)" = "$output" ]
	[ "$(nvtaskset -l --json | jq -c --argjson pid "$PROGRAM" '.processes[] | select(.pid == $pid) | [.partitions[0].tpc_list, .group.name]')" = '["16-23","other"]' ]
	[[ "$(nvtaskset top --once --delay 0.1)" == *"$PROGRAM"* ]]
	[[ "$(nvtaskset metrics)" == *"pid=\"$PROGRAM\""* ]]
	containers_kill
	[[ "$(cdi list)" != *container* ]]
	[ -z "$(ls "$WORK/cdi/nvtaskset/.containers")" ]
}

# --- what the host shows of them ------------------------------------------------------------------------------------------

ID=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
UID_OF_POD=12345678-9abc-def0-1234-56789abcdef0

# The host's notes are in /run/cdi.
on_host() { # COMMAND…
	unshare -m bash -c 'mount -t tmpfs none /run && mkdir /run/cdi && mount --bind "$0" /run/cdi && exec "$@"' "$WORK/cdi" "$@"
}

# Everything that names a container or a pod: the list, top, the document, and the labels of its metrics.
is_shown_in() { # WORKLOAD LABELS
	on_host nvtaskset -l | grep -qx "        in $1"
	on_host nvtaskset top --once --delay 0.1 | grep -q " $1 "
	on_host nvtaskset metrics | grep -F "pid=\"$PROGRAM\",user=\"root\",$2,command="
}

# The pod's sandbox, as containerd and CRI-O describe it to the hook.
pod_by_containerd='.annotations = {"io.kubernetes.cri.sandbox-name": "infer-x7k2p", "io.kubernetes.cri.sandbox-namespace": "team-a",
	"io.kubernetes.cri.container-name": "main"}'
pod_by_crio='.annotations = {"io.kubernetes.pod.name": "infer-x7k2p", "io.kubernetes.pod.namespace": "team-a",
	"io.kubernetes.container.name": "main"}'

@test "a container and its pod, in each runtime's control group" {
	give_infer
	container='container="0123456789ab"'
	pod="pod_uid=\"$UID_OF_POD\""
	all="namespace=\"team-a\",pod=\"infer-x7k2p\",$pod,container=\"main\""
	systemd=kubepods-burstable-pod${UID_OF_POD//-/_}.slice
	i=0
	while read -r path edit shown labels; do
		EDIT=".linux.cgroupsPath = \"$path\" | ${!edit-.}" start_container "${ID%?}$((i++))" "$BOTH" where wait
		echo "$path: $(cat "/proc/$PROGRAM/cgroup")"
		is_shown_in "${shown/¤/ }" "$labels"
		containers_kill
	done <<-EOF
		/docker/${ID%?}0 none 0123456789ab $container
		/system.slice/docker-${ID%?}1.scope none 0123456789ab $container
		/libpod_parent/libpod-${ID%?}2 none 0123456789ab $container
		/machine.slice/libpod-${ID%?}3.scope/container none 0123456789ab $container
		/kubepods/burstable/pod$UID_OF_POD/${ID%?}4 pod_by_containerd team-a/infer-x7k2p/main $all
		/kubepods.slice/$systemd/cri-containerd-${ID%?}5.scope pod_by_containerd team-a/infer-x7k2p/main $all
		/system.slice/containerd.service/$systemd:cri-containerd:${ID%?}6 pod_by_containerd team-a/infer-x7k2p/main $all
		/kubepods/besteffort/pod$UID_OF_POD/crio-${ID%?}7 pod_by_crio team-a/infer-x7k2p/main $all
		/kubepods.slice/$systemd/crio-${ID%?}8.scope pod_by_crio team-a/infer-x7k2p/main $all
		/kubepods/pod$UID_OF_POD/${ID%?}9 none 0123456789ab $pod,$container
		/slurm/uid_0/job_4711/step_0/task_0 none job¤4711 hpc_job="4711"
	EOF
}
