# Containers, made by a real runtime (tests/cdi/run), whose devices a real loader of CDI gives to them (tests/cdi/inject.go). Their
# image is this machine's root, under an empty layer, unless IMAGE names a directory.

OWN_GPUS=yes
eval "common_$(declare -f setup)"

containers_begin() {
	common_setup
	mkdir "$WORK/cdi"
	driver_of_host
}

needs_containers() {
	needs_root
	needs runc
	[ -x "$BUILD/tests/cdi/inject" ] || skip "needs go, and golang-github-container-orchestrated-devices-container-device-interface-dev"
	contain probe "" true >/dev/null 2>"$WORK/why" || skip "containers cannot be made here: $(tail -n 1 "$WORK/why")"
}

# The host's driver is where no container has anything.
driver_of_host() {
	HOST_DRIVER=$(mktemp -d /dev/shm/driver.XXXXXX)
	cp "$BUILD/sim/libcuda.so.1" "$HOST_DRIVER/"
	export NVTASKSET_DRIVER=$HOST_DRIVER/libcuda.so.1
}

contain() { # ID DEVICES COMMAND…
	env BUILD="$(realpath "$BUILD")" WORK="$WORK" ROOT="$ROOT" "$ROOT/tests/cdi/run" "${RUNTIME-runc}" "$@" 3>&-
}

cdi() { # WORD, options and arguments
	nvtaskset cdi "$1" --output "$WORK/cdi/nvtaskset.json" "${@:2}"
}

# A specification as NVIDIA's toolkit generates it: the driver's file is mounted, and hooks make a link and the dynamic linker's cache.
nvidia_specification() { # [DIRECTORY: where the driver is in the container]
	local directory=${1-/usr/lib/$(uname -m)-linux-gnu}
	cat >"$WORK/cdi/nvidia.json" <<-EOF
		{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
		 "devices": [{"name": "0", "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}}],
		 "containerEdits": {
		  "mounts": [{"hostPath": "$(realpath "$BUILD/sim/libcuda.so.1")", "containerPath": "$directory/libcuda.so.580.159.04",
		              "options": ["ro", "nosuid", "nodev", "bind"]}],
		  "hooks": [
		   {"hookName": "createContainer", "path": "$ROOT/tests/cdi/nvidia-cdi-hook",
		    "args": ["nvidia-cdi-hook", "create-symlinks", "--link", "libcuda.so.580.159.04::$directory/libcuda.so.1"],
		    "env": ["NVIDIA_CTK_DEBUG=false", "PATH=$PATH"]},
		   {"hookName": "createContainer", "path": "$ROOT/tests/cdi/nvidia-cdi-hook",
		    "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "$directory"],
		    "env": ["NVIDIA_CTK_DEBUG=false", "PATH=$PATH"]}]}}
	EOF
}

BOTH=nvidia.com/gpu=0,nvtaskset/group=infer

# Starts a container whose program says so when it is ready. PROGRAM is its pid here; its output is in WORK/ID.
start_container_with() { # WORD ID DEVICES COMMAND…
	: >"$WORK/$2"
	contain "${@:2}" >"$WORK/$2" 2>"$WORK/$2.errors" &
	wait_until grep -q "$1" "$WORK/$2" || {
		cat "$WORK/$2.errors"
		return 1
	}
	# The runtime writes it when the program runs.
	wait_until [ -s "$WORK/bundles/$2/pid" ]
	PROGRAM=$(cat "$WORK/bundles/$2/pid")
}

# The program runs given steps (tests/programs/play.c), the last of which waits.
start_container() { # ID DEVICES STEP…
	start_container_with waiting "$1" "$2" "$BUILD/tests/programs/play" "${@:3}"
}

# From now on, containers have a namespace of users, with COUNT users from the host's user 100000 on.
# The image has all files for play.
have_users() { # COUNT
	local directory linker
	directory=/lib/$(uname -m)-linux-gnu
	linker=$(ldd "$BUILD/tests/programs/play" | awk '$1 ~ /ld-linux/ {print $1}')
	mkdir -p "$WORK/empty" "$WORK/layer$directory" "$WORK/layer${linker%/*}" "$WORK/layer/etc"
	# shellcheck disable=SC2046 # several words
	cp -L "$linker" $(ldd "$BUILD/tests/programs/play" | awk '/=>/ {print $3}') "$WORK/layer$directory"
	[ -e "$WORK/layer$linker" ] || ln -s "$directory/${linker##*/}" "$WORK/layer$linker"
	chmod 711 "$WORK/bundles"
	export LAYER=$WORK/layer IMAGE=$WORK/empty OWNER=100000
	export EDIT=".linux.namespaces += [{type: \"user\"}] |
		.linux.uidMappings = [{containerID: 0, hostID: 100000, size: $1}] |
		.linux.gidMappings = .linux.uidMappings |
		.mounts |= map(.options = [.options[]? | select(. != \"gid=5\")])"
}

containers_kill() {
	local id
	for id in "$WORK"/state/*; do
		[ ! -d "$id" ] || runc --root "$WORK/state" kill "${id##*/}" KILL 2>/dev/null || true
	done
	wait
}

containers_end() {
	containers_kill
	rm -rf "${HOST_DRIVER-}" "$WORK"
}
