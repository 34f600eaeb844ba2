#!/usr/bin/env bats
# Images that lead out of themselves, or whose files are none: the hook of a device changes nothing of the host, and ends
# takes: long

load helpers
load containers

# Links of these names, to the same name behind each of the ways out: V is a directory of the host.
PLACES="etc etc/ld.so.conf.d etc/ld.so.cache etc/ld.so.conf var/cache/ldconfig"
WAYS='$V
../../../../../..$V
/proc/1/root$V
../proc/1/root$V
/proc/1/task/1/root$V
/proc/1/cwd/../../../../../../../..$V
/proc/self/root$V
/proc/self/cwd/../../../../../../../..$V
/proc/self/fd/6/../../../../../../../..$V
/proc/$$/root$V'

# Images by the commands that make them.
ODD='the directory itself by a descriptor: mkdir etc; ln -s /proc/self/fd/6 etc/ld.so.conf.d
a link to a link: mkdir etc; ln -s /proc/1/root way; ln -s ../way$V etc/ld.so.conf.d
the linker by the way out: mkdir -p opt; ln -s /proc/1/root/lib64 opt/lib64; mkdir etc; echo /opt/lib64 >etc/ld.so.conf
the driver by the way out: rm usr/lib64/libcuda.so.1; ln -s /proc/1/root$V/libcuda.so.1 usr/lib64/libcuda.so.1
a library by the way out: ln -s /proc/1/root$V/file usr/lib64/libevil.so.1
an include by the way out: mkdir etc; echo "include /proc/1/root$V/*" >etc/ld.so.conf
the temporary cache of ldconfig: mkdir etc; ln -s /proc/1/root$V/file etc/ld.so.cache~
our temporary file: mkdir -p etc/ld.so.conf.d; ln -s /proc/1/root$V/file etc/00-000-nvtaskset.new; ln -s /proc/1/root$V/file etc/ld.so.conf.d/00-000-nvtaskset.new
a kernel parameter: mkdir etc; ln -s /proc/sys/kernel/domainname etc/ld.so.cache; ln -s /proc/sys/kernel etc/ld.so.conf.d
our directories: mkdir -p opt; ln -s /proc/1/root$V opt/nvtaskset
our groups: mkdir -p opt/nvtaskset; ln -s /etc opt/nvtaskset/groups
a hard link: mkdir etc; echo include >etc/one; ln etc/one etc/ld.so.conf; ln etc/one etc/ld.so.cache
a circle of links: ln -s etc2 etc; ln -s etc etc2
41 links: mkdir etc real; ln -s /real l0; for i in {1..40}; do ln -s "/l$((i - 1))" "l$i"; done; ln -s /l40 etc/ld.so.conf.d
a link of 4095 bytes: ln -s "$(printf "/.%.0s" {1..2047})/" etc
names of 255 bytes: mkdir -p etc "$(printf "n%.0s" {1..255})"; printf "/%0255d\n" {1..2000} >etc/ld.so.conf
a line of 1 GiB: mkdir -p etc/ld.so.conf.d; truncate -s 1G etc/ld.so.conf.d/zz.conf
a library of 1 TiB: truncate -s 1T usr/lib64/libhuge.so.1
a libc of 1 TiB: mkdir -p usr/lib/$(uname -m)-linux-gnu; truncate -s 1T usr/lib/$(uname -m)-linux-gnu/libc.so.6
a configuration that includes itself: mkdir etc; echo "include /etc/ld.so.conf" >etc/ld.so.conf
absurd patterns: mkdir etc; echo "include /*/*/*/*/*/*/*/*/*/*" >etc/ld.so.conf
the configuration is a pipe: mkdir etc; mkfifo etc/ld.so.conf
a library is a pipe: mkfifo usr/pipe; ln -s ../pipe usr/lib64/libpipe.so.1
the cache is a pipe: mkdir etc; mkfifo etc/ld.so.cache
the cache of ldconfig is a pipe: mkdir -p var/cache/ldconfig; mkfifo var/cache/ldconfig/aux-cache
the driver is a pipe: rm usr/lib64/libcuda.so.1; mkfifo usr/lib64/libcuda.so.1
files are devices: mkdir etc; mknod etc/ld.so.conf c 1 5; mknod etc/ld.so.cache b 7 0; mknod usr/lib64/libzero.so.1 c 1 5
files are sockets: mkdir etc; for file in etc/ld.so.conf etc/ld.so.cache usr/lib64/libsocket.so.1; do make_socket "$file"; done
files are directories: mkdir -p etc/ld.so.conf etc/ld.so.cache/full etc/ld.so.conf.d/00-000-nvtaskset.conf/full
our files are directories: mkdir -p etc/00-000-nvtaskset.new/full etc/ld.so.conf.d/00-000-nvtaskset.driver/full
directories are files: echo >etc
a damaged cache of ldconfig: mkdir -p var/cache/ldconfig; head -c 100000 /dev/urandom >var/cache/ldconfig/aux-cache
nothing may be read: mkdir -m 0 etc; mkdir -m 0 -p var/cache/ldconfig
nothing can be written: mkdir -m 555 etc etc/ld.so.conf.d'

