# The results of an experiment: a CSV file. Comments before its first line describe the machine.
#
#   BENCH_COMMIT    which version is measured, where git does not know
#   BENCH_OUT       where to; BENCH_WORK/header, the comments, is there before an experiment starts

# Makes NAME.csv, to which rows are added.
open_csv() { # NAME COLUMN,COLUMN…
	csv=$BENCH_OUT/$1.csv
	{
		echo "# experiment: $1"
		cat "$BENCH_WORK/header"
		echo "$2"
	} >"$csv"
}

# Adds a row for each line of standard input, with these first columns.
rows() { # COLUMN…
	local IFS=,
	sed "s|^|${*:+$*,}|" >>"$csv"
}

# Prints FULL; or QUICK if the experiments themselves are tested and should take no time.
pick() { # FULL QUICK
	if [ -n "${BENCH_QUICK:-}" ]; then echo "$2"; else echo "$1"; fi
}

# The python3 that has matplotlib: Debian's first, so that the same data gives the same pictures.
find_drawing_python() {
	local python
	for python in /usr/bin/python3 python3; do
		if $python -c 'import matplotlib' 2>/dev/null; then
			echo "$python"
			return
		fi
	done
	return 1
}

driver_version() {
	sed -n 's/^NVRM version: *//p' /proc/driver/nvidia/version 2>/dev/null ||
		nvidia-smi --query-gpu=driver_version --format=csv,noheader -i "$BENCH_GPU" 2>/dev/null
}

# What programs of PyTorch are measured with. cuBLAS's version is the package's: one that the toolkit has is not PyTorch's.
python_versions() {
	python3 - 2>/dev/null <<-'END'
		import importlib.metadata as packages
		found = {d.metadata["Name"].lower(): d.version for d in packages.distributions() if d.metadata["Name"]}
		print("# pytorch:", found.get("torch", "none"))
		print("# cublas:", ", ".join(f"{name} {found[name]}" for name in sorted(found) if "cublas" in name) or "none")
	END
}

describe_machine() {
	echo "# machine: $(uname -srm), $(nproc) CPUs,$(sed -n 's/^model name[^:]*://p' /proc/cpuinfo | head -n 1)"
	if [ -n "${BENCH_SIMULATED:-}" ]; then
		echo "# gpu: simulated: no number here means anything"
		echo "# driver: simulated"
		echo "# cuda: simulated"
	else
		split | { read -r tpcs sms name && echo "# gpu: $name, $tpcs TPCs of $sms SMs"; }
		echo "# driver: $(driver_version || echo unknown)"
		echo "# cuda: $(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | grep . || echo unknown)"
	fi
	python_versions || printf '# %s: unknown\n' pytorch cublas
	echo "# mps: ${BENCH_MPS:-none}"
	echo "# nvtaskset: $(nvtaskset --version), ${BENCH_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo no git)}"
	echo "# date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
	echo "# command: $BENCH_COMMAND"
}
