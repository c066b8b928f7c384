#!/usr/bin/env python3
"""Trains a small convolutional network on pictures of digits, 8 by 8 pixels:
lines of 64 numbers from 0 to 16 and the digit, with commas between, as in
scikit-learn's digits.csv.gz (README.md says where it is found).

    python3 train_digits.py --init start.safetensors
    dl-learn LINK -- python3 train_digits.py DATA
    python3 train_digits.py --steps 200 DATA            # alone
    python3 train_digits.py --eval MODEL DATA           # accuracy on the last sixth

The last layer alone, on a trunk that is frozen:

    dl-frag plan --skip '[0-7].*' TRUNK >layout.tsv
    dl-sync serve --layout layout.tsv ... TRUNK
    dl-learn LINK -- python3 train_digits.py --trunk TRUNK DATA
    python3 train_digits.py --trunk TRUNK --eval FINAL DATA
"""
import argparse
import gzip

import torch
from torch import nn
from torch.nn import functional as F

import dl_trainer


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10))


def read_digits(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt") as f:
        rows = torch.tensor([[float(x) for x in line.split(",")] for line in f])
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))
    rows = rows[order]
    pictures, digits = rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()
    split = len(rows) * 5 // 6
    return (pictures[:split], digits[:split]), (pictures[split:], digits[split:])


def accuracy(model, pictures, digits):
    model.eval()
    with torch.no_grad():
        return (model(pictures).argmax(1) == digits).float().mean().item()


def train(o, model, pictures, digits):
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=o.lr)
    dl = dl_trainer.Trainer(model, optimizer)
    draw = torch.Generator()
    for clock in dl:
        if clock == o.steps and not dl.learning:
            break
        draw.manual_seed((dl.seed * 1000003 + dl.slot) * 1000003 + clock)
        batch = torch.randint(len(digits), (o.batch,), generator=draw)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures[batch]), digits[batch])
        loss.backward()
        optimizer.step()
        dl.step(o.batch, loss)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--init", metavar="MODEL", help="write a model to begin with")
    a.add_argument("--eval", metavar="MODEL", help="how well it does")
    a.add_argument("--steps", type=int, default=200, help="when alone")
    a.add_argument("-b", "--batch", type=int, default=32)
    a.add_argument("--lr", type=float, default=0.002)
    a.add_argument("--seed", type=int, default=0, help="of --init")
    a.add_argument("--trunk", metavar="MODEL", help="of which the last layer is trained")
    a.add_argument("data", nargs="?")
    o = a.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(o.seed)
    model = network()
    if o.init:
        return dl_trainer.write(o.init, model.state_dict())
    learned, tested = read_digits(o.data)
    if o.trunk:
        model.load_state_dict(dl_trainer.read(o.trunk)[0])
        # Neither its weights change, nor what it normalizes by.
        model[:-1].requires_grad_(False).eval()
    if o.eval:
        model.load_state_dict(dl_trainer.read(o.eval)[0], strict=not o.trunk)
    else:
        train(o, model, *learned)
    print(f"{accuracy(model, *tested):.4f} of the digits are known")


main()