setup() {
	containers_begin
	needs_containers
	cdi add -t 0-15 --mps off infer
	VICTIM=$(mktemp -d /tmp/victim.XXXXXX)
	mkdir -p "$VICTIM/ld.so.conf.d" "$VICTIM/var/cache/ldconfig" /var/cache/ldconfig
	for file in file ld.so.cache ld.so.conf.d/00-000-nvtaskset.conf; do
		echo untouched >"$VICTIM/$file"
	done
}

teardown() {
	containers_end
	rm -rf "${VICTIM-}"
}

make_socket() { # PATH
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$1"
}

host() {
	find "$VICTIM" /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /var/cache/ldconfig -printf '%p %y %i %n %m %u %s %T@ %C@ %l\n'
	cat /proc/sys/kernel/domainname
}

# A line each, NAME: COMMANDS.
images() {
	local place way
	for place in $PLACES; do
		while read -r way; do
			echo "$place by $way: mkdir -p $(dirname "$place"); ln -s $way/${place#etc} $place"
		done <<<"$WAYS"
	done
	echo "$ODD"
}

# Each image gets a device, and nothing of the host changes. Of a few, a runtime takes none, or the linker is broken.
try() { # RUNTIME EDIT PATTERN RAN: how many of the images with this pattern run at least
	local line before output count=0 ran=0 V=$VICTIM
	export RUNTIME=$1 EDIT=$2 LAYER=$WORK/layer
	while IFS= read -r line; do
		rm -rf "$LAYER" && mkdir -p "$LAYER/usr/lib64"
		cp "$BUILD/sim/libcuda.so.1" "$LAYER/usr/lib64/"
		(cd "$LAYER" && eval "${line#*: }")
		before=$(host)
		count=$((count + 1))
		output=$(contain "i$count" nvtaskset/group=infer echo ran 2>&1 </dev/null) || :
		[[ "$output" != *ran ]] || ran=$((ran + 1))
		[ "$before" = "$(host)" ] || {
			echo "$line: $output"
			diff <(echo "$before") <(host)
			return 1
		}
	done < <(images | grep -- "$3")
	echo "$count images, of which $ran ran"
	[ "$ran" -ge "$4" ]
}

HOSTS='.mounts += (["hosts", "resolv.conf"] | map({destination: "/etc/\(.)", source: "/etc/hosts", type: "bind", options: ["bind", "ro"]}))'
PIDS='.linux.namespaces |= map(select(.type != "pid"))'

@test "runc, with files of the host in /etc" {
	try runc "$HOSTS" '' 75
}

@test "runc, with the host's PIDs" {
	try runc "$PIDS" 'by /proc/' 24
}

@test "crun" {
	needs crun
	try crun . '' 75
}

@test "crun, with the host's PIDs, and files of the host in /etc" {
	needs crun
	try crun "$HOSTS | $PIDS" 'by /proc/' 24
}
