#!/usr/bin/env python3
"""Peers that no syncer wants. Each attack prints what it did and what came of
it; the syncer's log and tape tell the rest (session.bats).

    attacks.py ATTACK LINK KEYS

KEYS is a folder: *.key are those of learners with the same names, who may come;
other.public is a key that is not the syncer's. Connections come from addresses
of their own in 127.0.0.0/8, so that each is a stranger.
"""
import itertools
import json
import os
import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from learner import read_key
from link import CONTROL, DATA, Gone, Link, hello

PATIENCE = 30   # longer than any syncer takes to answer, or to hang up


class Kept(Link):
    """Keeps all that it sends."""

    def __init__(self, *args, **more):
        self.kept = []
        super().__init__(*args, **more)

    def wire(self, data):
        self.kept.append(data)
        super().wire(data)


class Bent(Link):
    """Changes one bit of the byte at an offset of all that it sends."""

    def __init__(self, *args, at, **more):
        self.at, self.out = at, 0
        super().__init__(*args, **more)

    def wire(self, data):
        k = self.at - self.out
        if 0 <= k < len(data):
            data = bytearray(data)
            data[k] ^= 1 << self.at % 8
            # What now claims to be longer is never whole, nor answered.
            self.patience = 0.5
            self.socket.settimeout(self.patience)
        self.out += len(data)
        super().wire(bytes(data))


class Cut(Bent):
    """Ends before an offset of what it would send."""

    def wire(self, data):
        k = self.at - self.out
        self.out += len(data)
        if k > 0:
            Link.wire(self, data[:k])
        if 0 <= k < len(data):
            self.socket.shutdown(socket.SHUT_WR)


class Held(Link):
    """Sends frames when told to, in any order."""

    def __init__(self, *args, **more):
        self.held = []
        super().__init__(*args, **more)

    def wire(self, data):
        if self.ciphers:
            self.held.append(data)
        else:
            super().wire(data)

    def release(self, order):
        for i in order:
            super().wire(self.held[i])


