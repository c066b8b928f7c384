#!/usr/bin/env python3
"""Learners that announce more than a fragment takes.

    huge.py LINK

Each begins a push of terabytes, whose header is well made, and prints
its name if the syncer does not hang up before the data.
"""
import json
import struct
import sys

from link import DATA, Gone, Link, hello
from values import read_layout

HUGE = 1 << 50
WORDS = dict(format="1", kind="push", fragment="0", seq="1", step="0",
             base="1.0", steps="1", tokens="1")


def header(words, tensors):
    """Of a record; tensors as (name, dtype, shape, bytes)."""
    head, at = {"__metadata__": {"dl." + k: v for k, v in words.items()}}, 0
    for name, dtype, shape, n in tensors:
        head[name] = dict(dtype=dtype, shape=shape, data_offsets=[at, at + n])
        at += n
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text


def shape(tensors):
    """Tensors of another shape."""
    return dict(WORDS, codec="f32"), [
        (name, "F32", dims + [1 << 30], n << 32) for name, dims, n in tensors]


def more(tensors):
    """A tensor that the fragment does not have."""
    return dict(WORDS, codec="f32"), [
        (name, "F32", dims, 4 * n) for name, dims, n in tensors] + [
        ("more", "U8", [HUGE], HUGE)]


def codes(tensors):
    """More codes than elements."""
    words = dict(WORDS, codec="int8", block="64")
    words.update({"shape." + name: "x".join(map(str, dims)) or "-"
                  for name, dims, _ in tensors})
    return words, [t for name, _, n in tensors for t in (
        (name, "U8", [HUGE], HUGE),
        (name + ".scale", "BF16", [-(-n // 64)], 2 * -(-n // 64)))]


def scales(tensors):
    """More scales than blocks."""
    words, both = codes(tensors)
    elements = {name: n for name, _, n in tensors}
    return words, [
        (name, t, [elements[name]], elements[name]) if t == "U8" else
        (name, t, [HUGE], 2 * HUGE) for name, t, _, _ in both]


def announce(address, what):
    link = Link(address)
    link.say("hello", hello(what.__name__))
    layout = link.hear(20).tensors["layout"].data.decode()
    link.put(DATA, header(*what(read_layout(layout)[0])))
    try:
        while link.wait(20):
            link.read_some()
        print(what.__name__)
    except Gone:
        pass


for each in shape, more, codes, scales:
    announce(sys.argv[1], each)
