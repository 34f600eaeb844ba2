#!/usr/bin/env bats
# Many jobs at once. SLURM_JOBS says how many, SLURM_SEED which.
# limit: 3600

load helpers

setup_file() {
	PLUGIN_OPTIONS="wait=20" CONFIGURATION="SlurmdDebug=debug" start_cluster
}

@test "of many random jobs, no two are ever on one TPC, and at the end all are free" {
	tests/slurm/random "$CLUSTER" "${SLURM_JOBS:-150}" ${SLURM_SEED:+"$SLURM_SEED"} >&3
}
