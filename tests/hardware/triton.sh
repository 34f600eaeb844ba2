#!/bin/bash
# torch.compile in a partition, with Triton's launchers built anew: under nvtaskset, with our library named to Triton,
# after system enable, and in the environment of a device for containers. TAP on standard output. As root: installs
# nvtaskset into /usr/local, and removes the installation. Needs PyTorch with Triton, and gcc.
#
#   BUILD=build tests/hardware/triton.sh      after make all
# shellcheck disable=SC2317 # finish is called by a trap
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
BUILD=$(realpath "${BUILD:-build}")
work=$(mktemp -d) count=0 failed=0
driver=$("$BUILD/nvtaskset" -v --mps off all true 2>&1 | sed -n 's/^.*driver: \([^,]*libcuda[^, ]*\).*/\1/p')
driver=${driver:-$(/sbin/ldconfig -p | sed -n 's/.*libcuda\.so\.1 (.*64).* => //p' | head -n 1)}
for directory in ${LD_LIBRARY_PATH//:/ }; do
	[ -n "$driver" ] || [ ! -e "$directory/libcuda.so.1" ] || driver=$directory/libcuda.so.1
done
[ -n "$driver" ] || { echo "1..0 # skip there is no driver"; exit 0; }
echo "# driver: $driver"
front=/opt/nvtaskset-test front_configuration=/etc/ld.so.conf.d/00-000-nvtaskset-test.conf
driver_configuration=/etc/ld.so.conf.d/zz-nvtaskset-test.conf

# Its first line of output is the TPCs.
is_inside() { # NAME TPCs COMMAND…
	local verdict=ok name=$1 tpcs=$2 said
	shift 2
	count=$((count + 1))
	said=$(env TRITON_CACHE_DIR="$work/$count/triton" TORCHINDUCTOR_CACHE_DIR="$work/$count/inductor" \
		TORCHINDUCTOR_FX_GRAPH_CACHE=0 \
		timeout 200 "$@" python3 tests/hardware/compiled.py "$BUILD/nvtaskset" 2>"$work/errors" </dev/null)
	[[ "$said" == "$tpcs: "* ]] || { verdict="not ok" failed=1; tail -n 15 "$work/errors" | sed 's/^/#   /'; }
	echo "$verdict $count - $name"
	echo "#   $said"
}

finish() {
	"$BUILD/nvtaskset" cdi remove --output "$work/device.json" infer >/dev/null 2>&1
	/usr/local/bin/nvtaskset system disable 2>&1 | sed 's/^/# /'
	rm -rf "$front" "$front_configuration" "$driver_configuration"
	/sbin/ldconfig
	make -s BUILD="$BUILD" uninstall >/dev/null
	rm -rf "$work"
}

is_inside "under nvtaskset" 8-15 "$BUILD/nvtaskset" --mps off -t 8-15
is_inside "linked with our library" 8-15 env TRITON_LIBCUDA_PATH="$BUILD/lib" "$BUILD/nvtaskset" --mps off -t 8-15

[ "$(id -u)" = 0 ] || { echo "1..$count # the rest needs root"; exit $failed; }
trap finish EXIT
make -s BUILD="$BUILD" install 2>&1 | sed 's/^/# /'
# Where LD_LIBRARY_PATH alone leads to the driver, as in some images.
unset LD_LIBRARY_PATH
/sbin/ldconfig -p | grep -q 'libcuda\.so\.1 ' || { dirname "$driver" >"$driver_configuration" && /sbin/ldconfig; }
/usr/local/bin/nvtaskset system enable 2>&1 | sed 's/^/# /'
is_inside "after system enable" 8-15 "$BUILD/nvtaskset" --mps off -t 8-15 env -u LD_LIBRARY_PATH
/usr/local/bin/nvtaskset system disable 2>&1 | sed 's/^/# /'

# As the hook makes it in a container (tools/nvtaskset/cdi/hook.c), but for the paths.
mkdir -p "$front/driver"
cp "$BUILD/lib/libcuda.so.1" "$front/"
ln -s libcuda.so.1 "$front/libcuda.so"
ln -s "$driver" "$front/driver/libnvtaskset-driver.so.1"
echo "$front" >"$front_configuration"
/sbin/ldconfig -X
"$BUILD/nvtaskset" cdi add --mps off -t 8-15 --output "$work/device.json" infer 2>&1 | sed 's/^/# /'
is_inside "in the environment of a device" 8-15 \
	env NVTASKSET_GROUP_FILE="$work/device/infer" CUDA_MPS_PIPE_DIRECTORY=/dev/null
echo "1..$count"
exit $failed
