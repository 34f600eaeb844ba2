#!/usr/bin/env python3
"""Fills the memory that a framework may have, gets its error, and goes on: for tests/hardware/memory.sh.

usage: memory_fill.py torch|jax

Prints the GPU's memory as the framework sees it, how much was in use when an allocation failed, both in MiB, and
"goes on" when the framework has freed some and has computed with the rest.
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
    import torch
    _, total = torch.cuda.mem_get_info()
    pieces = fill(lambda: torch.full((PIECE,), 1, dtype=torch.uint8, device="cuda"), torch.cuda.OutOfMemoryError)
    free, _ = torch.cuda.mem_get_info()
    print(total // MIB, (total - free) // MIB)
    del pieces[:8]
    matrix = torch.ones(1024, 1024, device="cuda")
    return float((matrix @ matrix)[0, 0]) == 1024


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
