"""Takes a checkpoint by the protocol's page, or asks for it wrongly."""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "protocol"))
from link import Gone, Link, hello  # noqa: E402

PIECE, MOST = 4 << 20, 8
SMALL = 20000  # so that there are several


def begin(address):
    link = Link(address)
    link.say("hello", hello("", role="checkpoint"))
    while True:
        m = link.hear(timeout=20)
        if m.kind == "state":
            return link, int(m.fields["bytes"])
        assert m.kind == "welcome", m


def take(address, path):
    link, size = begin(address)
    wanted = [(at, min(SMALL, size - at)) for at in range(0, size, SMALL)]
    asked = 0
    with open(path, "wb") as out:
        for n, (offset, count) in enumerate(wanted):
            while asked < min(n + MOST, len(wanted)):
                link.say("fetch", dict(offset=wanted[asked][0],
                                       bytes=wanted[asked][1]))
                asked += 1
            m = link.hear(timeout=20)
            assert m.kind == "part" and int(m.fields["offset"]) == offset, m
            data = m.tensors["data"].data
            assert len(data) == count
            digest = hashlib.blake2b(data, digest_size=32).hexdigest()
            assert digest == m.fields["hash"]
            out.write(data)
    link.say("bye", dict(reason="leaving"))
    link.close()


def is_ended(address, fetches):
    link, size = begin(address)
    try:
        for offset, count in fetches(size):
            link.say("fetch", dict(offset=offset, bytes=count))
        while link.hear(timeout=20):
            pass
    except Gone:
        return True
    return False


def main():
    address, what = sys.argv[1:3]
    if what == "take":
        take(address, sys.argv[3])
        return
    for fetches in (lambda n: [(n, 1)], lambda n: [(0, n + 1)],
                    lambda n: [(0, PIECE + 1)], lambda n: [(2**64 - 1, 1)],
                    lambda n: [(0, n)] * 1000):
        assert is_ended(address, fetches)


main()
