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

# --- a socket ----------------------------------------------------------------------------------------------------------

hand_over() { # KIND STEP… -- COMMAND…
	run "$BATS_TEST_DIRNAME/handed_over" "$@" 3>&-
}

openmetrics="application/openmetrics-text; version=1.0.0; charset=utf-8"
classic="text/plain; version=0.0.4; charset=utf-8"

@test "a socket of systemd's: one response for each connection, in the format that the client asks for" {
	needs_parser
	hand_over listening get /metrics -- nvtaskset metrics
	[ "${lines[0]}" = "HTTP/1.1 200 OK" ]
	[ "${lines[1]}" = "$classic" ]
	sed 1,2d <<<"$output" >"$WORK/metrics"
	parse prometheus "$WORK/metrics" nvtaskset_gpu_tpcs | grep -q ' 66$'
	accept="application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
	hand_over listening get /metrics "$accept" -- nvtaskset metrics
	[ "${lines[1]}" = "$openmetrics" ]
	sed 1,2d <<<"$output" >"$WORK/metrics"
	parse openmetrics "$WORK/metrics" nvtaskset_gpu_tpcs | grep -q ' 66$'
	hand_over listening get /metrics "$accept" get / -- nvtaskset metrics --format prometheus
	[ "$(grep -cxF "$classic" <<<"$output")" -eq 2 ]
	hand_over listening get "/metrics?x=1" -- nvtaskset metrics --format openmetrics
	[ "${lines[1]}" = "$openmetrics" ]
}

# Also where nobody asks for longer than a lease lasts, which ends where the service itself gets no time for so long.
counts_unasked() { # STEP…
	hand_over listening get /metrics "$@" rest 3 get /metrics -- nvtaskset metrics --busy --format openmetrics
	sed '1,/^# EOF/d' <<<"$output" | sed 1,2d >"$WORK/metrics"
	measured=$(value nvtaskset_measured_seconds_total "pid=$PROGRAM")
	busy=$(value nvtaskset_busy_seconds_total "pid=$PROGRAM")
	tpcs=$(value nvtaskset_tpc_seconds_total "pid=$PROGRAM")
	awk -v measured="$measured" -v busy="$busy" -v tpcs="$tpcs" 'BEGIN {
		exit !(measured >= 2 && busy > 0 && busy < measured && tpcs >= 7.99 * busy && tpcs <= 8.01 * busy)}'
}

@test "--busy: a service counts busy time all the time, whether it is asked or not" {
	needs_parser
	start_program -t 0-7
	wait_until counts_unasked
	wait_until counts_unasked silent
}

@test "--busy is for a service" {
	why="--busy: counts as long as a service runs; it needs a socket to listen on, of systemd's"
	refuses "$why" nvtaskset metrics --busy
	refuses "$why" nvtaskset metrics --busy --output "$WORK/file"
	[ ! -e "$WORK/file" ]
	hand_over connection get /metrics -- nvtaskset metrics --busy 2>&1
	[[ "$output" == *"nvtaskset: $why"* ]]
}

# Whether so many programs of others have their busy time in the metrics, with this right of the service, too. On a busy machine,
# the time may not be known at first.
are_shown_busy() { # NUMBER [,+CAPABILITY]
	local rights=+sys_ptrace,+dac_read_search${2-}
	hand_over listening rest 2 get /metrics -- setpriv --reuid 65533 --clear-groups --inh-caps="$rights" \
		--ambient-caps="$rights" --bounding-set="-all,$rights" nvtaskset metrics --busy --format openmetrics
	sed 1,2d <<<"$output" >"$WORK/metrics"
	[ "$(value nvtaskset_launched_kernels_total | wc -l) $(value nvtaskset_busy_seconds_total | wc -l)" = "1 $1" ]
}

@test "--busy: programs of others, with the rights that the man page names, and without" {
	needs_parser
	needs_to_look_into_others
	chmod 644 "$WORK/gpus.txt"
	start_program_by "${ANOTHER_USER[@]}" nvtaskset --mps off -t 0-7
	wait_until are_shown_busy 1 ,+dac_override
	are_shown_busy 0
}

@test "a connection that systemd has accepted: one response, and the end" {
	hand_over connection get /metrics -- nvtaskset metrics
	[ "${lines[0]}" = "HTTP/1.1 200 OK" ]
	[ "${lines[-1]}" = "status 0" ]
}

