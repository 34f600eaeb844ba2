"""A program whose results are the same in each run, bit by bit: after each part of the work, prints the number of steps
and a digest, and on standard error the time that the part took. Ends after the part in which the file CHURN_OVER comes.

    churn.py resnet | llama | generate | graph | jax | nccl | simulated
"""

import hashlib
import os
import subprocess
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Launches, not graphs of launches.
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true --xla_gpu_enable_command_buffer=")


def digest(arrays):
    found = hashlib.sha256()
    for array in arrays:
        found.update(array.tobytes())
    return found.hexdigest()[:16]


def is_over():
    return os.path.exists(os.environ["CHURN_OVER"])


def prepare():
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    return torch


def train(torch, model, loss_of, steps, synchronises, ends=is_over):
    """Without a synchronisation, the host runs ahead as far as the driver lets it."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    while not ends():
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = loss_of()
            loss.backward()
            optimizer.step()
            if synchronises:
                loss.item()
        yield steps, [parameter.detach().float().cpu().numpy() for parameter in model.parameters()]


def resnet():
    torch = prepare()
    import timm

    model = timm.create_model("resnet50", num_classes=100).cuda()
    images = torch.randn(32, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 100, (32,), device="cuda")
    return train(torch, model, lambda: torch.nn.functional.cross_entropy(model(images), labels), 150, False)


def small_llama(torch):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
                         num_key_value_heads=16, vocab_size=32000)
    return LlamaForCausalLM(config).cuda()


def llama():
    torch = prepare()
    model = small_llama(torch)
    tokens = torch.randint(0, 32000, (8, 1024), device="cuda")
    return train(torch, model, lambda: model(input_ids=tokens, labels=tokens).loss, 20, True)


def generate():
    """In float32, for many at once: the GPU has more to do than the host, and launches wait."""
    torch = prepare()
    model = small_llama(torch).eval()
    while not is_over():
        tokens = torch.randint(1, 32000, (2048, 16), device="cuda")
        answer = model.generate(tokens, max_new_tokens=24, do_sample=False, pad_token_id=0)
        yield 1, [answer.cpu().numpy()]


def graph():
    """A graph that is replayed, beside plain launches in a second stream."""
    torch = prepare()
    matrix = torch.randn(2048, 2048, device="cuda") / 20  # large enough for a wrong bit to grow
    state = torch.randn(2048, 2048, device="cuda")
    beside = state.clone()
    stream = torch.cuda.Stream()

    def multiply(value):
        for _ in range(8):
            value.copy_(torch.tanh(torch.mm(value, matrix)))
            value.add_(0.001)

    torch.mm(state, matrix)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        multiply(state)
    while not is_over():
        for _ in range(200):
            captured.replay()
            with torch.cuda.stream(stream):
                multiply(beside)
        torch.cuda.synchronize()
        yield 200, [state.cpu().numpy(), beside.cpu().numpy()]


def jax():
    import jax as module
    import jax.numpy as np
    import numpy

    keys = module.random.split(module.random.key(1), 8)
    weights = [module.random.normal(key, (2048, 2048)) / 45 for key in keys]
    x = module.random.normal(keys[0], (2048, 2048))

    def loss(weights):
        y = x
        for weight in weights:
            y = np.tanh(y @ weight)
        return (y * y).mean()

    step = module.jit(lambda weights: [w - 0.1 * g for w, g in zip(weights, module.grad(loss)(weights))])
    while not is_over():
        for _ in range(200):
            weights = step(weights)
        yield 200, [numpy.asarray(weight) for weight in weights]


def nccl():
    """Two ranks on two GPUs, a process each. Rank 0 starts rank 1, and prints."""
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                          MASTER_PORT=str(20000 + os.getpid() % 20000))
        subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": "1"}, stdout=subprocess.DEVNULL)
    torch = prepare()
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    layers = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8)))
    model = torch.nn.parallel.DistributedDataParallel(layers.cuda(), device_ids=[rank])
    torch.manual_seed(rank)
    data = torch.randn(16384, 2048, device="cuda")

    def ends():
        end = torch.tensor(float(is_over()), device="cuda")
        torch.distributed.all_reduce(end)
        return end.item() > 0

    yield from train(torch, model, lambda: model(data).square().mean(), 100, False, ends)
    # Under MPS the end of a process group hangs, also without nvtaskset.
    os._exit(0)


def simulated():
    """For a simulated GPU: launches of a second program wait."""
    play = os.environ["BUILD"] + "/tests/programs/play"
    program = subprocess.Popen([play, "busy", "wait"], stdout=subprocess.DEVNULL)
    while not is_over():
        time.sleep(0.2)
        yield 1, []
    program.kill()


def main():
    programs = {"resnet": resnet, "llama": llama, "generate": generate, "graph": graph, "jax": jax, "nccl": nccl,
                "simulated": simulated}
    done, began = 0, time.monotonic()
    for steps, arrays in programs[sys.argv[1]]():
        done += steps
        print(done, digest(arrays), flush=True)
        print(f"{steps} steps in {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
        began = time.monotonic()


main()
