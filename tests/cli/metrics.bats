#!/usr/bin/env bats
# nvtaskset metrics, read by programs that are not ours
# takes: long

load helpers
OWN_GPUS=yes
load playing

# Debian's Python has the parser's package, whatever Python comes first in PATH.
parse() { # openmetrics|prometheus FILE [NAME [LABEL=VALUE]…]
	/usr/bin/python3 "$ROOT/tests/python/metrics.py" "$@"
}

needs_parser() {
	/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null || skip "needs python3-prometheus-client"
}

look() {
	nvtaskset metrics >"$WORK/metrics"
}

# The number of a sample.
value() { # NAME [LABEL=VALUE]…
	parse openmetrics "$WORK/metrics" "$@" | sed 's/.* //'
}

@test "OpenMetrics, as its own parser reads it" {
	needs_parser
	start_playing -t 0-7 -- where where wait
	look
	[ "$(tail -n 1 "$WORK/metrics")" = "# EOF" ]
	parse openmetrics "$WORK/metrics" >"$WORK/families"
	diff "$WORK/families" - <<-'END'
		nvtaskset_build info -
		nvtaskset_gpu info -
		nvtaskset_gpu_tpcs gauge tpcs
		nvtaskset_programs_hidden gauge -
		nvtaskset_program info -
		nvtaskset_program_in_force gauge -
		nvtaskset_program_tpcs gauge tpcs
		nvtaskset_launched_kernels counter kernels
		nvtaskset_ended_kernels counter kernels
		nvtaskset_in_flight_kernels gauge kernels
		nvtaskset_memory_bytes gauge bytes
		nvtaskset_uploads counter -
		nvtaskset_restricted_uploads counter -
		nvtaskset_outside_launches counter -
	END
	launches=$(listed kernels[0].launches)
	[ "$launches" -gt 0 ]
	run parse openmetrics "$WORK/metrics" nvtaskset_launched_kernels_total "pid=$PROGRAM"
	[ "$output" = "gpu=0 pci_bus_id=$GPU pid=$PROGRAM user=$(id -un) $launches" ]
	[ "$(value nvtaskset_ended_kernels_total "pid=$PROGRAM")" = "$launches" ]
	[ "$(value nvtaskset_in_flight_kernels "pid=$PROGRAM")" = 0 ]
	[ "$(value nvtaskset_program_tpcs "pid=$PROGRAM")" = 8 ]
	[ "$(value nvtaskset_gpu_tpcs gpu=0)" = 66 ]
	[ "$(value nvtaskset_program_in_force "pid=$PROGRAM")" = 1 ]
	[ "$(value nvtaskset_program_info "pid=$PROGRAM" command=play)" = 1 ]
	[ "$(value nvtaskset_build_info "version=$(nvtaskset --version | sed 's/.* //')")" = 1 ]
}

@test "the classic format, as its own parser reads it, and as promtool likes it" {
	needs_parser
	needs promtool
	start_program -t 0-7
	nvtaskset metrics --format prometheus >"$WORK/metrics"
	not grep -qE '^# (UNIT|EOF)' "$WORK/metrics"
	grep -qx '# TYPE nvtaskset_launched_kernels_total counter' "$WORK/metrics"
	grep -qx '# TYPE nvtaskset_program_info gauge' "$WORK/metrics"
	[ -n "$(parse prometheus "$WORK/metrics" nvtaskset_launched_kernels_total "pid=$PROGRAM")" ]
	run -0 promtool check metrics <"$WORK/metrics"
	[ -z "$output" ]
}

@test "a GPU's UUID and the name of its product" {
	needs_parser
	sed -i 's/^gpu .*/&\nuuid GPU-12345678-9abc-def0-1234-56789abcdef0/' "$WORK/gpus.txt"
	look
	[ "$(value nvtaskset_gpu_info gpu=0 UUID=GPU-12345678-9abc-def0-1234-56789abcdef0 "model=NVIDIA H200")" = 1 ]
}

