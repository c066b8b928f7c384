#!/usr/bin/env python3
"""A joiner written from dl-protocol(7): it asks the syncer whose state it may
have and fetches one, or misbehaves on the way.

    joiner.py -n NAME --key FILE [--from LINK] [--clock C] [--piece BYTES]
              [--pause SECONDS] [--lie HOW] SYNCER OUT

prints what it is told: the donors named, whose state it takes and its clock,
and "whole" when all of it is in OUT. --from takes that donor, without asking
the syncer. A lie: "mute" asks and never reads; "beyond" asks for what is not
there; "many" asks for too much at once; "idle" asks for nothing.
"""
import argparse
import base64
import hashlib
import sys
import time

from link import Gone, Link, hello, pairs, version_text


def say(*words):
    print(*words, flush=True)


def read_key(path):
    with open(path, encoding="ascii") as f:
        return base64.b64decode(f.read())


def hear(link):
    """The next message; a donor that makes its state beats meanwhile."""
    for _ in range(60):
        m = link.hear(timeout=1)
        if m:
            return m
        link.beat()
    raise Gone("silent")


def visit(address, o, **fields):
    link = Link(address, key=o.key)
    link.say("hello", hello(o.name, role="joiner", **fields))
    m = hear(link)
    if m.kind == "error":
        raise Gone(f"error {m.fields['code']}: {m.fields['text']}")
    return link, m


def ask_syncer(o):
    """The run's clock and layout, and donors as (name, clock, link)."""
    link, welcome = visit(o.syncer, o)
    peers, bye = hear(link), hear(link)
    if (welcome.kind, peers.kind, bye.kind) != ("welcome", "peers", "bye"):
        raise Gone("not what a joiner is told")
    link.close()
    donors = [line.split(" ") for line in peers.fields["text"].splitlines()]
    say("donors", *(name for name, _, _ in donors))
    return int(welcome.fields["clock"]), donors


def fetch(link, o, offset, n):
    link.say("fetch", dict(offset=offset, bytes=n))
    return offset, n


def lie(link, o, size):
    if o.lie == "beyond":
        fetch(link, o, size - 10, 11)
    for i in range(dict(many=9, mute=8).get(o.lie, 0)):
        fetch(link, o, 0, min(size, 4 << 20))
    while True:
        link.beat()
        time.sleep(0.2)
        if o.lie == "mute":
            continue
        while True:
            m = link.hear(timeout=0)
            if not m:
                break


def take(link, o, size, out):
    """Four pieces are on their way at any time."""
    asked, end = [], 0
    for at in range(0, size, o.piece):
        while end < size and len(asked) < 4:
            n = min(o.piece, size - end)
            asked.append(fetch(link, o, end, n))
            end += n
        m = hear(link)
        offset, n = asked.pop(0)
        data = m.tensors["data"].data
        if (m.kind, int(m.fields["offset"]), len(data)) != ("part", offset, n):
            raise Gone("not the part that was asked for")
        if hashlib.blake2b(data, digest_size=32).hexdigest() != m.fields["hash"]:
            raise Gone("a part that is not what its hash names")
        out.seek(offset)
        out.write(data)
        link.beat()
        time.sleep(o.pause)
    link.say("bye", dict(reason="leaving"))
    link.close()


def join(o, clock, name, address):
    link, state = visit(address, o, clock=clock)
    if state.kind != "state" or int(state.fields["clock"]) < clock:
        raise Gone("not a state of that clock")
    size = int(state.fields["bytes"])
    say("from", name, "clock", state.fields["clock"], "bytes", size, "versions",
        *(version_text(v) for v in pairs(state.tensors["versions"])))
    if o.lie:
        lie(link, o, size)
    with open(o.out, "wb") as out:
        take(link, o, size, out)
    say("whole")


def try_all(o):
    clock, donors = o.clock, [("it", 0, o.donor)]
    if not o.donor:
        clock, donors = ask_syncer(o)
        clock = clock if o.clock is None else o.clock
    for name, _, address in donors:
        try:
            join(o, clock or 0, name, address)
            return True
        except (Gone, OSError) as e:
            say("lost", name, e)
    return False


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-n", dest="name", default="joe")
    p.add_argument("--key", type=read_key, required=True)
    p.add_argument("--from", dest="donor")
    p.add_argument("--clock", type=int)
    p.add_argument("--piece", type=int, default=1 << 14)
    p.add_argument("--pause", type=float, default=0)
    p.add_argument("--lie")
    p.add_argument("syncer")
    p.add_argument("out")
    o = p.parse_args()
    for _ in range(3):
        if try_all(o):
            return
        if o.lie or o.donor:
            break
    sys.exit(1)


if __name__ == "__main__":
    main()
