#!/usr/bin/env python3
"""Many connections of people with a key, whom a syncer shall outlast.

    crowd.py CROWD LINK [KEY [NAME]]

Each crowd prints what came of it, then holds on to what it has until it is
killed. Connections come from addresses of their own in 127.0.0.0/8.
"""
import itertools
import os
import sys
import time
from collections import Counter

from learner import read_key
from link import Gone, Link, hello

sources = itertools.count(int.from_bytes(os.urandom(2), "big"))


def come(address, key, name, role="learner"):
    """Says hello, and does not read what is answered."""
    n = next(sources)
    link = Link(address, key=key, source=f"127.{1 + n // 250 // 250 % 250}."
                f"{1 + n // 250 % 250}.{1 + n % 250}")
    link.say("hello", hello(name, role, int.from_bytes(os.urandom(8), "big")))
    return link


def hold(links):
    print("holds", len(links), flush=True)
    while True:
        time.sleep(60)


def unknown(address):
    """Keys that nobody has heard of."""
    hold([come(address, os.urandom(32), "eve") for _ in range(200)])


def observers(address, key, name):
    hold([come(address, read_key(key), name, "observer")
          for _ in range(200)])


def again(address, key, name):
    """A learner that leaves as soon as it is welcome, and comes again."""
    words = Counter()
    for _ in range(150):
        link = come(address, read_key(key), name)
        try:
            words[link.hear(30).kind] += 1
        except Gone:
            words["gone"] += 1
        link.socket.close()
    print(*sorted(words), flush=True)
    hold([])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
