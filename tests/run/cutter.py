"""cutter.py HERE THERE: carries connections from one unix socket to another.

Five times a second it cuts one of them, but never the first, and says so.
"""

import selectors
import socket
import sys
import time

PERIOD = 0.2


def open_pair(listener, there):
    near, _ = listener.accept()
    far = socket.socket(socket.AF_UNIX)
    far.connect(there)
    return near, far


def carry(source, sink):
    data = source.recv(65536)
    if data:
        sink.sendall(data)
    return bool(data)


def main(here, there):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(here)
    listener.listen()
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    pairs = []
    cut_at = time.monotonic() + PERIOD

    def close(pair):
        pairs.remove(pair)
        for end in pair:
            ready.unregister(end)
            end.close()

    while True:
        for key, _ in ready.select(PERIOD):
            if key.fileobj is listener:
                pair = open_pair(listener, there)
                pairs.append(pair)
                for i in (0, 1):
                    ready.register(
                        pair[i], selectors.EVENT_READ, (pair, pair[1 - i]))
            elif key.data[0] in pairs:
                try:
                    alive = carry(key.fileobj, key.data[1])
                except OSError:
                    alive = False
                if not alive:
                    close(key.data[0])
        if time.monotonic() >= cut_at:
            cut_at = time.monotonic() + PERIOD
            if len(pairs) > 1:
                close(pairs[1])
                print("cut", flush=True)


main(sys.argv[1], sys.argv[2])
