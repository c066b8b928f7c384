#!/usr/bin/env python3
"""A syncer that nobody can rely on: what it says comes damaged.

    syncer.py KEY LEARNER_KEY SCRATCH

runs learners, each against a syncer of its own with the key in the file KEY,
whose short sessions (preface, handshake, welcome, the values of the one
fragment) have one bit changed: of each of their bytes, a connection a byte. Then
each learner has a whole session, and is told that the run is over.

Prints where preface, handshake, welcome and values end, and how many learners
came to hold the values; and a line for each damaged session after which the
learner said more than its hello.
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import session
from learner import read_key
from link import DATA, Gone, Link, Tensor

LEARNERS = 40       # at a time: mostly they pause before they come again
TRAINER = """echo ready 1 >&4
while read -r order rest <&3; do
    case $order in
    go) sleep 0.1; echo step 64 5.5 ;;
    stop) exit ;;
    *) echo ok ;;
    esac >&4
done"""
LAYOUT = (b"# format\t1\n"
          b"# name\tdtype\tshape\telements\tfragment\trule\n"
          b"w\tF32\t8\t8\t0\trda\n")
WELCOME = dict(run="demo", epoch=1, clock=0, fragments=1, h=6, tau=1,
               apply="carry", wait=0, learner="ann")
LISTS = [("layout", Tensor("U8", [len(LAYOUT)], LAYOUT)),
         ("versions", Tensor("U64", [1, 2], struct.pack("<2Q", 1, 1))),
         ("origins", Tensor("U64", [1, 2], struct.pack("<2Q", 1, 1))),
         ("taken", Tensor("U64", [1], bytes(8)))]
VALUES = [("w", Tensor("F32", [8], bytes(32)))]


class Said(Link):
    """The syncer's end of a connection. A bit of the byte at an offset of what
    it says is changed, and that piece is the last; None: all is whole."""

    def __init__(self, s, at):
        self.received, self.streams = bytearray(), [bytearray(), bytearray()]
        self.ciphers, self.verbose = None, False
        self.at, self.out, self.socket = at, 0, s

    def wire(self, data):
        k = -1 if self.at is None else self.at - self.out
        self.out += len(data)
        if 0 <= k < len(data):
            data = bytearray(data)
            data[k] ^= 1 << self.at % 8
        if self.at is None or self.out - len(data) <= self.at:
            super().wire(bytes(data))
        if 0 <= k < len(data):
            self.socket.shutdown(socket.SHUT_WR)

    def answer(self, key):
        """The preface and the handshake."""
        ask = self.read_line()
        said = b"dl-tools 1 ChaChaPoly\n"
        self.wire(said)
        n = struct.unpack("<H", self.read_bytes(2))[0]
        hands = session.Answer("ChaChaPoly", key, ask + said, os.urandom(32))
        hands.first(self.read_bytes(n)[:96])
        second = hands.second()
        self.wire(struct.pack("<H", len(second)) + second)
        self.ciphers = hands.split()


class Learner:
    processes = []

    def __init__(self, key, learner_key, scratch):
        self.key = read_key(key)
        self.door = socket.create_server(("127.0.0.1", 0))
        self.door.settimeout(60)
        pin = b64encode(session.public_key(self.key)).decode()
        link = f"tcp:{pin}@127.0.0.1:{self.door.getsockname()[1]}"
        self.process = subprocess.Popen(
            ["dl-learn", "-q", "-n", "ann", "--key", learner_key,
             "--join", "syncer", "--scratch",
             scratch, link, "--", "sh", "-c", TRAINER])
        self.processes.append(self.process)

    def meet(self, at=None, values=True):
        """One session: the kinds of what the learner said, and the ends of
        the syncer's own pieces."""
        s = self.door.accept()[0]
        s.settimeout(60)
        link, heard, ends = Said(s, at), [], []
        try:
            link.answer(self.key)
            ends.append(link.out)
            heard.append(self.next(link))
            link.say("welcome", WELCOME, LISTS)
            ends.append(link.out)
            if values:
                link.say("global", dict(fragment=0, version="1.1", step=0,
                                        final=0, codec="f32"), VALUES, DATA)
                ends.append(link.out)
            while at is not None or values:
                heard.append(self.next(link))
                if at is None and heard[-1] == "applied":
                    link.say("bye", dict(reason="done"))
                    break
        except (Gone, OSError, session.Bad):
            pass
        s.close()
        return heard, ends

    @staticmethod
    def next(link):
        m = link.hear(60)
        if not m:
            raise Gone("says nothing")
        return m.kind


def leave(*_):
    for process in Learner.processes:
        process.kill()
    os._exit(1)


def main():
    signal.signal(signal.SIGTERM, leave)
    whole = Learner(*sys.argv[1:])
    heard, ends = whole.meet()
    offsets, lock = iter(range(ends[-1])), threading.Lock()
    held = [heard.count("applied")]

    def work(_):
        learner = Learner(*sys.argv[1:])
        learner.meet(values=False)
        for at in iter(lambda: next(offsets, None), None):
            heard, _ = learner.meet(at)
            if heard not in ([], ["hello"]):
                print(at, *heard)
            # Pauses grow until there is a welcome.
            if at < ends[1]:
                learner.meet(values=False)
        heard, _ = learner.meet()
        with lock:
            held[0] += heard.count("applied")
        learner.process.wait(60)

    try:
        with ThreadPoolExecutor(LEARNERS) as pool:
            list(pool.map(work, range(LEARNERS)))
        whole.process.wait(60)
    except (OSError, subprocess.TimeoutExpired) as e:
        print(e)
        leave()
    print(*ends, held[0])


if __name__ == "__main__":
    main()
