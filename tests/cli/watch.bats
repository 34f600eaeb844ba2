#!/usr/bin/env bats
# --watch, on terminals and elsewhere; and what top has in common with it

load helpers
OWN_GPUS=yes

enter=$'\e[?1049h\e[?25l\e[?7l'
leave=$'\e[?7h\e[?25h\e[?1049l'

@test "after any signal that ends it, the terminal is as it was" {
	for signal in INT=2 QUIT=3 HUP=1 TERM=15; do
		for command in "-l --watch=0.1" "top --delay 0.1"; do
			on_terminal 80x24 see "PID" signal "${signal%=*}" -- nvtaskset $command
			[ "$output" = "signal ${signal#*=}, terminal as before" ]
			[[ "$OUTPUT" == "$enter"*"$leave" ]]
		done
	done
	# By the keyboard, while the next update is far away.
	for command in "-l --watch=1000" "top --delay 1000"; do
		on_terminal 80x24 see "PID" type $'\x03' -- nvtaskset $command
		[ "$output" = "signal 2, terminal as before" ]
	done
}

@test "stopped and continued" {
	for command in "-l --watch=1000" "top --delay 1000"; do
		on_terminal 80x24 see "PID" type $'\x1a' stopped continue see "$enter" see "PID" type q -- nvtaskset $command
		[ "$output" = $'stopped, terminal as before\nstatus 0, terminal as before' ]
	done
	# SIGSTOP cannot be caught, so the screen stays as it is; after SIGCONT all is well again.
	on_terminal 80x24 see "PID" signal STOP stopped continue see "$enter" see "PID" type q -- nvtaskset -l --watch=1000
	[ "${lines[1]}" = "status 0, terminal as before" ]
	# Killed while it is stopped.
	on_terminal 80x24 see "PID" type $'\x1a' stopped signal TERM continue -- nvtaskset -l --watch=1000
	[ "$output" = $'stopped, terminal as before\nsignal 15, terminal as before' ]
}

@test "the terminal goes away" {
	for command in "-l --watch=1000" "top --delay 1000"; do
		on_terminal 80x24 see "PID" hang-up -- nvtaskset $command
		[ "$output" = "status 1, terminal gone" ]
	done
}

@test "a frame is written over the one before, at once" {
	on_terminal 80x40 see "66 free" see "66 free" type q -- nvtaskset -T --watch=0.1
	frames=${OUTPUT#"$enter"}
	[[ "$frames" == $'\e[?2026h\e[H'*$'\e[J\e[?2026l\e[?2026h\e[H'* ]]
	# Only the rest that a shorter line or frame leaves is cleared.
	[[ "$frames" != *$'\e[2J'* ]]
	# A frame that is begun is written as a whole.
	[ "$(grep -o $'\e\[?2026h' <<<"$frames" | wc -l)" -eq "$(grep -o $'\e\[?2026l' <<<"$frames" | wc -l)" ]
}

@test "changes are shown, and a process keeps its letter" {
	start_program -t 0-7
	first=$PROGRAM
	start_program -t 8-9
	on_terminal 100x40 see "56 free" see "B " end "$first" see "64 free" see " B " see "$PROGRAM" type q -- nvtaskset -T --watch=0.1
	[ "$output" = "status 0, terminal as before" ]
}

@test "the picture fits the window, also after a change of its size" {
	on_terminal 80x24 see "61 ·" size 20x6 see " more lines)" size 80x30 see "single TPC" type q -- nvtaskset -T --watch=1000
	[ "$output" = "status 0, terminal as before" ]
	# The frame for the small window has its size.
	small=${OUTPUT%" more lines)"*}
	small=$(sed 's/\x1b\[[?0-9;]*[a-zA-Z]//g; s/\r//g' <<<"${small##*$'\e[H'} more lines)")
	[ "$(wc -l <<<"$small")" -eq 6 ]
	[ "$(LC_ALL=C.UTF-8 wc -L <<<"$small")" -eq 20 ]
}

@test "without a terminal: one picture after the other, with an empty line between, until nobody reads any more" {
	run -0 timeout 60 bash -c 'nvtaskset -T --watch=0.1 | head -n 32'
	[ "${#lines[@]}" -gt 20 ]
	[[ "$output" == *$'\n\nGPU 0, '* ]]
	[[ "$output" != *$'\e'* ]]
	# It ends then even before the next update.
	run -0 timeout 60 bash -c 'nvtaskset -l --watch=1000 | head -n 1'
	[[ "$output" == *"PID USER"* ]]
}

@test "a dumb terminal gets one picture after the other, in plain text" {
	for name in dumb ''; do
		TERM_NAME=$name on_terminal 80x24 see "66 free" see "66 free" signal INT -- nvtaskset -T --watch=0.1
		[ "$output" = "signal 2, terminal as before" ]
		[[ "$OUTPUT" != *$'\e'* ]]
	done
}
