"""CUDA graphs of PyTorch."""

import torch

WARM_UP = 3


def capture(compute):
    """The graph of what compute() launches, and what it returned then. As PyTorch's documentation has it: what is captured has run before,
    in a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            compute()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compute()
    return graph, result
