"""A program whose results are the same in each run, bit by bit: after each part of its work, prints the number of steps
and a digest. It ends with the first part after CHURN_SECONDS, counted from its start.

    churn.py resnet | llama | generate | graph | jax
"""

import hashlib
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")


BEGIN = time.time()
SECONDS = float(os.environ.get("CHURN_SECONDS", 40))


def digest(arrays):
    found = hashlib.sha256()
    for array in arrays:
        found.update(array.tobytes())
    return found.hexdigest()[:16]


def prepare():
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    return torch


def train(torch, model, loss_of, steps, synchronises):
    """Without a synchronisation, the host runs ahead as far as the driver lets it."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    while True:
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
    images = torch.randn(64, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 100, (64,), device="cuda")
    return train(torch, model, lambda: torch.nn.functional.cross_entropy(model(images), labels), 100, False)


def small_llama(torch):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
                         num_key_value_heads=16, vocab_size=32000)
    return LlamaForCausalLM(config).cuda()


def llama():
    torch = prepare()
    model = small_llama(torch)
    tokens = torch.randint(0, 32000, (4, 1024), device="cuda")
    return train(torch, model, lambda: model(input_ids=tokens, labels=tokens).loss, 40, True)


def generate():
    torch = prepare()
    model = small_llama(torch).to(torch.bfloat16).eval()
    while True:
        tokens = torch.randint(0, 32000, (4, 64), device="cuda")
        answers = [model.generate(tokens, max_new_tokens=24, do_sample=False, pad_token_id=0) for _ in range(4)]
        yield len(answers), [answer.cpu().numpy() for answer in answers]


def graph():
    """A graph that is replayed, with plain launches in between."""
    torch = prepare()
    matrix = torch.randn(2048, 2048, device="cuda") / 46
    state = torch.randn(2048, 2048, device="cuda")
    torch.mm(state, matrix)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(8):
            state.copy_(torch.tanh(torch.mm(state, matrix)))
    while True:
        for _ in range(500):
            captured.replay()
            for _ in range(8):
                state.mul_(1.01).add_(0.001)
        yield 500, [state.cpu().numpy()]


def jax():
    import jax as module
    import jax.numpy as np
    import numpy

    keys = module.random.split(module.random.key(1), 8)
    weights = [module.random.normal(key, (1024, 1024)) / 32 for key in keys]
    x = module.random.normal(keys[0], (512, 1024))

    def loss(weights):
        y = x
        for weight in weights:
            y = np.tanh(y @ weight)
        return (y * y).mean()

    step = module.jit(lambda weights: [w - 0.1 * g for w, g in zip(weights, module.grad(loss)(weights))])
    while True:
        for _ in range(500):
            weights = step(weights)
        yield 500, [numpy.asarray(weight) for weight in weights]


def main():
    programs = {"resnet": resnet, "llama": llama, "generate": generate, "graph": graph, "jax": jax}
    done = 0
    for steps, arrays in programs[sys.argv[1]]():
        done += steps
        print(done, digest(arrays), flush=True)
        if time.time() - BEGIN > SECONDS:
            break


main()
