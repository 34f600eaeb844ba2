"""A program as its documentation writes it. Prints when each of its iterations has ended, or each answer: seconds of
CLOCK_MONOTONIC.

    program.py resnet50 | vit_s | llama | compile | jax | generate | service | bursts | rest

`service` asks `generate` at random, at LOAD (0.3); `bursts` multiplies for 100 ms and rests for 100 ms; `rest` does
nothing.
"""

import collections
import os
import random
import sys
import time

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
        while self.waiting and self.waiting[0].query():
            ended = self.waiting.popleft()
            print(f"{self.began + self.base.elapsed_time(ended) / 1e3:.6f}", flush=True)


def train(torch, model, loss_of):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    ends = Ends(torch)
    while True:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of()
        loss.backward()
        optimizer.step()
        ends.iteration()


def train_images(name, size, compiled=False):
    import timm
    import torch

    model = timm.create_model(name, num_classes=1000).cuda()
    images = torch.randn(size, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (size,), device="cuda")
    forward = torch.compile(model, mode="reduce-overhead") if compiled else model
    train(torch, model, lambda: torch.nn.functional.cross_entropy(forward(images), labels))


def llama_of(torch):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
                         num_key_value_heads=16, vocab_size=32000)
    return LlamaForCausalLM(config).cuda()


def train_llama():
    import torch

    model = llama_of(torch)
    tokens = torch.randint(0, 32000, (4, 1024), device="cuda")
    train(torch, model, lambda: model(input_ids=tokens, labels=tokens).loss)


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
        print(f"{time.monotonic():.6f}", flush=True)
        before = layers


def answers(load):
    import torch

    model = llama_of(torch).to(torch.bfloat16).eval()
    tokens = torch.randint(0, 32000, (1, 64), device="cuda")

    def answer():
        model.generate(tokens, max_new_tokens=24, do_sample=False, pad_token_id=0)
        torch.cuda.synchronize()

    for _ in range(3):
        began = time.monotonic()
        answer()
    alone = time.monotonic() - began
    due = time.monotonic()
    while True:
        if load:
            due += random.expovariate(load / alone)
            time.sleep(max(0, due - time.monotonic()))
        began = time.monotonic()
        answer()
        print(f"{time.monotonic():.6f} {time.monotonic() - began:.6f}", flush=True)


def multiply_in_bursts():
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    while True:
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            began = time.monotonic()
            a @ a
            torch.cuda.synchronize()
            print(f"{time.monotonic():.6f} {time.monotonic() - began:.6f}", flush=True)
        time.sleep(0.1)


def rest():
    import torch

    torch.ones(1, device="cuda")
    torch.cuda.synchronize()
    print("0", flush=True)
    while True:
        time.sleep(1000)


PROGRAMS = {
    "resnet50": lambda: train_images("resnet50", 64),
    "vit_s": lambda: train_images("vit_small_patch16_224", 64),
    "llama": train_llama,
    "compile": lambda: train_images("vit_small_patch16_224", 64, compiled=True),
    "jax": train_jax,
    "generate": lambda: answers(None),
    "service": lambda: answers(float(os.environ.get("LOAD", "0.3"))),
    "bursts": multiply_in_bursts,
    "rest": rest,
}

PROGRAMS[sys.argv[1]]()