@test "what is no request for metrics" {
	hand_over listening get /other say 'POST /metrics HTTP/1.1\r\n\r\n' say 'HEAD /metrics HTTP/1.1\r\n\r\n' \
		say "$(head -c 9000 /dev/zero | tr '\0' x)" get /metrics -- nvtaskset metrics
	[ "$(grep ^HTTP <<<"$output")" = "HTTP/1.1 404 Not Found
HTTP/1.1 405 Method Not Allowed
HTTP/1.1 200 OK
HTTP/1.1 400 Bad Request
HTTP/1.1 200 OK" ]
	# HEAD has no body.
	grep -A2 '405 Method' <<<"$output" | grep -q '^405 Method'
	[ "$(grep -c '^# TYPE nvtaskset_build' <<<"$output")" -eq 1 ]
}

@test "clients that say nothing, leave or reset, keep nobody waiting for long" {
	hand_over listening leave silent reset leave reset get /metrics signal TERM -- nvtaskset metrics
	[ "${lines[0]}" = "HTTP/1.1 200 OK" ]
	[ "${lines[-1]}" = "signal 15" ]
	# More than are served at once: waited for one after the other, they would take longer than the client waits.
	# shellcheck disable=SC2046 # many words
	hand_over listening $(yes silent | head -n 70) get /metrics -- nvtaskset metrics
	[ "${lines[0]}" = "HTTP/1.1 200 OK" ]
}

# Memory grows in steps of 132 kB, and the last connections may still be open.
@test "a service has as much after 500 responses as after 100" {
	! is_sanitized || skip "a sanitizer keeps freed memory, and looks for leaks"
	start_program -t 0-7
	hand_over listening scrapes 100 scrapes 400 -- nvtaskset metrics --busy
	read -r _ before files _ after files_after < <(xargs <<<"$output")
	[ "$after" -le $((before + 264)) ]
	[ "$files_after" -le $((files + 4)) ]
}

@test "more programs than the service may have files open" {
	needs_parser
	start "$BUILD/tests/programs/hostile" many 80 0
	ready() { [ "$(wc -l <"$WORK/output")" -eq 80 ]; }
	wait_until ready
	hand_over listening rest 1.5 get /metrics rest 1.5 get /metrics -- \
		bash -c 'ulimit -n 120; exec nvtaskset metrics --busy --format openmetrics'
	[ "$(grep -c "^HTTP/1.1 200 OK" <<<"$output")" -eq 2 ]
	[ "$(grep -c '^nvtaskset_program_info.*command="hostile"' <<<"$output")" -eq 160 ]
}

@test "a GPU that the machine does not have is in no label" {
	start "$BUILD/tests/programs/hostile" many 1 0x77
	wait_for_line ready
	look
	grep -q "^nvtaskset_program_info.*pid=\"$PROGRAM\"" "$WORK/metrics"
	not grep -q 77:06 "$WORK/metrics"
}

@test "what systemd would not hand over" {
	for kind in file datagram; do
		hand_over "$kind" -- nvtaskset metrics
		[ "${lines[0]} ${lines[-1]}" = "nvtaskset: LISTEN_FDS=1: descriptor 3 is not a stream socket status 1" ]
	done
	hand_over two -- nvtaskset metrics
	[ "${lines[0]}" = "nvtaskset: LISTEN_FDS=2: must be 1, one socket" ]
	for count in 0 -1 1x '' 99999999999999999999 4294967297; do
		refuses "LISTEN_FDS=$count: must be 1, one socket" env "LISTEN_FDS=$count" sh -c 'LISTEN_PID=$$ exec nvtaskset metrics'
	done
}

@test "what systemd has handed to our parent is not ours" {
	for pid in $$ x '' -1 0; do
		[ "$(LISTEN_FDS=1 LISTEN_PID=$pid nvtaskset metrics | tail -n 1)" = "# EOF" ]
	done
	[ "$(LISTEN_FDS=x nvtaskset metrics | tail -n 1)" = "# EOF" ]
}

@test "the units are as systemd wants them" {
	command -v systemd-analyze >/dev/null || skip "no systemd here"
	needs_root
	mkdir "$WORK/units"
	cp "$ROOT/share/systemd/nvtaskset-metrics.socket" "$WORK/units"
	sed "s|@BINDIR@|$BUILD|" "$ROOT/share/systemd/nvtaskset-metrics.service.in" >"$WORK/units/nvtaskset-metrics.service"
	run systemd-analyze verify --man=no "$WORK/units/nvtaskset-metrics.socket" "$WORK/units/nvtaskset-metrics.service"
	[ -z "$(grep nvtaskset <<<"$output")" ]
}
