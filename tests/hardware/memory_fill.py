#!/usr/bin/env python3
"""Fills the memory that a framework may have, gets its error, and goes on: for tests/hardware/memory.sh.

usage: memory_fill.py torch|jax

Prints the GPU's memory as the framework sees it, how much was in use when an allocation failed, both in MiB, and
"goes on" when the framework has freed some, has computed with the rest, and has got the error once more.
"""
import sys

MIB = 1 << 20
PIECE = 128 * MIB


def fill(allocate, errors):
    """Allocates pieces until there are no more; the error is the framework's."""
    pieces = []
    try:
        while len(pieces) < 4096:
            pieces.append(allocate())
    except errors as error:
        text = str(error).lower()
        if "out of memory" not in text and "resource_exhausted" not in text and "resource exhausted" not in text:
            raise
        return pieces
    raise SystemExit("there was no end")


def with_torch():
    """PyTorch keeps freed tensors' memory in a cache of pieces. For a larger tensor, the cache is of no use: PyTorch
    has to give the pieces back to the driver, and to ask again. Libraries such as cuBLAS ask the driver themselves, and
    fail while the cache holds the rest of the memory, on a full GPU as well. Therefore a program empties the cache."""
    import torch

    def piece():
        return torch.full((PIECE,), 1, dtype=torch.uint8, device="cuda")

    _, total = torch.cuda.mem_get_info()
    pieces = fill(piece, torch.cuda.OutOfMemoryError)
    free, _ = torch.cuda.mem_get_info()
    print(total // MIB, (total - free) // MIB)
    del pieces[:8]
    larger = torch.full((4 * PIECE,), 1, dtype=torch.uint8, device="cuda")
    is_right = int(larger[-1]) == 1
    del larger
    torch.cuda.empty_cache()
    matrix = torch.ones(1024, 1024, device="cuda")
    is_right = is_right and float((matrix @ matrix)[0, 0]) == 1024
    again = fill(piece, torch.cuda.OutOfMemoryError)
    return is_right and 4 <= len(again) <= 8


def with_jax():
    import jax
    import jax.numpy as jnp
    device = jax.devices()[0]
    pieces = fill(lambda: jnp.ones(PIECE, dtype=jnp.uint8).block_until_ready(), Exception)
    stats = device.memory_stats() or {}
    print(stats.get("bytes_limit", 0) // MIB, stats.get("bytes_in_use", len(pieces) * PIECE) // MIB)
    del pieces[:8]
    matrix = jnp.ones((1024, 1024))
    return float((matrix @ matrix)[0, 0]) == 1024


print("goes on" if {"torch": with_torch, "jax": with_jax}[sys.argv[1]]() else "computes wrongly")
