"""A learner's way to the syncer: a port of its own, that can be cut or silent.

Connections are carried as they are, so a session goes through unseen.
"""

import socket
import threading


class Relay:
    """There may change while it runs: whoever connects next gets to the new
    port."""

    def __init__(self):
        self.there = None
        self.open = threading.Event()
        self.open.set()
        self.refuses = False
        self.lock = threading.Lock()
        self.pairs = set()
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self):
        """All connections break, and new ones do too."""
        self.refuses = True
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            self.close(pair)

    def silence(self):
        """Nothing passes, and nobody is told."""
        self.open.clear()

    def mend(self):
        self.refuses = False
        self.open.set()

    def accept(self):
        while True:
            near, _ = self.door.accept()
            threading.Thread(target=self.begin, args=(near,),
                             daemon=True).start()

    def begin(self, near):
        self.open.wait()
        try:
            if self.refuses:
                raise ConnectionRefusedError
            far = socket.create_connection(("127.0.0.1", self.there))
        except (OSError, TypeError):
            near.close()
            return
        pair = (near, far)
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.pairs.add(pair)
        for source, sink in (pair, pair[::-1]):
            threading.Thread(target=self.carry, args=(pair, source, sink),
                             daemon=True).start()

    def carry(self, pair, source, sink):
        try:
            while True:
                data = source.recv(1 << 16)
                self.open.wait()
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            pass
        self.close(pair)

    def close(self, pair):
        """Wakes both carriers, and the second of them frees the sockets."""
        with self.lock:
            known = pair in self.pairs
            self.pairs.discard(pair)
        for end in pair:
            try:
                if known:
                    end.shutdown(socket.SHUT_RDWR)
                else:
                    end.close()
            except OSError:
                pass
