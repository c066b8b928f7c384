"""Records, frames and messages of dl-protocol(7), as its text says.

Tests that want a peer of their own, an honest or a hostile one, import it:

    import sys; sys.path.insert(0, ".../tests/protocol")
    from link import Link, hello, record

    link = Link("tcp:KEY@HOST:PORT", key=private)  # 32 bytes; None: plain
    link.say("hello", hello("eve"))           # a message of words
    link.say("push", {...}, tensors, channel=DATA)
    m = link.hear(timeout=5)                  # Message, or None: silence
    link.frame(7, b"any payload")             # any frame, sealed if need be
    link.wire(b"any bytes")                   # below frames and sealing

Link raises Gone when the peer has closed or broke the protocol. All bytes that
it sends go through wire(), once a frame or handshake message: a subclass that
overrides it can keep, change, drop or send them again. Link(..., shake=False)
connects and says nothing, not even a preface; Link(..., source="127.1.2.3")
comes from there.
"""
import base64
import json
import os
import select
import socket
import struct
import sys
import time
from collections import namedtuple

CONTROL, DATA = 0, 1
FRAME_MAX = 65519

Message = namedtuple("Message", "kind fields tensors channel")
Tensor = namedtuple("Tensor", "dtype shape data")


class Gone(Exception):
    """The connection is over."""


# Records: dl-fragment(5).

def record(fields, tensors=()):
    """Bytes of a record; fields without their "dl.", tensors as (name,
    Tensor), whose data lie in this order."""
    head, at = {"__metadata__": {"dl." + k: v for k, v in fields.items()}}, 0
    for name, t in tensors:
        head[name] = {"dtype": t.dtype, "shape": t.shape,
                      "data_offsets": [at, at + len(t.data)]}
        at += len(t.data)
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text] +
                    [t.data for _, t in tensors])


def take_record(buf):
    """The record at the front of a bytearray, taken off it; or None."""
    if len(buf) < 8:
        return None
    begin = 8 + struct.unpack_from("<Q", buf)[0]
    if len(buf) < begin:
        return None
    head = json.loads(bytes(buf[8:begin]))
    words = head.pop("__metadata__", {})
    end = begin + max((t["data_offsets"][1] for t in head.values()), default=0)
    if len(buf) < end:
        return None
    tensors = {}
    for name, t in head.items():
        first, last = t["data_offsets"]
        tensors[name] = Tensor(t["dtype"], t["shape"],
                               bytes(buf[begin + first:begin + last]))
    del buf[:end]
    return {k[3:]: v for k, v in words.items()}, tensors


# One connection.

def open_socket(address, source=None):
    kind, _, rest = address.partition(":")
    if kind == "unix":
        s = socket.socket(socket.AF_UNIX)
        s.connect(rest)
        return s
    host, _, port = rest.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), 30,
                                    source and (source, 0))


