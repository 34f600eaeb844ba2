"""A borrower with many kinds of kernels: the time of each pass over all of them, one line for each pass.

    kinds.py [KINDS [SECONDS]]

Each kind is a function of its own, some 60 us on half of a GPU, built by CuPy before the first pass.
"""

import sys
import time

import cupy

SOURCE = """
extern "C" __global__ void kind_{0}(float *out)
{{
    float value = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < 2600; i++)
        value = value * 1.0001f + {0}.0f;
    if (value == 1.0f)
        *out = value;
}}
"""


def main():
    kinds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    out = cupy.zeros(1, cupy.float32)
    module = cupy.RawModule(code="".join(SOURCE.format(i) for i in range(kinds)))
    functions = [module.get_function(f"kind_{i}") for i in range(kinds)]
    cupy.cuda.Device().synchronize()
    begin = last = time.monotonic()
    while last < begin + seconds:
        for function in functions:
            function((792,), (512,), (out,))
        cupy.cuda.Device().synchronize()
        now = time.monotonic()
        print(f"{now - begin:.3f} s: {(now - last) * 1000:.1f} ms for a pass", flush=True)
        last = now


main()
