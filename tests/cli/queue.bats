#!/usr/bin/env bats
# The simulated queue of bench/experiments/queue: who begins when, and where

load helpers

# Prints "START NODE GPUS" of each job.
queue() {
	"$BUILD/bench/queue" "$@" | cut -d ' ' -f 1,3,4 | paste -sd , -
}

@test "jobs share a GPU as far as it has TPCs, and none spans two" {
	# Eight of 40 TPCs; one of 26 fits beside, one of 27 has to wait, though 182 are free.
	run queue 1 < <(yes "0 100 100 1 40" | head -n 8 && echo "1 100 100 1 26" && echo "2 100 100 1 27")
	[[ "$output" =~ ^(0 0 0x[0-9a-f]+,){8}"1 0 0x"[0-9a-f]+",100 0 0x"[0-9a-f]+$ ]]
	[ "$(tr , '\n' <<<"$output" | head -n 8 | sort -u | wc -l)" -eq 8 ]
	# Of two with room, where the least is left over.
	run queue 1 < <(printf '%s\n' "0 100 100 1 60" "0 100 100 1 30" "1 100 100 1 6" "1 100 100 1 30")
	[ "$output" = "0 0 0x1,0 0 0x2,1 0 0x1,1 0 0x2" ]
}

@test "several GPUs are of one node, and idle" {
	# Each node has seven idle GPUs left; eight are nowhere idle until the longer one ends.
	run queue 2 < <(printf '%s\n' "0 10 10 8 66" "1 30 30 1 1" "2 5 5 8 66" "3 5 5 7 66")
	[ "$output" = "0 0 0xff,1 1 0x1,10 0 0xff,3 1 0xfe" ] || [ "$output" = "0 1 0xff,1 0 0x1,10 1 0xff,3 0 0xfe" ]
	# Single ones go together, so that a node stays idle for who needs all of it.
	run queue 2 < <(printf '%s\n' "0 100 100 1 66" "1 100 100 1 66" "2 100 100 8 66")
	[[ "$output" == *",2 "?" 0xff" ]]
}

@test "the oldest is not delayed by those that come later" {
	seven=$(yes "0 100 100 1 66" | head -n 7)
	# One for eight GPUs waits until 100. On the idle GPU there is room for 50 s, not for what says 41 s at 60.
	run queue 1 <<<"$seven
1 10 10 8 66
2 50 50 1 66
60 5 41 1 66
61 39 39 1 66"
	[ "${output##*0 0x40,}" = "100 0 0xff,2 0 0x80,110 0 0x1,61 0 0x80" ]
	# Jobs that end before their limit: it begins as soon as it can.
	run queue 1 <<<"${seven//100 100/50 100}
1 10 10 8 66"
	[ "${output##*,}" = "50 0 0xff" ]
	# What becomes free sooner than was said is the oldest one's, not the smallest one's.
	run queue 1 <<<"$seven
0 50 200 1 66
1 10 10 1 66
2 70 70 1 1"
	[[ "$output" == *",50 0 0x80,60 0 0x80" ]]
	# A part of its GPU that has become free does not go to a later one.
	run queue 1 <<<"$seven
0 20 20 1 33
0 30 30 1 33
1 10 10 1 66
21 100 100 1 33"
	[[ "$output" == *",30 0 0x80,40 0 0x80" ]]
}

@test "whole GPUs in place of parts" {
	printf '%s\n' "8 4" "16 2" >"$WORK/factors"
	# Nine of 8 TPCs share one GPU, or have to wait; on a whole one they take a quarter of the time.
	jobs=$(yes "0 100 100 1 7" | head -n 9)
	[ "$(queue 1 <<<"$jobs" | tr , '\n' | cut -d ' ' -f 1 | sort -u)" = 0 ]
	[ "$("$BUILD/bench/queue" -w /dev/null 1 <<<"$jobs" | tail -n 1 | cut -d ' ' -f 1,2)" = "100 200" ]
	[ "$("$BUILD/bench/queue" -w "$WORK/factors" 1 <<<"${jobs//1 7/1 8}" | tail -n 1 | cut -d ' ' -f 1,2)" = "25 50" ]
	# Between 8 and 16 TPCs, on a line of logarithms: here half as fast with twice as many.
	[ "$("$BUILD/bench/queue" -w "$WORK/factors" 1 <<<"0 100 100 1 11" | cut -d ' ' -f 2)" = 34.375 ]
}

@test "jobs that cannot be are refused" {
	for job in "0 1 1 9 66" "0 1 1 2 33" "0 2 1 1 1" "0 1 1 1 67" "0 1 1 1 x"; do
		run queue 1 <<<"$job"
		[[ "$output" == "queue: "* ]]
	done
}

# Without parts, and with one size of jobs, the theory knows the mean time until the start (Erlang's C).
@test "the mean wait of a queue that the theory knows" {
	python3 - "$BUILD/bench/queue" <<-'END'
		import math, random, subprocess, sys
		chance, servers, load, time, jobs = random.Random(1), 8, 0.8, 0.0, []
		for _ in range(200000):
		    time += chance.expovariate(servers * load)
		    jobs.append((time, chance.expovariate(1) + 1e-9))
		text = "".join(f"{time!r} {long!r} {long!r} 1 66\n" for time, long in jobs)
		lines = subprocess.run([sys.argv[1], "1"], input=text, capture_output=True, text=True, check=True).stdout.split("\n")
		mean = sum(float(line.split()[0]) - job[0] for line, job in zip(lines, jobs)) / len(jobs)
		offered = servers * load
		waits = offered**servers / math.factorial(servers) / (1 - load)
		waits /= waits + sum(offered**n / math.factorial(n) for n in range(servers))
		expected = waits / (servers - offered)
		print(mean, expected)
		sys.exit(not 0.95 < mean / expected < 1.05)
	END
}

@test "the experiment: the same seed gives the same result" {
	for one in 1 2; do
		PATH=$BUILD/bench:$PATH TMPDIR=$WORK BENCH_OUT=$WORK/$one BENCH_QUICK=1 "$ROOT/bench/run" queue
		grep -v '^#' "$WORK/$one/queue.csv" >"$WORK/rows$one"
	done
	cmp "$WORK/rows1" "$WORK/rows2"
	[ "$(sed 1d "$WORK/rows1" | wc -l)" -ge 400 ]
	grep -q '^1,0.3,tpcs,all,used,' "$WORK/rows1"
	# The same jobs come under each policy.
	[ "$(grep -c ",0.3,.*,all,jobs,$(sed -n 's/^1,0.3,tpcs,all,jobs,//p' "$WORK/rows1")$" "$WORK/rows1")" -eq 4 ]
}
