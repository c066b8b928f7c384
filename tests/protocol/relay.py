#!/usr/bin/env python3
"""Stands between a learner and its syncer and damages what passes.

    relay.py HOST:PORT OFFSET...

listens at a port of this machine, which it prints, and carries connections to
HOST:PORT. In the first one it changes a bit of the byte at the first OFFSET of
what the syncer says, in the second at the second, and so on; later ones are
left alone. A minus before the offset means what the learner says.
"""
import select
import socket
import sys
import threading


def carry(learner, syncer, offset):
    seen = {learner: 0, syncer: 0}
    damaged = learner if offset and offset < 0 else syncer
    at = abs(offset) if offset is not None else -1
    while True:
        for s in select.select([learner, syncer], [], [])[0]:
            data = bytearray(s.recv(1 << 16))
            if s is damaged and 0 <= at - seen[s] < len(data):
                data[at - seen[s]] ^= 1 << at % 8
            seen[s] += len(data)
            (syncer if s is learner else learner).sendall(data)
            if not data:
                return


def serve(learner, syncer, offset):
    try:
        carry(learner, syncer, offset)
    except OSError:
        pass
    learner.close()
    syncer.close()


def main():
    host, _, port = sys.argv[1].rpartition(":")
    offsets = [int(word) for word in sys.argv[2:]]
    door = socket.create_server(("127.0.0.1", 0))
    print(door.getsockname()[1], flush=True)
    while True:
        learner, _ = door.accept()
        syncer = socket.create_connection((host, int(port)))
        offset = offsets.pop(0) if offsets else None
        threading.Thread(target=serve, args=(learner, syncer, offset),
                         daemon=True).start()


if __name__ == "__main__":
    main()
