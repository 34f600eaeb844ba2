#!/usr/bin/env bats
# Containers with a device of nvtaskset's: what their images may be, and what they may try
# needs: tests/cdi/inject

load helpers
load containers

setup() {
	containers_begin
	mkdir "$WORK/layer"
	needs_containers
	nvidia_specification
	cdi add -t 0-15 --mps off infer
	cdi add -t 16-31 --mps off --strict strict
}

teardown() {
	containers_end
	rm -rf "${VICTIM-}"
}

PLAY() { # STEP…, in this container
	contain a "$BOTH" "$BUILD/tests/programs/play" "$@"
}

# The hook's word about a container.
trouble() { # ID
	jq -r .trouble "$WORK/cdi/nvtaskset/.containers/$1"
}

# A program of an image in which our library cannot be loaded: it runs as without, that is noted, and nothing was changed.
# With --strict it does not start.
runs_unrestricted() { # REASON PROGRAM…
	local reason=$1
	shift
	run contain a "$BOTH" "$@"
	[ "$status $output" = "0 ran" ]
	[ "$(trouble a)" = "$reason" ]
	run ! contain b nvidia.com/gpu=0,nvtaskset/group=strict "$@"
	[[ "$output" == *"nvtaskset: $reason: --strict does not start it"* ]]
	[[ "$output" != *ran* ]]
}

# --- images that others' injections have broken ---------------------------------------------------------------------------

@test "a binary that needs libcuda, ldconfig in the image, a script, another user" {
	[ "$(contain a "$BOTH" "$BUILD/tests/programs/play-needed" where)" = 0-15 ]
	[ "$(contain a "$BOTH" sh -c 'ldconfig && exec "$@"' sh "$BUILD/tests/programs/play" where)" = 0-15 ]
	[ "$(EDIT='.process.user = {uid: 65534, gid: 65534}' contain a "$BOTH" "$BUILD/tests/programs/play" where)" = 0-15 ]
	# The environment that a login cleans.
	[ "$(contain a "$BOTH" env -i NVTASKSET_TOPOLOGY="$NVTASKSET_TOPOLOGY" NVTASKSET_GROUP_FILE=/opt/nvtaskset/groups/infer "$BUILD/tests/programs/play" where)" = 0-15 ]
}

@test "a program with more privileges than its user runs" {
	cp "$BUILD/tests/programs/play" "$WORK/layer/play"
	chmod 4755 "$WORK/layer/play"
	export LAYER=$WORK/layer EDIT='.process.noNewPrivileges = false | .process.user = {uid: 65534, gid: 65534}'
	# LeakSanitizer looks into no such program.
	EDIT+=' | .process.env += ["ASAN_OPTIONS=detect_leaks=0"]'
	run contain a "$BOTH" /play open libcuda.so.1
	[ "$status $output" = "0 " ]
}

@test "an image without ld.so.conf; the driver in another directory than on the host" {
	mkdir "$WORK/layer/etc"
	mknod "$WORK/layer/etc/ld.so.conf" c 0 0
	mknod "$WORK/layer/etc/ld.so.conf.d" c 0 0
	mknod "$WORK/layer/etc/ld.so.cache" c 0 0
	[ "$(LAYER=$WORK/layer PLAY where)" = 0-15 ]
	nvidia_specification /usr/lib64
	[ "$(PLAY where)" = 0-15 ]
	[ "$(contain a nvtaskset/group=infer,nvidia.com/gpu=0 "$BUILD/tests/programs/play" where)" = 0-15 ]
}

@test "an image that sets LD_LIBRARY_PATH keeps it; where that leads to a driver, the word is clear, and --strict goes before it" {
	mkdir -p "$WORK/layer/compat" "$WORK/layer/empty"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/compat/"
	export LAYER=$WORK/layer
	[ "$(EDIT='.process.env += ["LD_LIBRARY_PATH=/empty:/usr/local/nvidia/lib64"]' PLAY where)" = 0-15 ]
	[ -z "$(trouble a)" ]
	export EDIT='.process.env += ["LD_LIBRARY_PATH=/empty:/compat"]'
	[ "$(contain a "$BOTH" printenv LD_LIBRARY_PATH)" = /empty:/compat ]
	[ "$(PLAY where)" = 0-65 ]
	[ "$(trouble a)" = "LD_LIBRARY_PATH leads to /compat/libcuda.so.1, and not to our library: clear it, or use --strict" ]
	start_container c "$BOTH" where wait
	run nvtaskset -l
	[[ "$output" == *"$PROGRAM root "*"        its partition is not in force: the driver was loaded without our library,"* ]]
	[ "$(contain b nvidia.com/gpu=0,nvtaskset/group=strict "$BUILD/tests/programs/play" where)" = 16-31 ]
}