@test "what is not known is absent" {
	needs_parser
	SIM_FAULTS=no-register start_playing -t 0-7 -- where wait
	look
	[ "$(value nvtaskset_launched_kernels_total "pid=$PROGRAM")" -gt 0 ]
	[ -z "$(value nvtaskset_ended_kernels_total "pid=$PROGRAM")" ]
	[ -z "$(value nvtaskset_in_flight_kernels "pid=$PROGRAM")" ]
	not grep -q '^nvtaskset_\(busy\|tpc\)_seconds' "$WORK/metrics"
}

@test "no GPU is known: programs are told nevertheless, and why there is less" {
	needs_parser
	start_program -t 0-7
	NVTASKSET_TOPOLOGY=$WORK/nowhere nvtaskset metrics >"$WORK/metrics" 2>"$WORK/errors"
	grep -q "metrics are without what is known of the GPUs" "$WORK/errors"
	[ "$(value nvtaskset_program_tpcs "pid=$PROGRAM")" = 8 ]
	[ -z "$(value nvtaskset_gpu_tpcs)" ]
}

# While it launches. (A program that executes another counts anew, which Prometheus knows from other counters.)
@test "counters never go back" {
	start_playing -t 0-7 -- launch wait
	last=0
	for _ in $(seq 20); do
		look
		for name in launched ended; do
			declare "$name=$(sed -n "s/^nvtaskset_${name}_kernels_total{.*pid=\"$PROGRAM\".* //p" "$WORK/metrics")"
		done
		[ "$ended" -ge "$last" ]
		[ "$launched" -ge "$ended" ]
		last=$ended
	done
	[ "$last" -gt 0 ]
}

@test "programs of others are told to root only" {
	needs_parser
	needs_to_look_into_others
	chmod 644 "$WORK/gpus.txt"
	start_program -t 0-7
	"${ANOTHER_USER[@]}" nvtaskset metrics >"$WORK/metrics"
	[ -z "$(value nvtaskset_program_info "pid=$PROGRAM")" ]
	[ "$(value nvtaskset_programs_hidden)" = 1 ]
	look
	[ "$(value nvtaskset_program_info "pid=$PROGRAM" "user=$(id -un)")" = 1 ]
	# As the service runs: a user of its own, with the rights of the unit. The other program is a third user's.
	stop_program
	start_program_by "${ANOTHER_USER[@]}" nvtaskset --mps off -t 0-7
	rights=$(sed -n 's/^AmbientCapabilities=//p' "$ROOT/share/systemd/nvtaskset-metrics.service.in" | sed 's/CAP_/+/g; s/ /,/g')
	setpriv --reuid 65533 --clear-groups --inh-caps="$rights" --ambient-caps="$rights" --bounding-set="-all,$rights" \
		nvtaskset metrics >"$WORK/metrics"
	[ "$(value nvtaskset_launched_kernels_total)" -gt 0 ]
}

# --- a file ------------------------------------------------------------------------------------------------------------

@test "--output replaces the file as a whole" {
	needs_parser
	cd "$WORK"
	mkdir out
	echo old >out/gpus.prom
	exec 9<out/gpus.prom
	umask 022
	nvtaskset metrics --format prometheus --output out/gpus.prom
	# A reader that has the old file open goes on reading it.
	[ "$(cat <&9)" = old ]
	exec 9<&-
	[ "$(stat -c %a out/gpus.prom)" = 644 ]
	parse prometheus out/gpus.prom nvtaskset_gpu_tpcs | grep -q ' 66$'
	[ "$(ls -A out)" = gpus.prom ]
	(cd out && nvtaskset metrics --output here)
	parse openmetrics out/here nvtaskset_gpu_tpcs | grep -q ' 66$'
}

