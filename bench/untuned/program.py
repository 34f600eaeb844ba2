"""A program as its documentation writes it. Prints when each of its iterations has ended, or each answer and how long
it took: seconds of CLOCK_MONOTONIC.

    program.py resnet50 | vit_s | llama | compile | jax | generate | classify | decode | service | bursts | rest
    program.py NAME --at-rest [--pattern FILE]

`classify` is ResNet-152 on 8 pictures; `decode` is TOKENS steps of bench/decode.py; `service` asks `generate` at
random, at LOAD (0.3), for TOKENS (24); `bursts` multiplies for 100 ms and rests for 100 ms; `rest` does nothing. With
--at-rest, a program takes turns (support/conversation.py). FILE says when an answer is asked for (support/pattern.py).
`answers` and `iterations` stand in where the GPU is simulated: they sleep.
"""

import collections
import ctypes
import os
import random
import sys
import time

sys.dont_write_bytecode = True  # in a working tree
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
WARM = 10  # iterations before a program is ready for turns

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


class Ends:
    """Ends of iterations, by events of the GPU that nobody waits for."""

    def __init__(self, torch):
        self.torch = torch
        self.waiting = collections.deque()
        self.base = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        self.base.record()
        self.base.synchronize()
        self.began = time.monotonic()

    def iteration(self):
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        self.waiting.append(event)
        ended = []
        while self.waiting and self.waiting[0].query():
            ended.append((self.began + self.base.elapsed_time(self.waiting.popleft()) / 1e3,))
        return ended


def train(torch, model, loss_of):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    ends = Ends(torch)
    while True:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of()
        loss.backward()
        optimizer.step()
        yield ends.iteration()


def train_images(name, size, compiled=False):
    import timm
    import torch

    model = timm.create_model(name, num_classes=1000).cuda()
    images = torch.randn(size, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (size,), device="cuda")
    forward = torch.compile(model, mode="reduce-overhead") if compiled else model
    return train(torch, model, lambda: torch.nn.functional.cross_entropy(forward(images), labels))


def llama_of(torch):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
                         num_key_value_heads=16, vocab_size=32000)
    return LlamaForCausalLM(config).cuda()


def train_llama():
    import torch

    model = llama_of(torch)
    tokens = torch.randint(0, 32000, (4, 1024), device="cuda")
    return train(torch, model, lambda: model(input_ids=tokens, labels=tokens).loss)


def train_jax():
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.PRNGKey(0), 9)
    layers = [jax.random.normal(key, (2048, 2048), jnp.bfloat16) * 0.02 for key in keys]
    batch = jax.random.normal(keys[0], (4096, 2048), jnp.bfloat16)

    def loss_of(layers):
        value = batch
        for layer in layers:
            value = jax.nn.gelu(value @ layer)
        return jnp.mean(value.astype(jnp.float32) ** 2)

    @jax.jit
    def step(layers):
        gradients = jax.grad(loss_of)(layers)
        return [layer - 1e-3 * gradient for layer, gradient in zip(layers, gradients)]

    before = layers
    while True:
        layers = step(layers)
        before[0].block_until_ready()
        yield [(time.monotonic(),)]
        before = layers


def tokens_of_an_answer():
    return int(os.environ.get("TOKENS", "24"))


def generate(torch):
    model = llama_of(torch).to(torch.bfloat16).eval()
    tokens = torch.randint(0, 32000, (1, 64), device="cuda")
    count = tokens_of_an_answer()
    return lambda: model.generate(tokens, max_new_tokens=count, do_sample=False, pad_token_id=0)


def classify(torch):
    import timm

    model = timm.create_model("resnet152", num_classes=1000).to("cuda", torch.bfloat16).eval()
    images = torch.randn(8, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
    return lambda: model(images)


def decode(torch):
    from decode import Decoding

    torch.manual_seed(1)
    with torch.no_grad():
        decoding = Decoding()
    return lambda: [decoding.decode() for _ in range(tokens_of_an_answer())]


def answers(make, load):
    import torch

    answer = make(torch)

    def wait_for_answer():
        with torch.no_grad():
            answer()
        torch.cuda.synchronize()

    for _ in range(3):
        began = time.monotonic()
        wait_for_answer()
    alone = time.monotonic() - began
    due = time.monotonic()
    while True:
        if load:
            due += random.expovariate(load / alone)
            time.sleep(max(0, due - time.monotonic()))
        began = time.monotonic()
        wait_for_answer()
        yield [(time.monotonic(), time.monotonic() - began)]


def multiply_in_bursts():
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    while True:
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            began = time.monotonic()
            a @ a
            torch.cuda.synchronize()
            yield [(time.monotonic(), time.monotonic() - began)]
        time.sleep(0.1)


def rest():
    import torch

    torch.ones(1, device="cuda")
    torch.cuda.synchronize()
    yield [(0,)]
    while True:
        time.sleep(1000)


def stand_in(is_answer):
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context):
        sys.exit("program.py: no GPU")
    while True:
        began = time.monotonic()
        time.sleep(0.002)
        ended = time.monotonic()
        yield [(ended, ended - began)[: 2 if is_answer else 1]]


PROGRAMS = {
    "resnet50": lambda: train_images("resnet50", 64),
    "vit_s": lambda: train_images("vit_small_patch16_224", 64),
    "llama": train_llama,
    "compile": lambda: train_images("vit_small_patch16_224", 64, compiled=True),
    "jax": train_jax,
    "generate": lambda: answers(generate, None),
    "classify": lambda: answers(classify, None),
    "decode": lambda: answers(decode, None),
    "service": lambda: answers(generate, float(os.environ.get("LOAD", "0.3"))),
    "bursts": multiply_in_bursts,
    "rest": rest,
    "answers": lambda: stand_in(True),
    "iterations": lambda: stand_in(False),
}


class Turns:
    """A program as a work of support/conversation.py. A sample is the µs of an answer, or the ends of iterations."""

    def __init__(self, iterations):
        self.iterations = iterations
        for _ in range(WARM):
            next(iterations)
        self.rest()

    def step(self):
        ended = next(self.iterations)
        if ended and len(ended[0]) > 1:
            return ended[0][1] * 1e6
        return "\n".join(f"{end:.6f}" for end, in ended) or None

    def rest(self):
        if "torch" in sys.modules:
            sys.modules["torch"].cuda.synchronize()


def take_turns(name):
    from support import conversation  # before torch, see there
    from support.pattern import Pattern

    parser = conversation.parser(__doc__)
    parser.add_argument("name")
    parser.add_argument("--pattern")
    chosen = parser.parse_args()
    work = Turns(PROGRAMS[name]())
    conversation.converse(Pattern(work, chosen.pattern) if chosen.pattern else work, 0, chosen, own_stream=False)


def main():
    name = sys.argv[1]
    if "--at-rest" in sys.argv:
        take_turns(name)
    else:
        for ended in PROGRAMS[name]():
            for times in ended:
                print(*(f"{seconds:.6f}" for seconds in times), flush=True)


main()
