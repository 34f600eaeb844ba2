# Programs that run given steps, one after the other (tests/programs/play.c).

# Splits its arguments into `options` and `steps`.
take_steps() { # OPTION… -- STEP…
	options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	steps=("${@:2}")
}

# Starts such a program in a partition, and waits until it prints that it waits; PROGRAM is its pid, WORK/output its
# output.
start_as_usual() { # options and SET -- steps
	local options steps
	take_steps "$@"
	start nvtaskset "${options[@]}" "$BUILD/tests/programs/play" "${steps[@]}"
	waits 1
}

# The same without MPS.
start_playing() { # options and SET -- steps
	start_as_usual --mps off "$@"
}

# Under MPS.
start_side_by_side() { # options and SET -- steps
	fake start_as_usual "$@"
}

has_waited() { # how often by now
	[ "$(grep -c waiting "$WORK/output")" -eq "$1" ]
}

waits() { # how often by now
	wait_until has_waited "$1" || {
		cat "$WORK/output" "$WORK/errors"
		return 1
	}
}

go_on() {
	kill -USR1 "$PROGRAM"
}

# Lets the program go on, and waits for its end.
go_on_to_the_end() {
	go_on
	wait "$PROGRAM"
	PROGRAM=
	cat "$WORK/output" "$WORK/errors"
}

# What -p says of its current quota, priority or the like.
current() { # NOUN [PID]
	local pid=${2:-$PROGRAM}
	nvtaskset -p "$pid" | sed -n "s/^pid $pid's current $1: //p"
}

# The same without what became of it.
given() { # NOUN [PID]
	current "$@" | sed 's/:.*//'
}

# What -l --json says of it.
listed() { # MEMBER, or a filter of jq [PID]
	nvtaskset -l --json | jq -cr ".processes[] | select(.pid == ${2:-$PROGRAM}) | .$1"
}
