#!/usr/bin/python3
"""What PyTorch makes of train_bench's model: GPT-2's of as many layers, heads
and numbers a token, with AdamW, on so many threads: gpt.py THREADS.

Says the most memory that it held, in bytes, after its first steps; then, for
each line that it reads, how many seconds one step took, by the bench's clock.
"""
import os
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

VOCAB, LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 256, 4, 4, 128, 128, 16
FIRST = 5


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        later = torch.full((CONTEXT, CONTEXT), -torch.inf).triu(1)
        self.register_buffer("later", later)

    def attend(self, x):
        qkv = self.qkv(x).view(BATCH, CONTEXT, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        y = (scores + self.later).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.before(x))
        return x + self.down(F.gelu(self.up(self.between(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.places = nn.Parameter(torch.randn(CONTEXT, WIDTH))
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.layers(self.tokens(ids) + self.places)
        return F.linear(self.norm(x), self.tokens.weight)


def step(model, optimizer, ids):
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()


torch.set_num_threads(int(sys.argv[1]))
busy = os.getenv("BENCH_CLOCK") == "cpu"
now = time.process_time if busy else time.perf_counter
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
ids = torch.randint(VOCAB, (BATCH, CONTEXT + 1))
for _ in range(FIRST):
    step(model, optimizer, ids)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, flush=True)
for _ in sys.stdin:
    since = now()
    step(model, optimizer, ids)
    print(now() - since, flush=True)
