"""A model whose kernels Triton makes, in a partition: checks that the launcher was built anew, and that all kernels ran
inside. Prints one line. Usage: compiled.py NVTASKSET"""

import glob
import json
import os
import re
import subprocess
import sys

import torch


def model(x, weight):
    return torch.nn.functional.gelu(x @ weight).softmax(dim=-1).sum(dim=-1)


def libraries():
    """Which libcuda.so.1 the process has, and what the launchers need."""
    built = glob.glob(os.environ["TRITON_CACHE_DIR"] + "/**/*.so", recursive=True)
    assert built, "Triton has built no launcher"
    dynamic = subprocess.check_output(["readelf", "-d", *built], text=True)
    assert "[libcuda.so" in dynamic, "no launcher needs the driver"
    return len(built), sorted(set(re.findall(r"\[(libcuda[^]]*)\]", dynamic)))


x, weight = torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")
compiled = torch.compile(model)
for _ in range(20):
    result = compiled(x, weight)
torch.testing.assert_close(result, model(x, weight), rtol=1e-3, atol=1e-3)
torch.cuda.synchronize()
document = json.loads(subprocess.check_output([sys.argv[1], "-l", "--json"]))
(process,) = [process for process in document["processes"] if process["pid"] == os.getpid()]
count, needed = libraries()
assert process["restricted"] > 20 and process["outside"] == 0, process
tpcs = process["partitions"][0]["tpc_list"]
print(f"{tpcs}: {process['restricted']} kernels inside, {count} libraries built, need {needed}")
