# Programs with a quota, or "unlimited": they are in the whole GPU, and take turns.

# A command, since timeout takes no function.
cat >"$BENCH_WORK/with_quota" <<'END'
#!/bin/bash
quota=(--quota "$1")
[ "$1" != unlimited ] || quota=()
exec nvtaskset --mps off "${quota[@]}" all "${@:2}"
END
chmod +x "$BENCH_WORK/with_quota"

run_with_quota() { # QUOTA COMMAND…
	timeout 60 "$BENCH_WORK/with_quota" "$@"
}