@test "musl, and static programs: they run unrestricted, and are listed so" {
	needs musl-gcc
	mkdir "$WORK/layer/bin" "$WORK/layer/lib"
	musl-gcc -x c - -o "$WORK/layer/bin/ran" <<<'#include <stdio.h>
		int main(void) { return puts("ran") < 0; }'
	cp -L /lib/ld-musl-*.so.1 "$WORK/layer/lib/"
	export IMAGE=$WORK/layer
	runs_unrestricted "the image has no glibc for $(uname -m | tr _ -), which our library needs" /bin/ran
	contain c "$BOTH" /bin/ran
	[ "$(find "$WORK/layer" -type f | wc -l)" -eq 2 ]
	cdi list | grep -q 'group=infer: TPCs 0-15'
}

# A program that needs no library, so that only the image's libc counts.
make_static() {
	mkdir -p "$WORK/layer/bin" "$WORK/layer/lib64"
	${CC:-cc} -static -x c - -o "$WORK/layer/bin/ran" <<<'#include <stdio.h>
		int main(void) { return puts("ran") < 0; }'
	cp -L /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/libc.so.6 "$WORK/layer/lib64/"
	export IMAGE=$WORK/layer
}

@test "an older glibc, another architecture, no driver, a configuration without ld.so.conf.d" {
	[ "$(uname -m)" = x86_64 ] || skip "for x86-64"
	make_static
	LC_ALL=C sed -i 's/GLIBC_2\.3[2-9]/GLIBC_2.3x/g; s/GLIBC_2\.4/GLIBC_x.4/g' "$WORK/layer/lib64/libc.so.6"
	runs_unrestricted "the image has glibc 2.31, and our library needs 2.34" /bin/ran
	make_static
	printf '\xb7' | dd of="$WORK/layer/lib64/libc.so.6" bs=1 seek=18 conv=notrunc status=none
	runs_unrestricted "the image has no glibc for x86-64, which our library needs" /bin/ran
	make_static
	run contain a nvtaskset/group=infer /bin/ran
	[ "$status $output" = "0 ran" ]
	[ "$(trouble a)" = "no NVIDIA driver is in it: give it a GPU, too (nvidia.com/gpu)" ]
	[ ! -e "$WORK/layer/etc" ]
	mkdir "$WORK/layer/etc"
	echo /usr/local/lib >"$WORK/layer/etc/ld.so.conf"
	runs_unrestricted "its /etc/ld.so.conf does not include /etc/ld.so.conf.d first" /bin/ran
}

