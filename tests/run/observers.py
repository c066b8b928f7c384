#!/usr/bin/env python3
"""Observers that do not go.

    observers.py LINK N

N of them come at once, and say how many were welcome and what the others were
told; then they stay, and do nothing.

    observers.py LINK slow

is one that reads the model slowly, and says how many bytes came in how many
seconds.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../protocol"))
from link import Link, hello


def come(address):
    link = Link(address)
    link.say("hello", hello("", role="observer", instance=0, codecs="f32"))
    return link


def crowd(address, n):
    links = [come(address) for _ in range(n)]
    answers = [link.hear(30) for link in links]
    welcome = sum(m.kind == "welcome" for m in answers)
    print(welcome, *(m.fields["text"] for m in answers if m.kind == "error"),
          flush=True)
    time.sleep(60)


def slow(address):
    link = come(address)
    begin, size = time.monotonic(), 0
    while data := link.socket.recv(1 << 17):
        size += len(data)
        time.sleep(0.08)
    print(size, int(time.monotonic() - begin))


if sys.argv[2] == "slow":
    slow(sys.argv[1])
else:
    crowd(sys.argv[1], int(sys.argv[2]))