@test "a file that cannot be written stays as it was" {
	refuses "/dev/null: not a regular file" nvtaskset metrics --output /dev/null
	refuses "$WORK/nowhere/file: No such file or directory" nvtaskset metrics --output "$WORK/nowhere/file"
	refuses "$WORK: not a regular file" nvtaskset metrics --output "$WORK"
	[ -c /dev/null ]
	mkfifo "$WORK/fifo"
	ln -s metrics "$WORK/link"
	for file in fifo link; do
		refuses "$WORK/$file: not a regular file" nvtaskset metrics --output "$WORK/$file"
	done
	[ -p "$WORK/fifo" ]
	[ -L "$WORK/link" ]
	needs_another_user
	echo old >"$WORK/file"
	chmod 666 "$WORK/file" # it may be written, but not replaced
	refuses "$WORK/file: Permission denied" "${ANOTHER_USER[@]}" nvtaskset metrics --output "$WORK/file"
	[ "$(cat "$WORK/file")" = old ]
}

@test "a full disk: the file stays as it was, and nothing is left" {
	needs_namespaces -m
	export WORK
	mkdir "$WORK/disk"
	run -0 unshare -m bash -euc 'mount -t tmpfs -o size=8k none "$WORK/disk"
		cd "$WORK/disk"
		echo old >file
		head -c 4096 /dev/zero >rest
		! nvtaskset metrics --output file
		[ "$(cat file)" = old ]
		[ "$(ls -A | xargs)" = "file rest" ]'
	[[ "$output" == *"nvtaskset: file: No space left on device" ]]
}

# --- again and again ---------------------------------------------------------------------------------------------------

# In the background, until the test ends or `pages_end`.
pages_begin() { # [RIGHTS] -- OPTION…
	local as=()
	while [ "$1" != -- ]; do
		as+=("$1")
		shift
	done
	[ -d "$WORK/out" ] || mkdir -m 777 "$WORK/out"
	start_writer "${as[@]}" nvtaskset metrics --output "$WORK/out/gpus" "${@:2}"
}

start_writer() { # COMMAND…
	"$@" 2>"$WORK/said" 3>&- &
	WRITER=$!
}

pages_end() {
	kill "$WRITER"
	status=0
	wait "$WRITER" || status=$?
}

has_page() {
	cp "$WORK/out/gpus" "$WORK/metrics" 2>/dev/null
}

# Waits for so many further pages.
pages() { # NUMBER
	local left=$1 last="" now
	while [ "$left" -gt 0 ]; do
		now=$(stat -c %y "$WORK/out/gpus" 2>/dev/null || true)
		[ "$now" = "$last" ] || left=$((left - 1))
		last=$now
	done
}

@test "--watch: the file is replaced again and again, until a signal" {
	needs_parser
	pages_begin -- --watch=0.1
	start_playing -t 0-7 -- where where wait
	launches=$(listed kernels[0].launches)
	is_told() { has_page && [ "$(value nvtaskset_launched_kernels_total "pid=$PROGRAM")" = "$launches" ]; }
	wait_until is_told
	pages_end
	[ "$status" -eq 143 ]
	[ ! -s "$WORK/said" ]
	[ "$(ls -A "$WORK/out")" = gpus ]
}

# The signal comes while a page is written.
@test "--watch: a signal leaves no temporary file" {
	for _ in $(seq 20); do
		pages_begin -- --watch=0.1
		until compgen -G "$WORK/out/.gpus.*" >/dev/null; do :; done
		pages_end
		[ "$(ls -A "$WORK/out")" = gpus ]
	done
}

@test "--watch: the first page must succeed, and a later one may fail" {
	refuses "--watch: writes a file again and again; add --output FILE" nvtaskset metrics --watch
	refuses "$WORK/nowhere/file: No such file or directory" nvtaskset metrics --watch --output "$WORK/nowhere/file"
	pages_begin -- --watch=0.1
	pages 2
	mv "$WORK/out" "$WORK/gone"
	says_why() { grep -qx "nvtaskset: $WORK/out/gpus: No such file or directory" "$WORK/said"; }
	wait_until says_why
	mkdir "$WORK/out"
	wait_until has_page
	pages_end
}