# As with podman without root, and pods with hostUsers: false.
@test "a container with users of its own: its program is inside, an edit reaches it, and -l shows it" {
	directory=/lib/$(uname -m)-linux-gnu
	linker=$(ldd "$BUILD/tests/programs/play" | awk '$1 ~ /ld-linux/ {print $1}')
	mkdir -p "$WORK/empty" "$WORK/layer$directory" "$WORK/layer${linker%/*}" "$WORK/layer/etc"
	# shellcheck disable=SC2046 # several words
	cp -L "$linker" $(ldd "$BUILD/tests/programs/play" | awk '/=>/ {print $3}') "$WORK/layer$directory"
	[ -e "$WORK/layer$linker" ] || ln -s "$directory/${linker##*/}" "$WORK/layer$linker"
	chmod 711 "$WORK/bundles"
	export LAYER=$WORK/layer IMAGE=$WORK/empty OWNER=100000
	export EDIT='.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] |
		.linux.gidMappings = .linux.uidMappings'
	start_container a "$BOTH" where wait where wait
	[ "$(head -n 1 "$WORK/a")" = 0-15 ]
	[ "$(stat -c %u "/proc/$PROGRAM")" = 100000 ]
	nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer" 40
	kill -USR1 "$PROGRAM"
	wait_until grep -qx 40 "$WORK/a"
	[[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 40" ]]
	nvtaskset -l --json | jq -e --argjson pid "$PROGRAM" '.processes[] | select(.pid == $pid) | .group.name == "infer"'
}

# --- hostile images -------------------------------------------------------------------------------------------------------

@test "links of an image lead nowhere on the host, and nothing there makes the hook wait" {
	VICTIM=$(mktemp -d /tmp/victim.XXXXXX)
	mkdir "$VICTIM/ld.so.conf.d"
	echo untouched >"$VICTIM/file"
	mkdir -p "$WORK/layer/usr/lib64"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/usr/lib64/libcuda.so.1"
	for link in "$VICTIM" "../../../../../../..$VICTIM"; do
		rm -rf "$WORK/layer/etc" && mkdir "$WORK/layer/etc"
		ln -s "$link/ld.so.conf.d" "$WORK/layer/etc/ld.so.conf.d"
		ln -s "$link/file" "$WORK/layer/etc/ld.so.cache"
		ln -s "$link/new" "$WORK/layer/etc/ld.so.conf"
		LAYER=$WORK/layer run contain a nvtaskset/group=infer "$BUILD/tests/programs/play" where
		echo "$output; $(trouble a)"
		rm -rf "$WORK/layer/etc"
		ln -s "$link" "$WORK/layer/etc"
		LAYER=$WORK/layer run contain b nvtaskset/group=infer true
		echo "$output; $(trouble b)"
	done
	[ "$(find "$VICTIM" -type f)" = "$VICTIM/file" ]
	[ "$(cat "$VICTIM/file")" = untouched ]
	# Pipes where files are read, files where directories are.
	[ "$(uname -m)" = x86_64 ] || return 0
	rm -rf "$WORK/layer" && mkdir "$WORK/layer"
	make_static
	rm "$WORK/layer/lib64/libc.so.6"
	mkfifo "$WORK/layer/lib64/libc.so.6"
	[ "$(contain a "$BOTH" /bin/ran)" = ran ]
	rm "$WORK/layer/lib64/libc.so.6"
	make_static
	mkdir "$WORK/layer/etc"
	: >"$WORK/layer/etc/ld.so.conf.d"
	[ "$(contain a nvtaskset/group=infer /bin/ran)" = ran ]
}

@test "an image in which ldconfig waits for ever: neither the hook nor ldconfig does" {
	mkdir -p "$WORK/layer/etc" "$WORK/layer/usr/lib64"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/usr/lib64/"
	mkfifo "$WORK/layer/etc/ld.so.conf"
	export LAYER=$WORK/layer
	[ "$(contain a nvtaskset/group=infer echo ran)" = ran ]
	[ "$(trouble a)" = "the host's ldconfig failed in the image" ]
}

# --- hostile containers ---------------------------------------------------------------------------------------------------

@test "a container cannot change its group, nor see another's" {
	start_container victim nvidia.com/gpu=0,nvtaskset/group=strict where wait
	make_script "$WORK/attack" '#!/bin/bash' 'group=/opt/nvtaskset/groups/infer' \
		'{ : >$group; } 2>/dev/null && echo "wrote its group"' \
		'rm -f $group 2>/dev/null && echo "removed its group"' \
		'mount -o remount,rw $group 2>/dev/null && echo "mounted it for writing"' \
		'{ : >/opt/nvtaskset/lib/libcuda.so.1; } 2>/dev/null && echo "wrote the library"' \
		'"$1/nvtaskset" -tp --group $group 40 2>/dev/null && echo "changed its group"' \
		'"$1/nvtaskset" --mps off -t 40 true 2>/dev/null && echo "left its group"' \
		'ls /opt/nvtaskset/groups' \
		'"$1/nvtaskset" -l 2>/dev/null | wc -l' \
		'"$1/nvtaskset" --mps off -t 3 "$1/tests/programs/play" where'
	run contain a "$BOTH" "$WORK/attack" "$BUILD"
	[ "$output" = "infer
1
3" ]
	[ "$(nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer" | sed 's/.*: //')" = 0-15 ]
	[ "$(list_of "$PROGRAM")" = 16-31 ]
}

# A program's segment is its own, and it may write there what it likes.
@test "what a container's programs offer to the host's root costs a bounded time" {
	for trick in "environ 1024" unmapped "lock 60" damaged names; do
		start_container_with ready hostile "$BOTH" "$BUILD/tests/programs/hostile" $trick
		for command in -l "top --once --delay 0.1" metrics "cdi list --output $WORK/cdi/nvtaskset.json" "-p $PROGRAM"; do
			status=0
			timeout 60 nvtaskset $command >"$WORK/answer" 2>&1 || status=$?
			[ "$status" -le 1 ] || { echo "$trick: $command: status $status"; cat "$WORK/answer"; false; }
		done
		containers_kill
	done
}
