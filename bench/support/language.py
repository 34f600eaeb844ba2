"""A language model of random weights that answers several requests at a time: layers with attention in groups, whose keys and
values lie in one slot for each request, and its steps as CUDA graphs.

The shapes are those of a real one; the numbers mean nothing. Positions of tokens are not encoded, since that takes no time.
"""

import dataclasses

import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right

from support.graphs import capture


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    groups: int
    hidden: int
    vocabulary: int
    slots: int
    length: int  # of a slot, in tokens

    @property
    def head(self):
        return self.width // self.heads


def random_weights(rows, columns):
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * columns**-0.5


def normalized(state):
    return F.rms_norm(state, state.shape[-1:])


class Layer:
    def __init__(self, shape):
        self.shape = shape
        self.sizes = [shape.width] + 2 * [shape.groups * shape.head]
        self.query_key_value = random_weights(sum(self.sizes), shape.width)
        self.output = random_weights(shape.width, shape.width)
        self.gate_up = random_weights(2 * shape.hidden, shape.width)
        self.down = random_weights(shape.width, shape.hidden)
        slots = shape.slots, shape.groups, shape.length, shape.head
        self.keys, self.values = (torch.zeros(slots, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def project(self, state):
        query, key, value = F.linear(normalized(state), self.query_key_value).split(self.sizes, dim=-1)
        head = self.shape.head
        return query.view(len(state), -1, head), key.view(len(state), -1, head), value.view(len(state), -1, head)

    def finish(self, state, found):
        state = state + F.linear(found.reshape(len(state), -1), self.output)
        gate, up = F.linear(normalized(state), self.gate_up).chunk(2, dim=-1)
        return state + F.linear(F.silu(gate) * up, self.down)

    def decode(self, state, rows, positions, hidden):
        """One token of each of the first slots. `hidden` is added to what may not be seen yet."""
        query, key, value = self.project(state)
        self.keys[rows, :, positions] = key
        self.values[rows, :, positions] = value
        query = query.view(len(state), self.shape.groups, -1, self.shape.head)
        scores = query @ self.keys[: len(state)].transpose(-1, -2) * self.shape.head**-0.5 + hidden
        return self.finish(state, scores.softmax(dim=-1) @ self.values[: len(state)])

    def read(self, state, slot, begin):
        """Some tokens of a prompt, of which those before `begin` were read before."""
        query, key, value = self.project(state)
        end = begin + len(state)
        self.keys[slot, :, begin:end] = key.transpose(0, 1)
        self.values[slot, :, begin:end] = value.transpose(0, 1)
        times = self.shape.heads // self.shape.groups
        keys, values = (all[slot, :, :end].repeat_interleave(times, dim=0)[None] for all in (self.keys, self.values))
        mask = causal_lower_right(len(state), end)
        found = F.scaled_dot_product_attention(query.transpose(0, 1)[None], keys, values, attn_mask=mask)
        return self.finish(state, found[0].transpose(0, 1))


class Model:
    def __init__(self, shape):
        self.shape = shape
        self.embedding = random_weights(shape.vocabulary, shape.width)
        self.layers = [Layer(shape) for _ in range(shape.layers)]
        self.tokens = torch.zeros(shape.slots, device="cuda", dtype=torch.long)
        self.positions = torch.zeros(shape.slots, device="cuda", dtype=torch.long)
        self.places = torch.zeros(shape.slots, dtype=torch.long, pin_memory=True)
        self.logits = torch.zeros(shape.slots, shape.vocabulary, device="cuda", dtype=torch.bfloat16)
        self.graphs = {}

    def compute(self, count):
        rows = torch.arange(count, device="cuda")
        positions = self.positions[:count]
        is_hidden = torch.arange(self.shape.length, device="cuda") > positions[:, None]
        hidden = is_hidden[:, None, None].to(torch.bfloat16) * -30000
        state = F.embedding(self.tokens[:count], self.embedding)
        for layer in self.layers:
            state = layer.decode(state, rows, positions, hidden)
        self.logits[:count] = F.linear(normalized(state), self.embedding)
        self.tokens[:count] = self.logits[:count].argmax(dim=-1)

    def capture(self, count):
        self.graphs[count], _ = capture(lambda: self.compute(count))

    def decode(self, positions):
        """The next token of so many slots, each at its position."""
        count = len(positions)
        self.places[:count] = torch.tensor(positions)
        self.positions[:count].copy_(self.places[:count], non_blocking=True)
        self.graphs[count].replay()
        return self.tokens[:count].tolist()  # waits for it

    def read(self, prompt, slot, begin):
        """The logits of the last of these tokens of a prompt."""
        state = F.embedding(prompt, self.embedding)
        for layer in self.layers:
            state = layer.read(state, slot, begin)
        return F.linear(normalized(state[-1:]), self.embedding)
