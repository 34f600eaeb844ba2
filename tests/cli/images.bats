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

@test "links inside the image are followed; what is mounted in /etc is not written, and named" {
	mkdir -p "$WORK/layer/etc" "$WORK/layer/opt/conf" "$WORK/layer/usr/lib64"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/usr/lib64/"
	ln -s /opt/conf "$WORK/layer/etc/ld.so.conf.d"
	echo untouched >"$WORK/file"
	ln -s "$WORK/file" "$WORK/layer/etc/ld.so.cache"
	export LAYER=$WORK/layer
	[ "$(contain a nvtaskset/group=infer "$BUILD/tests/programs/play" where)" = 0-15 ]
	[ "$(cat "$WORK/file")" = untouched ]
	# Volumes: at the link's place, and one for all of /etc, with that link.
	mkdir -p "$WORK/volume/etc"
	cp /etc/ld.so.conf "$WORK/volume/etc/"
	ln -s /opt/conf "$WORK/volume/etc/ld.so.conf.d"
	for name in opt/conf etc; do
		mkdir -p "$WORK/volume/$name"
		EDIT=".mounts += [{destination: \"/$name\", source: \"$WORK/volume/$name\", type: \"bind\", options: [\"bind\"]}]" \
			contain "${name%%/*}" nvtaskset/group=infer true
	done
	[ "$(trouble opt)" = "/etc/ld.so.conf.d: a mount hides the file that the hook has written in the image" ]
	[ "$(trouble etc)" = "/etc/ld.so.cache: a mount hides the file that the hook has written in the image" ]
	[ "$(cd "$WORK/volume" && find . ! -type d | sort)" = "./etc/ld.so.conf
./etc/ld.so.conf.d" ]
}

@test "an image that sets LD_LIBRARY_PATH keeps it; where that leads to a driver, the word is clear, and --strict goes before it" {
	mkdir -p "$WORK/layer/compat" "$WORK/layer/empty"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/compat/"
	export LAYER=$WORK/layer
	[ "$(EDIT='.process.env += ["LD_LIBRARY_PATH=/empty:/usr/local/nvidia/lib64"]' PLAY where)" = 0-15 ]
	[ -z "$(trouble a)" ]
	# The reason is cut in the middle of a character.
	for ((letters = 60; letters < 64; letters++)); do
		directory=$(printf '€%.0s' $(seq "$letters"))
		mkdir "$WORK/layer/$directory"
		cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/$directory/"
		EDIT=".process.env += [\"LD_LIBRARY_PATH=/$directory\"]" contain a "$BOTH" true
		[[ "$(trouble a)" = "LD_LIBRARY_PATH leads to /€€€"* ]]
	done
	EDIT='.process.env += ["LD_LIBRARY_PATH=/empty;/compat"]' contain a "$BOTH" true
	[[ "$(trouble a)" = "LD_LIBRARY_PATH leads to /compat/"* ]]
	export EDIT='.process.env += ["LD_LIBRARY_PATH=/empty:/compat"]'
	[ "$(contain a "$BOTH" printenv LD_LIBRARY_PATH)" = /empty:/compat ]
	[ "$(PLAY where)" = 0-65 ]
	[ "$(trouble a)" = "LD_LIBRARY_PATH leads to /compat/libcuda.so.1, and not to our library: clear it, or use --strict" ]
	start_container c "$BOTH" where wait
	run nvtaskset -l
	[[ "$output" == *"$PROGRAM root "*"        its partition is not in force: the driver was loaded without our library,"* ]]
	[ "$(contain b nvidia.com/gpu=0,nvtaskset/group=strict "$BUILD/tests/programs/play" where)" = 16-31 ]
}

@test "a read-only root, which crun makes before the hook runs, and runc behind it" {
	mkdir -p "$WORK/layer/usr/lib64"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/usr/lib64/"
	export LAYER=$WORK/layer EDIT='.root.readonly = true'
	for runtime in runc crun; do
		RUNTIME=$runtime run contain a nvtaskset/group=infer sh -c '"$0" where; echo >/etc/new' "$BUILD/tests/programs/play"
		[[ "$output" = *0-15* ]]
		[[ "$output" == *"Read-only file system"* ]]
	done
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
	rm "$WORK/layer/lib64/libc.so.6"
	mkfifo "$WORK/layer/lib64/libc.so.6"
	runs_unrestricted "the image has no glibc for x86-64, which our library needs" /bin/ran
	rm "$WORK/layer/lib64/libc.so.6"
	make_static
	# The linker may be a copy, far from the libc that the linker finds.
	mkdir -p "$WORK/layer/lib/x86_64-linux-gnu"
	mv "$WORK/layer/lib64/libc.so.6" "$WORK/layer/lib/x86_64-linux-gnu/"
	run contain a nvtaskset/group=infer /bin/ran
	[ "$status $output" = "0 ran" ]
	[ "$(trouble a)" = "no NVIDIA driver is in it: give it a GPU, too (nvidia.com/gpu)" ]
	[ ! -e "$WORK/layer/etc" ]
	mkdir "$WORK/layer/etc"
	echo /usr/local/lib >"$WORK/layer/etc/ld.so.conf"
	runs_unrestricted "its /etc/ld.so.conf does not include /etc/ld.so.conf.d first" /bin/ran
	mkdir -p "$WORK/other/etc"
	cp "$WORK/layer/etc/ld.so.conf" "$WORK/other/etc/"
	unset IMAGE
	LAYER=$WORK/other run contain a "$BOTH" ls /etc/ld.so.conf.d
	[[ "$output" = *00-nvcr-* && "$output" != *nvtaskset* ]]
}

# As with podman without root, and pods with hostUsers: false.
@test "a container with users of its own: its program is inside, an edit reaches it, and -l shows it" {
	have_users 65536
	start_container a "$BOTH" where wait where wait
	[ "$(head -n 1 "$WORK/a")" = 0-15 ]
	[ "$(stat -c %u "/proc/$PROGRAM")" = 100000 ]
	nvtaskset -tp --group "$WORK/cdi/nvtaskset/infer" 40
	kill -USR1 "$PROGRAM"
	wait_until grep -qx 40 "$WORK/a"
	[[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 40" ]]
	nvtaskset -l --json | jq -e --argjson pid "$PROGRAM" '.processes[] | select(.pid == $pid) | .group.name == "infer"'
}

@test "an image that was made of such a container; a directory in the place of the cache" {
	mkdir -p "$WORK/layer/etc/ld.so.conf.d" "$WORK/layer/usr/lib64"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/usr/lib64/"
	ln -s /nowhere "$WORK/layer/etc/ld.so.conf.d/00-000-nvtaskset.driver"
	export LAYER=$WORK/layer
	[ "$(contain a nvtaskset/group=infer "$BUILD/tests/programs/play" where)" = 0-15 ]
	mkdir -p "$WORK/layer/etc/ld.so.cache/directory"
	run -0 contain a nvtaskset/group=infer ls /etc /etc/ld.so.conf.d
	[ "$(trouble a)" = "ld.so.cache cannot be written in the image: Is a directory" ]
	[[ "$output" != *nvtaskset* ]]
}

# --- the hook's own process ------------------------------------------------------------------------------------------------

# From now on a script stands for the hook.
hook_by() { # LINE…, of a script
	make_script "$WORK/hook" "$@"
	jq --arg hook "$WORK/hook" '.devices[].containerEdits.hooks[].path = $hook' "$WORK/cdi/nvtaskset.json" >"$WORK/edited"
	mv "$WORK/edited" "$WORK/cdi/nvtaskset.json"
}

@test "what the hook writes can be read, whatever the runtime's umask" {
	hook_by '#!/bin/bash' 'umask 077' "exec -a nvtaskset-cdi-hook '$BUILD/nvtaskset' \"\$@\""
	[ "$(contain a nvtaskset/group=infer,nvidia.com/gpu=0 stat -c %a /etc/ld.so.conf.d/00-000-nvtaskset.conf)" = 644 ]
	[ "$(contain a "$BOTH" stat -c %a /etc/ld.so.cache)" = 644 ]
}

@test "without the right to mount, and where the kernel lacks a call, the hook writes nothing and says so" {
	local reason="no confinement for its image, which needs Linux 5.12 and the right to mount"
	hook_by '#!/bin/bash' "exec setpriv --bounding-set=-sys_admin bash -c 'exec -a nvtaskset-cdi-hook \"\$0\" \"\$@\"' '$BUILD/nvtaskset' \"\$@\""
	run contain a "$BOTH" ls /etc/ld.so.conf.d
	[[ "$output" != *nvtaskset* ]]
	[ "$(trouble a)" = "$reason: Operation not permitted" ]
	run ! contain b nvidia.com/gpu=0,nvtaskset/group=strict echo ran
	[[ "$output" == *"nvtaskset: $reason: Operation not permitted: --strict does not start it"* ]]
	# open_tree, move_mount, openat2, mount_setattr
	for call in 428 429 437 442; do
		hook_by '#!/usr/bin/python3' 'import ctypes, os, struct, sys' \
			"code = [(0x20, 0, 0, 0), (0x15, 0, 1, $call), (6, 0, 0, 0x50026), (6, 0, 0, 0x7fff0000)]" \
			'code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))' \
			'program = ctypes.create_string_buffer(struct.pack("HP", 4, ctypes.addressof(code)))' \
			'assert ctypes.CDLL(None).prctl(22, 2, program) == 0' \
			"os.execv('$BUILD/nvtaskset', ['nvtaskset-cdi-hook'] + sys.argv[1:])"
		run contain a "$BOTH" ls /etc/ld.so.conf.d
		[[ "$output" != *nvtaskset* ]]
		[[ "$(trouble a)" = *": Function not implemented" ]]
	done
}

# In place of the host's ldconfig, a program that succeeds where all of this is so.
@test "ldconfig in the image: no procfs, no device, no descriptor, one capability, nothing to write but its cache, and bounds" {
	mkdir -p "$WORK/layer/usr/lib64"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/usr/lib64/"
	mknod "$WORK/layer/device" c 1 3
	# AddressSanitizer's own memory has no bound.
	memory=$(is_sanitized asan && echo CPU || echo DATA)
	${CC:-cc} -D_GNU_SOURCE "-DMEMORY=RLIMIT_$memory" -static -x c - -o "$WORK/ldconfig" <<-'EOF'
		#include <errno.h>
		#include <fcntl.h>
		#include <linux/capability.h>
		#include <signal.h>
		#include <string.h>
		#include <sys/prctl.h>
		#include <sys/resource.h>
		#include <sys/stat.h>
		#include <sys/syscall.h>
		#include <sys/sysmacros.h>
		#include <unistd.h>
		#define CHECK(number, condition) do { if (!(condition)) return number; } while (0)
		static int is_bounded(int resource)
		{
			struct rlimit limit;
			return getrlimit(resource, &limit) == 0 && limit.rlim_max < 1 << 30;
		}
		int main(int count, char **arguments, char **environment)
		{
			int signal = 0;
			struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
			struct __user_cap_data_struct has[2];
			struct stat status;
			CHECK(1, syscall(SYS_capget, &header, has) == 0 && has[0].permitted == 1 << CAP_DAC_OVERRIDE && has[1].permitted == 0);
			CHECK(2, prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
			for (int file = 0; file < 1024; file++)
				CHECK(3, file < 3 ? fstat(file, &status) == 0 && status.st_rdev == makedev(1, 3) : fcntl(file, F_GETFD) < 0);
			CHECK(4, access("/proc", F_OK) == 0 && access("/proc/self", F_OK) < 0 && access("/host/1", F_OK) < 0);
			CHECK(5, open("/device", O_RDONLY) < 0 && errno == EACCES);
			CHECK(6, open("/new", O_WRONLY | O_CREAT, 0600) < 0 && errno == EROFS);
			CHECK(7, open(arguments[count - 1], O_WRONLY | O_CREAT, 0600) == 3);
			CHECK(8, is_bounded(MEMORY) && is_bounded(RLIMIT_CPU) && is_bounded(RLIMIT_FSIZE));
			CHECK(9, !environment[0] && prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == SIGKILL);
			CHECK(10, strcmp(arguments[1], "-iX") == 0);
			return 0;
		}
	EOF
	hook_by '#!/bin/bash' "exec -a nvtaskset-cdi-hook '$BUILD/nvtaskset' \"\$@\" 9</"
	export LAYER=$WORK/layer EDIT='.mounts += [{destination: "/host", source: "/proc", type: "bind", options: ["bind"]}]'
	run unshare --mount bash -c "$(declare -f contain)
		for file in /sbin/ldconfig /sbin/ldconfig.real; do [ ! -e \$file ] || mount --bind '$WORK/ldconfig' \$file; done
		BUILD='$BUILD' WORK='$WORK' ROOT='$ROOT'
		contain a nvtaskset/group=infer echo ran"
	[[ "$output" == *ran ]]
	# It has written no cache.
	[ "$(trouble a)" = "its /etc/ld.so.conf does not include /etc/ld.so.conf.d first" ]
}

@test "what the image's configuration makes ldconfig read takes a bounded memory" {
	mkdir -p "$WORK/layer/etc/ld.so.conf.d"
	truncate -s 1G "$WORK/layer/etc/ld.so.conf.d/zz.conf"
	hook_by '#!/usr/bin/python3' 'import os, resource, sys' \
		"os.spawnv(os.P_WAIT, '$BUILD/nvtaskset', ['nvtaskset-cdi-hook'] + sys.argv[1:])" \
		"print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=open('$WORK/kilobytes', 'w'))"
	LAYER=$WORK/layer contain a nvtaskset/group=infer,nvidia.com/gpu=0 true
	cat "$WORK/kilobytes"
	[ "$(cat "$WORK/kilobytes")" -lt 300000 ] || is_sanitized
}

@test "an image in which ldconfig waits for ever: neither the hook nor ldconfig does" {
	mkdir -p "$WORK/layer/etc" "$WORK/layer/usr/lib64"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/usr/lib64/"
	mkfifo "$WORK/layer/etc/ld.so.conf"
	export LAYER=$WORK/layer
	[ "$(contain a nvtaskset/group=infer echo ran)" = ran ]
	[ "$(trouble a)" = "the host's ldconfig failed in the image" ]
}

@test "the hook's process in the image: one capability; a signal ends it whatever the runtime ignores" {
	mkdir -p "$WORK/layer/etc" "$WORK/layer/usr/lib64"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/layer/usr/lib64/"
	mkfifo "$WORK/layer/etc/ld.so.conf"
	# While ldconfig waits. The hook has the container's PIDs, and /proc the host's.
	hook_by '#!/usr/bin/python3' 'import os, re, signal, subprocess, sys, time' \
		'signal.signal(signal.SIGALRM, signal.SIG_IGN)' \
		'signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})' \
		'def find():' \
		'    shown = os.readlink("/proc/self")' \
		'    for name in ("nvtaskset", "nvtaskset", "ldconfig"):' \
		'        found = subprocess.run(["pgrep", "-xP", shown, name], stdout=subprocess.PIPE, text=True)' \
		'        parent, shown = shown, found.stdout.strip()' \
		'    return shown and parent' \
		"hook = os.spawnv(os.P_NOWAIT, '$BUILD/nvtaskset', ['nvtaskset-cdi-hook'] + sys.argv[1:])" \
		'while not find(): time.sleep(0.01)' \
		'status = open("/proc/%s/status" % find()).read()' \
		"open('$WORK/status', 'w').write(status)" \
		'inside = int(re.search(r"NSpid:.*\s(\d+)\n", status)[1])' \
		'os.kill(inside, signal.SIGALRM)' 'os.waitpid(hook, 0)'
	LAYER=$WORK/layer contain a nvtaskset/group=infer true
	[ "$(trouble a)" = "in its image, the hook was ended by signal 14" ]
	sed -n 's/^\(CapPrm\|CapEff\|NoNewPrivs\):\t//p' "$WORK/status" | diff - <(printf '%s\n' 000000000000000{2,2} 1)
}

@test "the hook's mounts are seen by nobody else" {
	make_script "$WORK/shared" '#!/bin/bash' "cat /proc/self/mounts >'$WORK/before'" \
		"(exec -a nvtaskset-cdi-hook '$BUILD/nvtaskset' \"\$@\")" \
		"cat /proc/self/mounts >'$WORK/after'"
	hook_by '#!/bin/bash' "exec unshare --mount --propagation shared '$WORK/shared' \"\$@\""
	[ "$(PLAY where)" = 0-15 ]
	diff "$WORK/before" "$WORK/after"
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
