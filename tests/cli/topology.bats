#!/usr/bin/env bats
# nvtaskset -T
# sanitizers: no

load helpers
OWN_GPUS=yes

setup_file() {
	# A known language and a terminal with all abilities; a test removes the one that it is about.
	export LC_ALL=C.UTF-8 TERM=xterm-256color
	unset NO_COLOR COLORTERM
}

# What the command draws on a terminal of this size, with the terminal's carriage returns removed.
drawn_on() {
	"$BATS_TEST_DIRNAME/on_terminal" "$1" "$WORK/screen" -- "${@:2}" >/dev/null
	tr -d '\r' <"$WORK/screen"
}

# The letters of a picture without colours.
plain() {
	sed 's/\x1b\[[0-9;]*m//g'
}

@test "a picture in ASCII without a terminal" {
	start_program -g 2
	first=$PROGRAM
	start_program -t 0,8,16,24,62-65,1
	run -0 nvtaskset -T
	[ "${lines[0]}" = "GPU 0, NVIDIA H200, $GPU: 66 TPCs of 2 SMs, 50 free" ]
	[ "${lines[1]}" = "GPC 0 |  6 .   14 .   22 .   30 .   37 .   44 .   51 .   58 .   60 ." ]
	if [ "$first" -lt "$PROGRAM" ]; then letters=AB; else letters=BA; fi
	a=${letters:0:1} b=${letters:1:1}
	[ "${lines[2]}" = "GPC 1 |  0 $b    8 $b   16 $b   24 $b : 62 $b : 63 $b : 64 $b : 65 $b" ]
	[ "${lines[3]}" = "GPC 2 |  1 #    9 $a   17 $a   25 $a   32 $a   39 $a   46 $a   53 $a" ]
	[[ "$output" == *$'\n'" $a "*"$first $(id -un)"*" 1,9,17,25,32,39,46,53 $BUILD/demo/where 60"* ]]
	[[ "$output" == *$'\n'" $b "*"$PROGRAM $(id -un)"*" 0-1,8,16,24,62-65 "*"$BUILD/demo/where 60"* ]]
	[[ "$output" == *$'\n'" #  A+B: TPCs 1"$'\n'* ]]
	not grep -q '[^ -~]' <<<"$output"
}

@test "on a UTF-8 terminal with lines and colours" {
	start_program -t 6
	run drawn_on 80x40 nvtaskset -T
	[[ "${lines[1]}" == $'GPC 0 │\e[38;5;16;48;5;117m  6 A \e[m \e[2m 14 · \e[m'* ]]
	[[ "$(plain <<<"$output")" == *"GPC 1 │  0 ·    8 ·   16 ·   24 · ┊ 62 · ┊ 63 · ┊ 64 · ┊ 65 · "* ]]
	[[ "$output" == *$'\e[38;5;16;48;5;117m A \e[m '*"$PROGRAM"* ]]
	TERM=xterm run drawn_on 80x40 nvtaskset -T
	[[ "${lines[1]}" == $'GPC 0 │\e[30;46m  6 A \e[m \e[2m 14 · \e[m'* ]]
}

@test "colour: not with NO_COLOR, on a dumb terminal, on one without a name, or elsewhere" {
	start_program -t 6
	for setting in NO_COLOR=1 TERM=dumb TERM=; do
		run drawn_on 80x40 env "$setting" nvtaskset -T
		[ "$setting" = TERM= ] || [[ "${lines[1]}" == "GPC 0 │  6 A   14 · "* ]]
		[[ "$output" != *$'\e'* ]]
	done
	run nvtaskset -T
	[[ "$output" != *$'\e'* ]]
	# An empty NO_COLOR has no effect: https://no-color.org
	NO_COLOR='' run drawn_on 80x40 nvtaskset -T
	[[ "$output" == *$'\e'* ]]
}

@test "plain ASCII where the locale is not UTF-8, on a terminal too" {
	LC_ALL=C run drawn_on 80x40 nvtaskset -T
	not grep -q $'[^ -~\e]' <<<"$output"
	[[ "$(plain <<<"$output")" == *"24 . : 62 . : 63 . : 64 . : 65 ."* ]]
	LC_ALL=nonsense run drawn_on 80x40 nvtaskset -T
	not grep -q $'[^ -~\e]' <<<"$output"
}

@test "a command is cut to the width of a terminal, but not elsewhere" {
	long=$(printf 'x%.0s' {1..300})
	start_named "60 $long"
	for view in -T -l; do
		[[ "$(nvtaskset $view)" == *"$long"* ]]
		run drawn_on 200x40 nvtaskset $view
		[[ "$(plain <<<"$output" | grep "$PROGRAM ")" =~ \ 0-3\ .*/where\ 60\ x+$ ]]
		[ "$(plain <<<"$output" | grep "$PROGRAM " | wc -L)" -eq 200 ]
	done
}

@test "-G: one of two GPUs; without it, both" {
	own_gpus h200-x2
	start_program -t -G 0:0-3 -G 1:4-7
	run nvtaskset -T
	[[ "$output" == "GPU 0, "*"62 free"*$' . '*$'\n\nGPU 1, '*"62 free"* ]]
	[ "$(grep -c " A .*$PROGRAM" <<<"$output")" -eq 2 ]
	run nvtaskset -T -G 1
	[[ "$output" == "GPU 1, "*" 4-7 "* ]]
	[[ "$output" != *"GPU 0"* ]]
	run nvtaskset -T -G "$GPU"
	[[ "$output" == "GPU 0, "*" 0-3 "* ]]
	CUDA_VISIBLE_DEVICES=1 run nvtaskset -T
	[[ "$output" == "GPU $GPU, NVIDIA H200: "*$'\n\nGPU 0, NVIDIA H200, '* ]]
	refuses "GPU 7: CUDA sees GPUs 0-1 here" nvtaskset -T -G 7
	refuses "-G: -T takes no SET" nvtaskset -T -G 0:0-3
	refuses "'1': one argument too many; try 'nvtaskset --help'" nvtaskset -T 1
}

@test "neither view uses CUDA" {
	export NVTASKSET_DRIVER=$WORK/none
	run -0 nvtaskset -T
	[[ "$output" == *"NVIDIA H200"* ]]
	run -0 nvtaskset -l
}
