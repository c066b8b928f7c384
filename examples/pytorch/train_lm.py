#!/usr/bin/env python3
"""Trains a small language model of the Llama shape on text, a byte a token, as
dl-train(1) does: the two load each other's files and take part in one run.

    dl-learn LINK -- python3 train_lm.py MODEL TEXT
    python3 train_lm.py --steps 100 MODEL TEXT      # alone
    python3 train_lm.py --eval MODEL TEXT           # the held-out loss
    dl-learn LINK -- torchrun --nproc_per_node 2 train_lm.py MODEL TEXT

MODEL is a folder of config.json and model.safetensors (`dl-train init`).

Adapters beside a model that is frozen (LoRA), and a run of these alone:

    python3 train_lm.py --lora start.safetensors --rank 4 MODEL
    dl-sync serve ... start.safetensors
    dl-learn LINK -- python3 train_lm.py --lora start.safetensors MODEL TEXT
    python3 train_lm.py --lora FINAL --eval MODEL TEXT
"""
import argparse
import json
import math
import os

import torch
from torch import distributed, nn
from torch.nn import functional as F

import dl_trainer


class Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x * (x.square().mean(-1, True) + self.eps).rsqrt() * self.weight


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv = c["num_attention_heads"], c["num_key_value_heads"]
        width, part = c["hidden_size"], c["hidden_size"] // self.heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, self.kv * part, bias=False)
        self.v_proj = nn.Linear(width, self.kv * part, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        b, t, width = x.shape

        def split(y, heads):
            return y.view(b, t, heads, -1).transpose(1, 2)

        q = turn(split(self.q_proj(x), self.heads), cos[:t], sin[:t])
        k = turn(split(self.k_proj(x), self.kv), cos[:t], sin[:t])
        v = split(self.v_proj(x), self.kv)
        k, v = (y.repeat_interleave(self.heads // self.kv, 1) for y in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        y = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        return self.o_proj(y.transpose(1, 2).reshape(b, t, width))


class Gated(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["hidden_size"], c["intermediate_size"]
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.mlp = Gated(c)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["hidden_size"]
        half = width // c["num_attention_heads"] // 2
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c["vocab_size"], width)
        self.model.layers = nn.ModuleList(
            Layer(c) for _ in range(c["num_hidden_layers"]))
        self.model.norm = Norm(width, c["rms_norm_eps"])
        self.lm_head = nn.Linear(width, c["vocab_size"], bias=False)
        if c["tie_word_embeddings"]:
            self.lm_head.weight = self.model.embed_tokens.weight
        rates = c["rope_theta"] ** -(torch.arange(half).double() / half)
        angles = torch.outer(torch.arange(c["max_position_embeddings"]).double(), rates)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, ids):
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, self.cos, self.sin)
        return self.lm_head(self.model.norm(x))


class Adapted(nn.Linear):
    """A frozen matrix and, beside it, the product of two thin ones."""

    def __init__(self, frozen, rank):
        super().__init__(frozen.in_features, frozen.out_features, bias=False)
        self.weight = frozen.weight
        self.down = nn.Parameter(
            torch.randn(rank, self.in_features) / math.sqrt(self.in_features))
        self.up = nn.Parameter(torch.zeros(self.out_features, rank))

    def forward(self, x):
        return super().forward(x) + F.linear(F.linear(x, self.down), self.up)


def adapt(model, o):
    """Freezes the model but for adapters, which are new or those of a file."""
    adapters = {} if o.rank else dl_trainer.read(o.lora)[0]
    rank = o.rank or next(
        len(t) for name, t in adapters.items() if name.endswith(".down"))
    model.requires_grad_(False)
    for layer in model.model.layers:
        a = layer.self_attn
        a.q_proj, a.v_proj = Adapted(a.q_proj, rank), Adapted(a.v_proj, rank)
    model.load_state_dict(adapters, strict=False)


def loss_of(model, ids):
    """Nats a token, in F32, of windows with one token more than the context."""
    logits = model(ids[:, :-1]).float()
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def held_out(model, ids, context):
    """Each token is predicted once, from its window, as dl-train eval does."""
    total, left, at = 0.0, len(ids) - 1, 0
    while left > 0:
        n = min(context, left)
        rows = min(16, left // n)
        windows = torch.stack(
            [ids[at + i * n : at + i * n + n + 1] for i in range(rows)])
        total += loss_of(model, windows).item() * rows * n
        at, left = at + rows * n, left - rows * n
    return total / at


def rate(o, clock, since):
    """Rises from where the optimizer began anew, and falls by a cosine to a
    tenth at the last step, when that is known."""
    at = max(0, clock - o.warmup) / (o.steps - o.warmup) if o.steps > o.warmup else 0
    fall = 0.55 + 0.45 * math.cos(math.pi * min(1, at))
    return o.lr * fall * min(1, (clock - since + 1) / max(1, o.warmup))


def train(o, model, ids, context, device):
    trained = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in trained if p.dim() > 1]
    rest = [p for p in trained if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1},
         {"params": rest, "weight_decay": 0}],
        lr=o.lr, betas=(0.9, 0.95))
    dl = dl_trainer.Trainer(model, optimizer)
    rank, ranks = 0, 1
    if distributed.is_initialized():
        rank, ranks = distributed.get_rank(), distributed.get_world_size()
        model = nn.parallel.DistributedDataParallel(model)
    draw = torch.Generator()
    for clock in dl:
        if clock == o.steps and not dl.learning:
            break
        draw.manual_seed((dl.seed * 1000003 + dl.slot) * 1000003 + clock)
        starts = torch.randint(len(ids) - context, (o.batch,), generator=draw)
        mine = starts.tolist()[rank::ranks]
        batch = torch.stack([ids[s : s + context + 1] for s in mine]).to(device)
        for group in optimizer.param_groups:
            group["lr"] = rate(o, clock, dl.since)
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        dl.step(len(mine) * context, loss)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--eval", action="store_true")
    a.add_argument("--steps", type=int, default=0,
                   help="the end of the rate's fall, and of training alone")
    a.add_argument("-b", "--batch", type=int, default=12)
    a.add_argument("--lr", type=float, default=0.003)
    a.add_argument("--warmup", type=int, default=100)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--bf16", action="store_true", help="hold the model so")
    a.add_argument("--lora", metavar="FILE", help="train adapters alone")
    a.add_argument("--rank", type=int, help="write FILE, of that rank")
    a.add_argument("model")
    a.add_argument("text", nargs="*")
    o = a.parse_args()
    torch.set_num_threads(o.threads)
    device = "cpu"
    if torch.cuda.is_available():
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(device)
    if "LOCAL_RANK" in os.environ:  # torchrun
        distributed.init_process_group("gloo" if device == "cpu" else "nccl")
    folder = o.model if os.path.isdir(o.model) else os.path.dirname(o.model)
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    file = os.path.join(o.model, "model.safetensors") if folder == o.model else o.model
    model = Llama(config)
    values, _ = dl_trainer.read(file)
    model.load_state_dict(values, strict=not config["tie_word_embeddings"])
    if o.lora:
        adapt(model, o)
    if o.rank:
        return dl_trainer.write(o.lora, {
            name: p for name, p in model.named_parameters() if p.requires_grad})
    model.to(device, torch.bfloat16 if o.bf16 else torch.float32)
    text = bytearray(b"".join(open(path, "rb").read() for path in o.text))
    ids = torch.frombuffer(text, dtype=torch.uint8).long()
    split = int(len(ids) * 0.9)
    context = config["max_position_embeddings"]
    if o.eval:
        with torch.no_grad():
            print(f"{held_out(model, ids[split:].to(device), context):.6f}")
    else:
        train(o, model, ids[:split], context, device)


main()