class Attacker:
    def __init__(self, address, folder):
        self.address, self.folder = address, Path(folder)
        names = sorted(p.stem for p in self.folder.glob("*.key"))
        self.keys = {n: read_key(self.folder / f"{n}.key")
                     for n in names}
        self.sources = itertools.count(int.from_bytes(os.urandom(2), "big"))

    def link(self, kind=Link, name=None, **more):
        n = next(self.sources)
        more.setdefault("address", self.address)
        more.setdefault("key", self.keys[name or "eve"])
        more.setdefault("source", f"127.{1 + n // 250 // 250 % 250}."
                        f"{1 + n // 250 % 250}.{1 + n % 250}")
        return kind(**more)

    def converse(self, link, name):
        """A small conversation: joins, tells of a step, leaves."""
        link.say("hello", hello(name))
        m = link.hear(getattr(link, "patience", PATIENCE))
        if not m:
            raise Gone("no answer")
        if m.kind != "welcome":
            return f"{m.kind}: {m.fields.get('text')}"
        clock = int(m.fields["clock"]) + 1
        link.say("step", dict(clock=clock, steps=1, tokens=64))
        link.say("bye", dict(reason="leaving"))
        link.close()
        return "welcome"

    def come_of(self, do):
        """What a conversation came to, in a word or two."""
        try:
            return do()
        except (Gone, OSError) as e:
            return f"gone: {e}"

    # Attacks.

    def stranger(self):
        key = os.urandom(32)
        print(self.come_of(lambda: self.converse(
            self.link(key=key), "eve")))

    def wrong_key(self):
        other = (self.folder / "other.public").read_text().strip()
        place = self.address.partition("@")[2]
        print(self.come_of(lambda: self.link(address=f"tcp:{other}@{place}")))

    def replay(self):
        """A whole conversation once more, as it was, all at once and piece by
        piece; then its handshake alone, and its first frame to another."""
        first = self.link(Kept)
        print(self.converse(first, "eve"))
        for pieces in ([b"".join(first.kept)], first.kept, first.kept[:2]):
            again = self.link(shake=False)
            print(self.come_of(lambda: self.repeat(again, pieces)))
        other = self.link()
        print(self.come_of(lambda: self.repeat(other, first.kept[2:])))

    def repeat(self, link, pieces):
        for data in pieces:
            link.wire(data)
            time.sleep(0.05)
        link.socket.shutdown(socket.SHUT_WR)
        self.hear_out(link)

    def hear_out(self, link):
        while True:
            link.read_some()

    def order(self):
        """Frames of a session that come twice, too early or never."""
        for order in ([1, 0, 2], [0, 0], [0, 2], [0, 1, 1], [2], [0, 1, 0]):
            link = self.link(Held)
            link.say("hello", hello("eve"))
            link.say("step", dict(clock=0, steps=0, tokens=0))
            link.beat()
            print(order, self.come_of(lambda: self.repeat_held(link, order)))

    def repeat_held(self, link, order):
        link.release(order)
        self.hear_out(link)

    def many(self, kind):
        """The small conversation, damaged at every byte of it, by as many at a
        time as there are keys."""
        whole = self.link(Kept, "w0")
        self.converse(whole, "w0")
        ends = list(itertools.accumulate(len(d) for d in whole.kept))
        offsets = iter(range(ends[-1]))
        lock, met = threading.Lock(), {"welcome": 0, "gone": 0}

        def work(name):
            while True:
                with lock:
                    at = next(offsets, None)
                if at is None:
                    return
                word = self.come_of(lambda: self.converse(
                    self.link(kind, name, at=at), name))
                with lock:
                    met["welcome" if word == "welcome" else "gone"] += 1

        names = [n for n in self.keys if n.startswith("w")]
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(work, names))
        # How many bytes the conversation has up to the end of hello, of the
        # step, and of the bye.
        print(*ends[2:], *met.values())

    def flip(self):
        self.many(Bent)

    def truncate(self):
        self.many(Cut)

    def slow(self):
        """A byte a second, of a conversation that would be fine."""
        link = self.link(Held, shake=False)
        line = b"dl-tools 1 AESGCM,ChaChaPoly -\n"
        print(self.come_of(lambda: self.trickle(link, line)))

    def trickle(self, link, data):
        for byte in data:
            link.wire(bytes([byte]))
            if link.wait(1):
                link.read_some()
        return "all of it was taken"

    def deaf(self):
        """Joins, says that it trains, and never reads."""
        link = self.link(name="eve")
        link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.say("hello", hello("eve"))
        print("deaf", flush=True)
        while True:
            link.beat()
            time.sleep(0.2)

    def huge(self):
        """Headers and tensors that claim 2^63 bytes."""
        claim = struct.pack("<Q", 1 << 63)
        for channel, joined in itertools.product((CONTROL, DATA), (0, 1)):
            link = self.link()
            if joined:
                link.say("hello", hello("eve"))
                link.hear(PATIENCE)
            link.frame(channel, claim)
            print(self.come_of(lambda: self.hear_out(link)))
        link = self.link()
        link.say("hello", hello("eve"))
        link.hear(PATIENCE)
        head = json.dumps(dict(
            __metadata__={"dl." + k: v for k, v in dict(
                format="1", kind="push", fragment="0", seq="1", step="0",
                base="1.0", steps="1", tokens="1", codec="f32").items()},
            w=dict(dtype="U8", shape=[1 << 63], data_offsets=[0, 1 << 63])))
        link.frame(DATA, struct.pack("<Q", len(head)) + head.encode())
        print(self.come_of(lambda: self.hear_out(link)))


def main():
    attack, address, folder = sys.argv[1:]
    getattr(Attacker(address, folder), attack)()


if __name__ == "__main__":
    main()
