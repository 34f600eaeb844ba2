#!/usr/bin/env bats
# The man pages, README, and the pages of docs/ that they name: their examples run as written, and the pages are complete.
# processes: no
# takes: long
# sanitizers: no

load helpers

PAGES=(tools/man/nvtaskset.1 docs/{guide,sharing,containers}.md docs/reference/{processes,attaching,mps,system-wide}.md docs/internals/{graphs,loading}.md README.md)

# The text of a man page, with roff's escapes replaced by their characters, except escapes that change the font.
page() { # FILE
	sed -e 's/\\-/-/g; s/\\&//g; s/\\(aq/'"'"'/g; s/\\e/\\/g' "$1"
}

section() { # FILE, HEADING
	page "$ROOT/$1" | sed -n "/^\.SH $2\$/,/^\.SH /p"
}

# --- examples --------------------------------------------------------------------------------------------------------

# Writes each example of a page to a file of its own, $WORK/examples/PAGE.NUMBER: commands after "$ " or "# " (root's),
# and what they print, if the page says so.
# What goes on for ever there is looked at once, and the process that it names is ours.
find_examples() { # FILE…
	mkdir -p "$WORK/examples"
	for file; do
		page "$ROOT/$file" | sed 's/ --watch / /; s/^\$ nvtaskset top  /$ nvtaskset top --once  /; s/ 4321 / $(pgrep -x simulate) /' | awk -v to="$WORK/examples/${file##*/}." '
			inside && /^(\.EE|```)$/ {inside = 0; next}
			/^(\.EX$|```)/ {inside = 1; file = sprintf("%s%02d", to, ++count); next}
			inside {sub(/  +# .*/, ""); print >file}'
	done
}

# A program that examples name: it runs demo/where, which prints in $WORK/said/PID where it runs.
make_program() { # PATH
	local name=${1##*/}
	mkdir -p "$WORK/bin" "$WORK/said"
	ln -sf "$BUILD/demo/where" "$WORK/bin/$name"
	printf '#!/bin/sh\nexec "%s" 600 >"%s/$$" 3>&-\n' "$WORK/bin/$name" "$WORK/said" >"$1"
	chmod +x "$1"
}

# Examples run in an empty directory, on two simulated GPUs, with a fake control daemon of MPS.
prepare_examples() {
	mkdir "$WORK/here" "$WORK/path"
	cd "$WORK/here" || return
	for name in infer batch app "$WORK/path/python3" "$WORK/path/simulate"; do
		make_program "$name"
	done
	own_gpus h200-x2 # no other test has their TPCs
	export SIM_TOPOLOGY=$NVTASKSET_TOPOLOGY
	export PATH=$WORK/path:$ROOT/tests/fake-mps:$PATH FAKE_MPS_LINGER=600
}

# --- what each example is for ----------------------------------------------------------------------------------------

# Pattern of a command, and what must be seen then: of the program that it starts, or of what it prints. BASH_REMATCH is the match.
SIGHTS=(
	' -t ([0-9,-]+) (\./|python3)' 'runs_on_tpcs "${BASH_REMATCH[1]}"'
	' --priority [0-9]+ all \./' 'runs_on_tpcs 0-65'
	' -g 2 ' 'runs_on_tpcs 1,9,17,25,32,39,46,53'
	' -n 25% ' 'wait_until says "[0-9,-]+ \((32|34) SMs"'
	' -n 75% ' 'wait_until says "[0-9,-]+ \(98 SMs"'
	' -n 8 ' 'wait_until says "[0-9,-]+ \(16 SMs"'
	' -G 0:(0-31) -G 1:32-65' 'runs_on_tpcs 0-31; shows "mask on GPU .*: 3ffffffff00000000$"'
	'--quota 30% ' 'shows "quota: 30ms/100ms: (present|on the GPUs) for"'
	' -p .*--quota 50' 'grep -qE "new quota: 50ms/100ms" "$WORK/printed"; shows "quota: 50ms/100ms: (present|on the GPUs) for"'
	'--priority (80|20)' 'shows "priority: ${BASH_REMATCH[1]}(: (present|on the GPUs) for|$)"; shows "(present|on the GPUs) for"'
	'--lend=4ms' 'shows "lend: 4ms(:|$)"'
	'--borrow -t 32-65' 'shows "borrow: all(:|$)"'
	'--weight 300' 'shows "weight: 300(: present for|$)"; shows "present for"'
	'-p --weight 100' 'not shows_now "weight: 300"'
	'--memory ([0-9]+G) ' 'shows "memory: ${BASH_REMATCH[1]}: .* in use$"'
	'--strict' 'has_variable "LD_AUDIT=.*/libnvtaskset-audit.so"'
	'--hide' 'has_variable NVTASKSET_HIDE=1'
	'--group (train|night) -t 0-7 \./' 'nvtaskset -p --group "${BASH_REMATCH[1]}" >"$WORK/shown"'
	'-tp (--group [a-z]+ )?([0-9]+-[0-9]+)( \$!)?$' 'runs_on_tpcs "${BASH_REMATCH[2]}"'
	'nvtaskset -l$' 'prints "^ *$PROGRAM_PID .*/(infer|python3) 600$"'
	'-l --json' 'prints "\"pid\": $PROGRAM_PID,"'
	' -T ' 'prints "^GPC 7 "; prints " $PROGRAM_PID .*/infer"'
	'top --once' 'prints "^ *$PROGRAM_PID .*/(infer|python3)"'
	'metrics .*--output ([a-z.]+)' 'grep -q "pid=\"$PROGRAM_PID\"" "${BASH_REMATCH[1]}"'
	'mps status' 'prints "^control daemon: in $WORK/mps, "'
	'mps stop' 'not [ -e "$WORK/mps/control" ]'
)

says() { # PATTERN
	tail -n 1 "$WORK/said/$PROGRAM_PID" 2>/dev/null | grep -qE "on TPCs $1"
}

runs_on_tpcs() { # LIST
	wait_until says "$1 \("
}

shows_now() { # PATTERN
	nvtaskset -p "$PROGRAM_PID" >"$WORK/shown" && grep -qE "$1" "$WORK/shown"
}

shows() { # PATTERN
	wait_until shows_now "$1" || {
		cat "$WORK/shown"
		return 1
	}
}

prints() { # PATTERN
	grep -qE -- "$1" "$WORK/printed" || {
		cat "$WORK/printed"
		return 1
	}
}

has_variable() { # NAME=VALUE
	wait_until [ -s "$WORK/said/$PROGRAM_PID" ] && tr '\0' '\n' <"/proc/$PROGRAM_PID/environ" | grep -qx "$1"
}

# Of the example's last program.
see() { # COMMAND
	local i
	for ((i = 0; i < ${#SIGHTS[@]}; i += 2)); do
		[[ "$1" =~ ${SIGHTS[i]} ]] || continue
		((seen[i] += 1))
		eval "${SIGHTS[i + 1]}" || {
			echo "not seen: ${SIGHTS[i + 1]}"
			return 1
		}
	done
}

# Runs the command as if it was typed, or pasted with others: without waiting for programs in the background. One in the foreground
# runs until what it is for has been seen.
type_line() { # COMMAND
	local command=${1//\$!/${PROGRAM_PID-}} runs_for_long=false
	echo "\$ $1"
	[[ ! "$1" =~ (\ |^)(\./(batch|app)|python3\ train.py)($|\ *#) ]] || runs_for_long=true
	if "$runs_for_long" || [[ "$1" == *"&" ]]; then
		eval "${command%&} >\"\$WORK/printed\" 3>&- &"
		local before=${PROGRAM_PID-}
		PROGRAM_PID=$!
		started+=("$!")
		see "$1" || return 1
		! "$runs_for_long" || {
			kill -0 "$PROGRAM_PID" && kill "$PROGRAM_PID"
			PROGRAM_PID=$before
		}
	else
		eval "$command" >"$WORK/printed" 3>&- || {
			echo "status $?"
			return 1
		}
		see "$1"
	fi
}

# Pids differ each time. Process substitution is not used, as it would change $!.
printed_as_said() {
	sed -i -E 's/^pid [0-9]+/pid/' "$WORK/expected" "$WORK/printed"
	[ ! -s "$WORK/expected" ] || diff "$WORK/expected" "$WORK/printed"
}

# Each example begins without the programs of the others, but for the last one where a view is to show it.
begin_example() { # FILE
	local pid kept=()
	for pid in "${started[@]}"; do
		if [ "$pid" = "${PROGRAM_PID-}" ] && ! grep -q -- '&$' "$1"; then
			kept=("$pid")
		else
			kill "$pid" 2>/dev/null || true
			wait "$pid" || true
		fi
	done
	started=("${kept[@]}")
	unset NVTASKSET_GROUP_FILE
}

run_example() { # FILE
	local line
	: >"$WORK/expected"
	: >"$WORK/printed"
	while IFS= read -r line <&4; do
		if [[ "$line" =~ ^[\$#]\  ]]; then
			printed_as_said || return 1
			: >"$WORK/expected"
			type_line "${line:2}" || return 1
		else
			echo "$line" >>"$WORK/expected"
		fi
	done 4<"$1"
	printed_as_said
}

teardown() {
	[ -z "${started[*]-}" ] || kill "${started[@]}" 2>/dev/null || true
	[ ! -e "$WORK/mps/nvidia-cuda-mps-control.pid" ] || kill "$(cat "$WORK/mps/nvidia-cuda-mps-control.pid")" 2>/dev/null || true
	stop_program
	rm -rf "$WORK"
}

@test "every example runs as written" {
	started=()
	prepare_examples
	find_examples "${PAGES[@]}"
	type_line "nvtaskset -t 0 true" # starts MPS, whichever page comes first
	for example in $(grep -LE -- '^# |--attach' "$WORK"/examples/*); do
		grep -qE '^\$ ' "$example" || continue
		begin_example "$example"
		run_example "$example"
	done
	for ((i = 0; i < ${#SIGHTS[@]}; i += 2)); do
		[ -n "${seen[i]-}" ] || echo "no example: ${SIGHTS[i]}"
	done | diff /dev/null -
}

@test "every example that attaches" {
	needs pgrep
	needs_attach
	! is_sanitized || skip "not with a sanitizer"
	started=()
	prepare_examples
	find_examples "${PAGES[@]}"
	# No other program of that name.
	printf '#!/bin/sh\nexec %s -P %s "$@"\n' "$(command -v pgrep)" "$BASHPID" >"$WORK/path/pgrep"
	chmod +x "$WORK/path/pgrep"
	for example in $(grep -lE -- '--attach' "$WORK"/examples/*); do
		LD_LIBRARY_PATH=$BUILD/sim simulate 3>&- &
		PROGRAM=$!
		wait_until [ -s "$WORK/said/$PROGRAM" ]
		run_example "$example"
		# The partition that its last line gives.
		if grep -q -- '-p all' "$example"; then tpcs=0-65; else tpcs=0-7; fi
		PROGRAM_PID=$PROGRAM
		runs_on_tpcs "$tpcs"
		stop_program
	done
	[ -n "$tpcs" ]
}

# A machine of this test's own, with a driver that the dynamic linker knows and an installed nvtaskset.
become_machine() {
	mount -t tmpfs -o mode=755 none /mnt
	mount -t tmpfs none /var/cache
	mkdir -p /run/cdi && mount -t tmpfs -o mode=755 none /run/cdi
	cp -a /etc /mnt/etc
	mount --bind /mnt/etc /etc
	mkdir /mnt/driver
	cp "$BUILD/sim/libcuda.so.1" /mnt/driver/
	echo /mnt/driver >/etc/ld.so.conf.d/driver.conf
	make -s -C "$ROOT" BUILD="$BUILD" install PREFIX=/mnt/usr
	/sbin/ldconfig -X
	PATH=/mnt/usr/bin:$ROOT/tests/fake-mps:$PATH
	export CUDA_MPS_PIPE_DIRECTORY=/mnt/mps
}

@test "every example of root's" {
	needs_namespaces -m
	! is_sanitized || skip "not with a sanitizer"
	unset NVTASKSET_DRIVER
	find_examples "${PAGES[@]}"
	export -f become_machine run_example type_line see printed_as_said
	export WORK ROOT BUILD
	for example in $(grep -lE '^# ' "$WORK"/examples/*); do
		unshare -m bash -euc 'SIGHTS=(); become_machine; run_example "$1"' bash "$example" 3>&-
	done
}

# The example of nvtaskset(3) with this line, as a file.
write_example() { # LINE FILE
	cp "$(grep -lxF -- "$1" "$WORK"/examples/nvtaskset.3.*)" "$2"
}

@test "the examples of the page for programs" {
	! is_sanitized || skip "a sanitizer's run-time library must come with the program"
	needs pkg-config
	in_source install-api PREFIX="$WORK/usr"
	export PKG_CONFIG_PATH=$WORK/usr/lib/pkgconfig LD_LIBRARY_PATH=$WORK/usr/lib
	started=()
	prepare_examples
	find_examples tools/man/nvtaskset.3
	write_example '    struct nvtaskset_partition *partition;' double.c
	for example in $(grep -lE '^\$ ' "$WORK"/examples/*); do
		run_example "$example"
	done
	has_doubled 16
	write_example '    gpu = nvtaskset.Gpu(0)' double.py
	rm "$WORK/path/python3"
	export PYTHONPATH=$WORK/usr/share/nvtaskset/python PYTHONDONTWRITEBYTECODE=1
	python3 double.py "${started[0]}"
	has_doubled 32
	write_example '    kernels = partition.kernels(0)' kernels.py
	[[ "$(python3 kernels.py "${started[0]}")" =~ ^[1-9][0-9]*\ [0-9]+$ ]]
	write_example '    struct nvtaskset_watcher *watcher;' busy.c
	# shellcheck disable=SC2046
	${CC:-cc} -Wall -Wextra -Werror -o busy busy.c $(pkg-config --cflags --libs nvtaskset)
	./busy "${started[0]}" >said
	watches said
	write_example '    watcher.look(1)' busy.py
	python3 busy.py "${started[0]}" >said
	watches said
}

watches() { # FILE
	grep -qE '^GPU 0: busy for [1-9]?[0-9]\.[0-9] % of the time$' "$1" && grep -qE '^[1-9][0-9]* of where, [0-9]+ ns each$' "$1"
}

has_doubled() { # TPCs
	wait_until says "[0-9,-]+ \\($((2 * $1)) SMs"
}

# --- completeness ----------------------------------------------------------------------------------------------------

# The entries of a section: the lines after .TP.
entries() { # FILE, HEADING
	section "$1" "$2" | sed -n '/^\.TP/{n;s/^\.[A-Z]* //;s/\\f.//g;s/"//g;p}'
}

# The plugin for Slurm has a page of its own.
in_code() { # regular expression
	grep -rhoE "$1" --include='*.[ch]' --exclude-dir=slurm "$ROOT/src" "$ROOT/tools"
}

@test "nvtaskset(1) has at most 1000 lines as printed" {
	needs man
	[ "$(MANWIDTH=80 man -l "$ROOT/tools/man/nvtaskset.1" | wc -l)" -le 1000 ]
}

has_at_most() { # LINES FILE…
	[ "$(cat "${@:2}" | wc -l)" -le "$1" ]
}

@test "the pages stay short: nvtaskset(1), README, HACKING, and all of docs" {
	has_at_most 950 "$ROOT/tools/man/nvtaskset.1"
	has_at_most 120 "$ROOT/README.md"
	has_at_most 250 "$ROOT/HACKING.md"
	find "$ROOT/docs" -name '*.md' -exec cat {} + >"$WORK/docs"
	has_at_most 4000 "$WORK/docs"
}

@test "every option has an entry, and every entry is an option" {
	sed -n '/^const struct option_row /,/Words were options once/p' "$ROOT/tools/nvtaskset/cli/tables.c" >"$WORK/table"
	grep -q 'Words were options once' "$WORK/table"
	{
		sed -nE "s/^\t\{('.'|0), \"([a-z-]+)\", .*/--\2/p" "$WORK/table"
		sed -nE "s/^\t\{'(.)', .*/-\1/p" "$WORK/table"
		sed -nE 's/^\tX\([A-Z_]+, "([a-z-]+)", .*/--\1/p' "$ROOT/src/state/settings.h"
	} | sort -u >"$WORK/options"
	for heading in OPTIONS WORDS; do
		entries tools/man/nvtaskset.1 "$heading"
	done | grep -oE -- '(^|[ ,])--?[A-Za-z][a-z-]*' | tr -d ' ,' | sort -u | diff "$WORK/options" -
	for word in "" top trace curve plan metrics mps system cdi measure; do
		nvtaskset $word --help
	done | grep -oE -- '--[a-z-]+' | sort -u | comm -23 - "$WORK/options" >"$WORK/unknown"
	diff /dev/null "$WORK/unknown"
}

@test "every action is in the synopsis, and every word has its subsection" {
	section tools/man/nvtaskset.1 SYNOPSIS | sed -E 's/^\.[A-Z]+ ?//; s/\\f.//g' | tr -d '[]"' | tr -s ' \n' ' ' >"$WORK/synopsis"
	# The first word, and the second if there is one.
	sed -nE '/^const struct word_row /,/^\}/s/^\t\{"([a-z]+)", ("([a-z]+)"|NULL), .*/\1 \3/p' "$ROOT/tools/nvtaskset/cli/tables.c" |
		sort >"$WORK/words"
	while read -r first second; do
		grep -qF "nvtaskset $first $second" "$WORK/synopsis" || echo "not in the synopsis: $first $second"
	done <"$WORK/words" >"$WORK/missing"
	diff /dev/null "$WORK/missing"
	section tools/man/nvtaskset.1 WORDS | awk '
		$1 == ".SS" {word = $2; print word " "}
		behind && $1 == ".B" && $2 !~ /^-/ {print word " " $2}
		{behind = $1 == ".TP"}' | sort | diff "$WORK/words" -
	for action in 'SET COMMAND' '-p SET PID' '-l' '-T'; do
		grep -qF -e "$action" "$WORK/synopsis"
	done
}

@test "every variable that is read has an entry, and every entry is read" {
	in_code '"NVTASKSET_[A-Z_]+["=]' | tr -d '"=' | sort -u >"$WORK/read"
	[ "$(wc -l <"$WORK/read")" -ge 10 ]
	entries tools/man/nvtaskset.1 ENVIRONMENT | grep -oE '[A-Z][A-Z_]+' | sort -u >"$WORK/entries"
	grep '^NVTASKSET_' "$WORK/entries" | diff "$WORK/read" -
	# Variables that others define, some of them read by a constant of ours.
	{
		in_code '(getenv|environment)\("[A-Z_]+"'
		in_code 'define [A-Z_]+ "CUDA_[A-Z_]+"'
	} | grep -oE '"[A-Z_]+"' | tr -d '"' | sort -u | comm -23 - "$WORK/entries" >"$WORK/missing"
	diff /dev/null "$WORK/missing"
	grep -oE 'environ\.get\("[A-Z_]+"' "$ROOT/tools/python/nvtaskset.py" | grep -oE '[A-Z_]{2,}' | sort -u >"$WORK/read"
	entries tools/man/nvtaskset.3 ENVIRONMENT | sort | diff <(echo NVTASKSET_TOPOLOGY | sort - "$WORK/read") -
}

@test "every column of the list has an entry" {
	# MEMORY is there only once a program is.
	{
		nvtaskset -l --busy 2>/dev/null | head -n 1
		echo MEMORY
	} | tr -s ' ' '\n' | grep . | sort >"$WORK/columns"
	entries tools/man/nvtaskset.1 OPTIONS | tr -d ' ' | tr , '\n' | grep -E '^[A-Z%-]{3,}$' | sort | diff "$WORK/columns" -
}

@test "every page that the man page names is installed; links lead to a heading or a file, and in installed pages to installed ones" {
	section tools/man/nvtaskset.1 FILES | grep -oE '[a-z-]+\.md' | sort -u >"$WORK/pages"
	in_source install DESTDIR="$WORK/stage" PREFIX=/usr
	page "$ROOT/tools/man/nvtaskset.1" | sed 's/\\f.//g; s/(/ /g' | grep -oE '(^|[ /])[a-z-]+\.md' | tr -d ' ' | grep -v / | sort -u | diff "$WORK/pages" -
	find "$WORK/stage/usr/share/doc/nvtaskset" -type f -printf '%f\n' | sort | comm -13 - "$WORK/pages" | diff /dev/null -
	"$ROOT/tests/links"
	"$ROOT/tests/links" --pages "$WORK/stage/usr/share/doc/nvtaskset"
}

@test "docs/reference/outside.md has every reason that the library or the command can give, and why kernels are not counted" {
	{
		sed -n 's/^\tX([A-Z_]*, "\(.*\)").*/\1/p' "$ROOT/src/state/segment/segment.h"
		grep -ohE 'error_set(_errno)?\(error, "[^"]+"' "$ROOT"/src/driver/*.c "$ROOT"/src/driver/*/*.c | sed 's/.*(error, "//; s/"$//; s/ (error %d)//; s/%s/NAME/'
		grep -ohE 'log_warning\("(%s: )*%s[;:] [^%"]+"' "$ROOT"/src/driver/*.c "$ROOT"/src/driver/*/*.c "$ROOT"/src/shim/*.c "$ROOT"/src/launch/*/*.c | sed 's/.*%s[;:] //; s/"$//'
		sed -n '/^const char \*segment_absence_text/,/^}/p' "$ROOT/src/state/segment/find.c" | grep -oE '"(has closed|its partition)[^"]+"' | tr -d '"'
		sed -n 's/^\tX([A-Z_]*, "\(.*\)").*/| `\1` |/p' "$ROOT/src/state/kernels/counts.h"
	} | sort -u >"$WORK/reasons"
	[ "$(grep -c '^| ' "$WORK/reasons")" -ge 8 ]
	[ "$(grep -vc '^| ' "$WORK/reasons")" -ge 20 ]
	while read -r reason; do
		grep -qF "$reason" "$ROOT/docs/reference/outside.md" || echo "$reason"
	done <"$WORK/reasons" | diff /dev/null -
}

@test "nvtaskset(3) has every function of the header, with its comment, and names no other" {
	grep -oE '\bnvtaskset_[a-z_]+\(' "$ROOT/include/nvtaskset.h" | tr -d '(' | sort -u >"$WORK/declared"
	grep -oE 'fBnvtaskset_[a-z_]+' "$ROOT/tools/man/nvtaskset.3" | cut -c 3- | sort -u | comm -13 "$WORK/declared" - | diff /dev/null -
	in_source "$BUILD/man/nvtaskset.3"
	grep -oE '^\\fB.*\bnvtaskset_[a-z_]+\(.*;\\fR$' "$BUILD/man/nvtaskset.3" | grep -oE 'nvtaskset_[a-z_]+\(' | tr -d '(' | sort |
		diff "$WORK/declared" -
	grep -A 3 'nvtaskset_gpu_gpc_of(' "$BUILD/man/nvtaskset.3" | grep -q '^The GPC of the chip with the TPC'
}