counts_all_the_time() {
	pages_begin -- --busy --watch=0.5
	start_program -t 0-7
	is_measured() {
		has_page && value nvtaskset_measured_seconds_total "pid=$PROGRAM" | awk '{ exit !($1 >= 2) } END { if (NR == 0) exit 1 }'
	}
	wait_until is_measured
	pages_end
	measured=$(value nvtaskset_measured_seconds_total "pid=$PROGRAM")
	busy=$(value nvtaskset_busy_seconds_total "pid=$PROGRAM")
	tpcs=$(value nvtaskset_tpc_seconds_total "pid=$PROGRAM")
	stop_program
	awk -v measured="$measured" -v busy="$busy" -v tpcs="$tpcs" 'BEGIN {
		exit !(busy > 0 && busy < measured && tpcs >= 7.99 * busy && tpcs <= 8.01 * busy)}'
}

@test "--busy: counts busy time between the pages, too" {
	needs_parser
	wait_until counts_all_the_time
}

@test "--busy is for pages again and again" {
	why="--busy: measures between two pages; add --output FILE --watch"
	refuses "$why" nvtaskset metrics --busy
	refuses "$why" nvtaskset metrics --busy --output "$WORK/file"
	[ ! -e "$WORK/file" ]
}

# Whether so many programs of others have their busy time in the metrics, with this right of the service, too. On a busy machine,
# the time may not be known at first.
are_shown_busy() { # NUMBER [,+CAPABILITY]
	local rights=+sys_ptrace,+dac_read_search${2-}
	rm -rf "$WORK/out"
	pages_begin setpriv --reuid 65533 --clear-groups --inh-caps="$rights" --ambient-caps="$rights" \
		--bounding-set="-all,$rights" -- --busy --watch=1
	pages 3
	has_page
	pages_end
	[ "$(value nvtaskset_launched_kernels_total | wc -l) $(value nvtaskset_busy_seconds_total | wc -l)" = "1 $1" ]
}

@test "--busy: programs of others, with the rights that the man page names, and without" {
	needs_parser
	needs_to_look_into_others
	chmod 644 "$WORK/gpus.txt"
	chmod 711 "$WORK"
	start_program_by "${ANOTHER_USER[@]}" nvtaskset --mps off -t 0-7
	wait_until are_shown_busy 1 ,+dac_override
	are_shown_busy 0
}

# In kB, and files.
uses() {
	echo "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$WRITER/status") $(find "/proc/$WRITER/fd" -type l | wc -l)"
}

# Memory grows in steps of 132 kB.
@test "a service has as much after 330 pages as after 30" {
	! is_sanitized || skip "a sanitizer keeps freed memory, and looks for leaks"
	start_program -t 0-7
	pages_begin -- --busy --watch=0.1
	pages 30
	read -r before files < <(uses)
	pages 300
	read -r after files_after < <(uses)
	pages_end
	[ "$after" -le $((before + 264)) ]
	[ "$files_after" -le $((files + 4)) ]
}

@test "more programs than the service may have files open" {
	needs_parser
	start "$BUILD/tests/programs/hostile" many 80 0
	ready() { [ "$(wc -l <"$WORK/output")" -eq 80 ]; }
	wait_until ready
	pages_begin bash -c 'ulimit -n 120; exec "$@"' bash -- --busy --watch=1
	pages 3
	pages_end
	[ ! -s "$WORK/said" ]
	[ "$(grep -c '^nvtaskset_program_info.*command="hostile"' "$WORK/out/gpus")" -eq 80 ]
}

@test "a GPU that the machine does not have is in no label" {
	start "$BUILD/tests/programs/hostile" many 1 0x77
	wait_for_line ready
	look
	grep -q "^nvtaskset_program_info.*pid=\"$PROGRAM\"" "$WORK/metrics"
	not grep -q 77:06 "$WORK/metrics"
}

@test "the service is as systemd wants it" {
	command -v systemd-analyze >/dev/null || skip "no systemd here"
	needs_root
	mkdir "$WORK/units"
	sed "s|@BINDIR@|$BUILD|" "$ROOT/share/systemd/nvtaskset-metrics.service.in" >"$WORK/units/nvtaskset-metrics.service"
	run systemd-analyze verify --man=no "$WORK/units/nvtaskset-metrics.service"
	[ -z "$(grep nvtaskset <<<"$output")" ]
}