class Link:
    """Frames, and the messages in them."""

    def __init__(self, address, key=None, suites="AESGCM,ChaChaPoly",
                 run="-", timeout=30, shake=True, source=None):
        self.received = bytearray()      # not taken apart yet
        self.streams = [bytearray(), bytearray()]
        self.ciphers = None              # to send with, to receive with
        self.verbose = False
        address, pin = self.split_pin(address)
        self.socket = open_socket(address, source)
        self.socket.settimeout(timeout)
        if key and shake:
            self.shake(key, pin, f"dl-tools 1 {suites} {run}\n".encode())

    def shake(self, key, pin, ask):
        """The preface and the handshake of a session."""
        import session
        self.wire(ask)
        answer = self.read_line()
        prologue, suite = ask + answer, answer.split()[2].decode()
        hands = session.Handshake(suite, key, pin, prologue, os.urandom(32))
        first = hands.first()
        first += session.mac1(pin, prologue, first)
        self.wire(struct.pack("<H", len(first)) + first)
        n = struct.unpack("<H", self.read_bytes(2))[0]
        if n == 0:
            self.read_line()
        try:
            hands.second(self.read_bytes(n))
        except session.Bad as e:
            raise Gone(f"handshake: {e}") from e
        self.ciphers = hands.split()

    def read_bytes(self, n):
        while len(self.received) < n:
            self.read_some()
        out = bytes(self.received[:n])
        del self.received[:n]
        return out

    def read_line(self):
        """A line in the clear; Gone when it says what is wrong."""
        line = b""
        while not line.endswith(b"\n") and len(line) < 255:
            line += self.read_bytes(1)
        if not line.startswith(b"dl-tools 1 "):
            raise Gone(line.decode(errors="replace").strip())
        return line

    @staticmethod
    def split_pin(address):
        """tcp:KEY@HOST:PORT without the key, and the key."""
        if not address.startswith("tcp:") or "@" not in address:
            return address, None
        key, _, place = address[4:].partition("@")
        return "tcp:" + place, base64.b64decode(key)

    def wire(self, data):
        try:
            self.socket.sendall(data)
        except OSError as e:
            raise Gone(str(e)) from e

    def frame(self, channel, payload):
        body = bytes([channel]) + payload
        if self.ciphers:
            body = self.ciphers[0].seal(body)
        self.wire(struct.pack("<H", len(body)) + body)

    def beat(self):
        self.frame(CONTROL, b"")

    def say(self, kind, fields, tensors=(), channel=CONTROL):
        if self.verbose:
            show("> ", kind, fields, tensors)
        words = dict(format="1", kind=kind, **fields)
        data = record({k: str(v) for k, v in words.items()}, tensors)
        self.put(channel, data)

    def put(self, channel, data):
        for at in range(0, len(data), FRAME_MAX - 1):
            self.frame(channel, data[at:at + FRAME_MAX - 1])

    def hear(self, timeout):
        """The next message; None when none has come in time."""
        end = time.monotonic() + timeout
        while True:
            m = self.take_message()
            if m or not self.wait(end - time.monotonic()):
                return m
            self.read_some()

    def wait(self, timeout):
        return select.select([self.socket], [], [], max(timeout, 0))[0]

    def read_some(self):
        try:
            data = self.socket.recv(1 << 18)
        except OSError as e:
            raise Gone(str(e)) from e
        if not data:
            raise Gone("closed")
        self.received += data

    def take_message(self):
        """A message that is here already; or None."""
        while True:
            for channel, stream in enumerate(self.streams):
                found = take_record(stream)
                if found:
                    return self.message(channel, *found)
            if not self.take_frame():
                return None

    def message(self, channel, fields, tensors):
        kind = fields.pop("kind")
        if self.verbose:
            show("", kind, fields, tensors.items())
        return Message(kind, fields, tensors, channel)

    def take_frame(self):
        if len(self.received) < 2:
            return False
        n = struct.unpack_from("<H", self.received)[0]
        if len(self.received) < 2 + n:
            return False
        body = self.read_bytes(2 + n)[2:]
        if self.ciphers:
            body = self.unseal(body)
        if not body:
            raise Gone("the peer breaks the protocol")
        self.take(body[0], body[1:])
        return True

    def take(self, channel, payload):
        if channel >= len(self.streams):
            raise Gone("the peer breaks the protocol")
        self.streams[channel] += payload

    def unseal(self, body):
        import session
        try:
            return self.ciphers[1].open(body)
        except session.Bad as e:
            raise Gone(f"a frame: {e}") from e

    def close(self):
        """Says no more, and hears the peer out."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
            while self.wait(5):
                self.read_some()
        except (OSError, Gone):
            pass
        self.socket.close()


def show(mark, kind, fields, tensors):
    words = " ".join(f"{k}={v}" for k, v in fields.items() if k != "format")
    names = " ".join(name for name, _ in tensors)
    print(f"{mark}{kind} {words}" + (f" [{names}]" if names else ""),
          file=sys.stderr, flush=True)


# What messages are made of.

def hello(name, role="learner", instance=1, **more):
    fields = dict(role=role, run="", learner=name, instance=instance,
                  layout="", codecs="f32 int8", clock=0, steps=0, tokens=0)
    fields.update(more)
    return fields


def version(text):
    epoch, _, number = text.partition(".")
    return int(epoch), int(number)


def version_text(v):
    return f"{v[0]}.{v[1]}"


def u64s(tensor):
    return struct.unpack(f"<{len(tensor.data) // 8}Q", tensor.data)


def pairs(tensor):
    numbers = u64s(tensor)
    return list(zip(numbers[::2], numbers[1::2]))
