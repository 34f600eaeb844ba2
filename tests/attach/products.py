"""A PyTorch program that knows nothing of nvtaskset, for tests/attach/soak: threads with streams of their own multiply
matrices, and check each product. Says "ready", ends with its standard input, and says "intact" then."""

import os
import sys
import threading

import torch

SIZES = (512, 1024, 2048)

ends = threading.Event()
products = [0] * len(SIZES)


def check(holds, what):
    if not holds:
        print("lost:", what, flush=True)
        os._exit(3)


def multiply(number, ready):
    size = SIZES[number]
    generator = torch.Generator(device="cuda").manual_seed(number)
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16, generator=generator)
    b = torch.randn(size, size, device="cuda", dtype=torch.bfloat16, generator=generator)
    expected = a.double() @ b.double()
    scale = expected.abs().max()
    with torch.cuda.stream(torch.cuda.Stream()):
        while not ends.is_set():
            product = a @ b
            # Allocates and frees memory, with the work of other threads in between.
            copy = product.cpu()
            check(torch.equal(copy, product.cpu()), "a copy")
            error = ((product.double() - expected).abs().max() / scale).item()
            check(error < 0.02, f"a product of {size}: error {error}")
            products[number] += 1
            ready.set()


def main():
    threads = []
    for number in range(len(SIZES)):
        ready = threading.Event()
        threads.append(threading.Thread(target=multiply, args=(number, ready)))
        threads[-1].start()
        ready.wait()
    print("ready", flush=True)
    sys.stdin.read()
    ends.set()
    for thread in threads:
        thread.join()
    print("products:", *products)
    print("intact", flush=True)


main()
