#!/usr/bin/env bats
# make install and uninstall
# processes: no
# takes: long
# sanitizers: no

load helpers

@test "the installed command runs from its new directory" {
	in_source install PREFIX="$WORK/usr"
	PATH=$WORK/usr/bin:$PATH run -0 nvtaskset --mps off -t 3 where 1
	[[ "$output" == *"on TPCs 3 ("* ]]
}

@test "install and uninstall leave DESTDIR empty" {
	in_source install DESTDIR="$WORK/stage" PREFIX=/usr
	[ -x "$WORK/stage/usr/bin/nvtaskset" ]
	[ -e "$WORK/stage/usr/lib/nvtaskset/libcuda.so.1" ]
	[ -e "$WORK/stage/usr/share/man/man1/nvtaskset.1" ]
	[ -e "$WORK/stage/usr/share/doc/nvtaskset/reference/json.md" ]
	grep -q '^ExecStart=/usr/bin/nvtaskset metrics ' "$WORK/stage/usr/lib/systemd/system/nvtaskset-metrics.service"
	[ -z "$(find "$WORK/stage" -name directories)" ]
	in_source uninstall DESTDIR="$WORK/stage" PREFIX=/usr
	[ -z "$(ls "$WORK/stage")" ]
}

@test "uninstall removes what install made, once or twice, and nothing else" {
	mkdir -p "$WORK/usr/bin" "$WORK/usr/include" "$WORK/usr/share/man"
	touch "$WORK/usr/bin/other"
	chmod 2775 "$WORK/usr/bin"
	before=$(find "$WORK/usr" -printf '%p %M\n' | sort)
	in_source install PREFIX="$WORK/usr"
	(umask 077 && in_source install PREFIX="$WORK/usr")
	[ -z "$(find "$WORK/usr" -type d ! -perm -755)" ]
	run -0 in_source uninstall PREFIX="$WORK/usr"
	[ -z "$output" ]
	diff <(echo "$before") <(find "$WORK/usr" -printf '%p %M\n' | sort)
	# Nothing was installed.
	in_source install PREFIX="$WORK/new/usr"
	in_source uninstall PREFIX="$WORK/new/usr"
	[ ! -e "$WORK/new" ]
}

@test "where the user may not write, make install says what to type, and installs nothing" {
	needs_another_user
	mkdir -p "$WORK/usr/bin"
	before=$(find "$WORK/usr")
	run ! "${ANOTHER_USER[@]}" make -s --no-print-directory -C "$ROOT" BUILD="$BUILD" install PREFIX="$WORK/usr" 3>&-
	[ "${lines[0]}" = "make install: $WORK/usr/bin/: you may not write there; use 'sudo make install', or 'make install PREFIX=\$HOME/.local'" ]
	[[ "${lines[1]}" == make*": *** "* ]]
	[ "${#lines[@]}" -eq 2 ]
	diff <(echo "$before") <(find "$WORK/usr")
}

@test "sudo make install builds as the owner of the build directory" {
	needs_another_user
	mkdir "$WORK/built"
	cp -a "$BUILD"/{api,lib,man,src,stub,tools,libnvtaskset.a,libsmctrl.a,libsmctrl.so.0} "$WORK/built/"
	chown -R 65534:65534 "$WORK/built"
	in_source BUILD="$WORK/built" install PREFIX="$WORK/usr"
	[ -n "$(find "$WORK/built" -newer "$WORK/built/libnvtaskset.a" -name nvtaskset -type f)" ]
	[ -z "$(find "$WORK/built" ! -user 65534)" ]
	[ "$(stat -c %u "$WORK/usr/bin/nvtaskset")" = 0 ]
}

@test "make dist without git says why it cannot, and leaves no tarball" {
	[ -e "$ROOT/.git" ] || skip "this is no clone"
	mkdir "$WORK/bin"
	make_script "$WORK/bin/git" '#!/bin/sh' 'exit 127'
	PATH=$WORK/bin:$PATH run ! in_source BUILD="$WORK/built" dist
	[ "${lines[0]}" = "make dist: git knows the files of a clone: install git" ]
	[ -z "$(find "$WORK/built" -name '*.tar.gz')" ]
}

@test "the dynamic linker finds the libraries, or a message says that it does not" {
	run in_source install PREFIX="$WORK/usr"
	[ "${lines[0]}" = "Programs find $WORK/usr/lib/libnvtaskset.so.0 by LD_LIBRARY_PATH, or once ldconfig knows that directory." ]
	[ "${lines[1]}" = "Programs find $WORK/usr/lib/libsmctrl.so.0 by LD_LIBRARY_PATH, or once ldconfig knows that directory." ]
	[ "${#lines[@]}" -eq 2 ]
	needs_namespaces -m
	export ROOT BUILD
	run -0 unshare -m sh -euc 'mount -t tmpfs -o mode=755 none /mnt
		mount -t tmpfs none /var/cache
		cp -a /etc /mnt/etc
		mount --bind /mnt/etc /etc
		echo /mnt/usr/lib >/etc/ld.so.conf.d/usr.conf
		make -s -C "$ROOT" BUILD="$BUILD" install PREFIX=/mnt/usr
		/sbin/ldconfig -p' 3>&-
	[[ "$output" != *"LD_LIBRARY_PATH"* ]]
	local library
	for library in libnvtaskset.so.0 libsmctrl.so.0 libsmctrl.so; do # the last for programs that were linked with the original
		[[ "$output" == *"$library "*" => /mnt/usr/lib/$library"* ]]
	done
}

@test "warnings of a newer compiler are errors for developers only" {
	not grep -q -- -Werror <(unset MAKEFLAGS WERROR && in_source -n -B V=1 all)
	grep -q -- -Werror <(in_source -n -B V=1 WERROR=1 all)
}

@test "the archives have their own names and no others, also when optimized at link time" {
	! is_sanitized || skip "names are the same"
	make -s -j2 -C "$ROOT" BUILD="$WORK/lto" CFLAGS='-O1 -flto' \
		"$WORK/lto/api/libnvtaskset.a" "$WORK/lto/libsmctrl.a" 3>&- >/dev/null 2>"$WORK/said" || skip "not with this compiler"
	for archive in "$WORK/lto/api/libnvtaskset.a" "$WORK/lto/libsmctrl.a"; do
		nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' >"$WORK/names"
		[ -s "$WORK/names" ]
		not grep -Ev '^(nvtaskset|libsmctrl)_' "$WORK/names"
	done
}

@test "the picture of how it works is what its source draws" {
	"$ROOT/docs/how-it-works.py" | diff - "$ROOT/docs/how-it-works.svg"
}

@test "the version is the same everywhere" {
	version=$(nvtaskset --version)
	grep -q "\"$version\"" "$ROOT/tools/man/nvtaskset.1"
}
