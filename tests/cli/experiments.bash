# Experiments of bench/ on the simulated GPU, and what they must leave.

bench() {
	PATH=$BUILD/bench:$PATH TMPDIR=$WORK BENCH_OUT=$WORK/results BENCH_QUICK=${quick-1} "$ROOT/bench/run" "$@"
}

has_program() {
	grep -qsa "BENCH_WORK=$WORK" /proc/[0-9]*/environ
}

# No program and no directory of a run is left. A program that has got a signal may need a moment to end.
left_nothing() {
	[ -z "$(ls -d "$WORK"/nvbench.* 2>/dev/null)" ]
	wait_until not has_program
}

# The file says on what it was measured and has rows, each with a value for every column.
well_formed() {
	awk -F, '
		/^# / {about = about " " $1; next}
		!columns {columns = NF; next}
		NF != columns {print FILENAME ": " $0; wrong = 1}
		{for (i = 1; i <= NF; i++) if ($i == "") {print FILENAME ": empty: " $0; wrong = 1}}
		{rows++}
		END {
			split("experiment machine gpu driver cuda pytorch cublas mps nvtaskset date command", names, " ")
			for (i in names)
				if (!index(about, "# " names[i] ":")) {print FILENAME ": no " names[i]; wrong = 1}
			if (!rows) {print FILENAME ": no rows"; wrong = 1}
			exit wrong
		}' "$1"
}

# The distinct values of one column.
column() { # FILE NUMBER
	grep -v '^#' "$1" | sed 1d | cut -d , -f "$2" | sort -u | paste -sd ' '
}

draws() (
	. "$ROOT/bench/support/results.bash"
	find_drawing_python >/dev/null
)

# A trial takes long on a busy machine: so what counts is how often, not for how long.
in_twenty_tries() { # COMMAND…
	local try
	for try in {1..20}; do
		! "$@" || return 0
	done
	return 1
}

# On a busy machine, an experiment may not see what it compares, and says so.
succeeds_again() { # what a run has printed, whose last line names those that failed
	local again
	again=$(sed -n '$s/.*; failed: //p' <<<"$1")
	[ -z "$again" ] || in_twenty_tries bench $again
}

experiments_of() { # TOPIC…
	(cd "$ROOT/bench" && find "$@" -maxdepth 1 -type f -executable -printf '%f\n')
}

# Standard input has lines FILE NUMBER VALUES: that column of the file has these values.
have_columns() {
	local file number values
	while read -r file number values; do
		echo "$file.csv $number: $(column "$WORK/results/$file.csv" "$number")"
		[ "$(column "$WORK/results/$file.csv" "$number")" = "$values" ] || return 1
	done
}

# Whether the lines of WORK/columns are so. A busy machine may leave a program no time for a sample: then once more.
all_have_samples() { # EXPERIMENT…
	have_columns <"$WORK/columns" || { bench "$@" >/dev/null && false; }
}

are_well_formed() {
	local file
	for file in "$WORK"/results/*.csv; do
		well_formed "$file"
	done
}

are_drawn() { # PICTURE…
	local picture
	if draws; then
		for picture in "$@"; do
			grep -q '</svg>' "$WORK/results/$picture.svg"
		done
	else
		[[ "$output" == *"not drawn: no python3 with matplotlib here"* ]]
	fi
}
