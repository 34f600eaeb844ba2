# A bare Debian, and machines made of it, for tests/fresh and tests/packages: as root, with debootstrap. DIRECTORY is made if it is
# missing, and keeps the bare Debian for the next time. SUITE and MIRROR are debootstrap's.
name=${0##*/}

fail() {
	echo "$name: $*" >&2
	exit 1
}

begin() { # DIRECTORY
	[ $# -ge 1 ] || fail "name a directory for a bare Debian"
	[ "$(id -u)" = 0 ] || fail "needs root"
	command -v debootstrap >/dev/null || fail "needs debootstrap"
	mkdir -p "$1"
	directory=$(realpath "$1")
	machine=$directory/machine # that of now
	output=$directory/output   # of the last command
}

make_bare() {
	[ -e "$directory/bare/made" ] && return
	rm -rf --one-file-system "$directory/bare"
	debootstrap --variant=minbase --include=make "${SUITE:-bookworm}" "$directory/bare" "${MIRROR:-http://deb.debian.org/debian}" \
		>"$output" || { cat "$output" && fail "debootstrap failed"; }
	rm -f "$directory/bare"/var/cache/apt/archives/*.deb
	touch "$directory/bare/made"
}

# Runs it with that directory as the real root (pivot_root), so that its namespaces have no other. If `root_by` is
# chroot, the root is no mount point, and no user namespaces are permitted. It has processes, mounts and shared memory
# of its own, and nothing of our environment. The first process takes in orphans, as init does.
inside() { # COMMAND…
	unshare --pid --fork --kill-child --mount --uts sh -euc '
		root=$1
		root_by=$2
		shift 2
		hostname bare
		[ "$root_by" = chroot ] || mount --bind "$root" "$root"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
		mount -t sysfs -o ro sysfs "$root/sys"
		mount -t proc proc "$root/proc"
		cd "$root"
		if [ "$root_by" = pivot_root ]; then
			pivot_root . .
			umount -l .
			cd /
		fi
		status=0
		chroot . /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb "$@" || status=$?
		exit $status' sh "$machine" "${root_by-pivot_root}" "$@" </dev/null
}

# A machine that nobody has used.
new_bare_machine() {
	rm -rf --one-file-system "$machine"
	cp -a "$directory/bare" "$machine"
	cp -L /etc/resolv.conf "$machine/etc/"
	echo "127.0.0.1 localhost bare" >"$machine/etc/hosts"
}
