#!/usr/bin/env python3
"""A learner written from dl-protocol(7) and the pages it names, and from
nothing else. It shares no code with dl-tools: what it and they agree on is
what the pages say.

    learner.py [-v] [-n NAME] [--key FILE] [--suites LIST] [--run NAME]
               [--step-time SECONDS] [--leave STEPS] LINK

takes part in the run at LINK (unix:PATH, tcp:HOST:PORT or, with a key,
tcp:KEY@HOST:PORT) until it ends, or leaves after so many steps. What it trains
is made up. -v shows every message.

Tests that want a peer of their own, an honest or a hostile one, import it:

    import sys; sys.path.insert(0, ".../tests/protocol")
    from learner import Link, Learner, record, hello

    link = Link("tcp:KEY@HOST:PORT", key=private)  # 32 bytes; None: plain
    link.say("hello", hello("eve"))           # a message of words
    link.say("push", {...}, tensors, channel=1)
    m = link.hear(timeout=5)                  # Message, or None: silence
    link.frame(7, b"any payload")             # any frame, sealed if need be
    link.wire(b"any bytes")                   # below frames and sealing

Link raises Gone when the peer has closed or broke the protocol. All bytes that
it sends go through wire(), once a frame or handshake message: a subclass that
overrides it can keep, change, drop or send them again. Link(..., shake=False)
connects and says nothing, not even a preface; Link(..., source="127.1.2.3")
comes from there.

Learner is the rest: a subclass can override push_fields() to lie, train() to
make other values, or after_step() to do what it likes at a step boundary.
"""
import argparse
import base64
import json
import os
import random
import select
import socket
import struct
import sys
import time
from array import array
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
        for channel, stream in enumerate(self.streams):
            found = take_record(stream)
            if found:
                fields, tensors = found
                kind = fields.pop("kind")
                if self.verbose:
                    show("", kind, fields, tensors.items())
                return Message(kind, fields, tensors, channel)
        return self.take_frame() and self.take_message()

    def take_frame(self):
        if len(self.received) < 2:
            return False
        n = struct.unpack_from("<H", self.received)[0]
        if len(self.received) < 2 + n:
            return False
        body = self.read_bytes(2 + n)[2:]
        if self.ciphers:
            body = self.unseal(body)
        if not body or body[0] >= len(self.streams):
            raise Gone("the peer breaks the protocol")
        self.streams[body[0]] += body[1:]
        return True

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


# Layouts: dl-layout(5). Values of a fragment are one array in packed order.

def unescape(name):
    out, rest = "", name
    while rest:
        at = rest.find("\\")
        if at < 0:
            return out + rest
        out, code = out + rest[:at], rest[at + 1]
        if code == "x":
            out += chr(int(rest[at + 2:at + 4], 16))
        else:
            out += {"\\": "\\", "t": "\t", "n": "\n"}[code]
        rest = rest[at + (4 if code == "x" else 2):]
    return out


def read_layout(text):
    """A list a fragment of (name, shape, elements), in packed order."""
    fragments = {}
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        name, _, shape, elements, p, rule = line.split("\t")
        inside = fragments.setdefault(int(p), [])
        if not rule.startswith("alias="):
            dims = [] if shape == "-" else [int(d) for d in shape.split("x")]
            inside.append((unescape(name), dims, int(elements)))
    return [sorted(fragments[p], key=lambda t: t[0].encode())
            for p in range(len(fragments))]


def floats(data):
    values = array("f", data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def packed(values):
    if sys.byteorder == "big":
        values = array("f", values)
        values.byteswap()
    return values.tobytes()


def from_f32(tensors, wanted):
    """The packed array from a record's tensors."""
    if set(tensors) != {name for name, _, _ in wanted}:
        raise Gone("not the fragment's tensors")
    for name, shape, _ in wanted:
        if tensors[name].dtype != "F32" or tensors[name].shape != shape:
            raise Gone(f"tensor {name} is another")
    return floats(b"".join(tensors[name].data for name, _, _ in wanted))


def from_int8(fields, tensors, wanted):
    """The same from tensors in int8; those without scales are F32."""
    block, values = int(fields["block"]), array("f")
    for name, shape, n in wanted:
        codes = tensors[name].data
        if name + ".scale" not in tensors:
            values += floats(codes)
            continue
        scales = tensors[name + ".scale"].data
        for i, code in enumerate(array("b", codes)):
            k = 2 * (i // block)
            values.append(code * floats(b"\0\0" + scales[k:k + 2])[0])
    return values


def to_f32(values, wanted):
    tensors, at = [], 0
    for name, shape, n in wanted:
        tensors.append((name, Tensor("F32", shape, packed(values[at:at + n]))))
        at += n
    return tensors


# The learner.

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


def hello(name, role="learner", instance=1, **more):
    fields = dict(role=role, run="", learner=name, instance=instance,
                  layout="", codecs="f32 int8", clock=0, steps=0, tokens=0)
    fields.update(more)
    return fields


Values = namedtuple("Values", "version step final values")


class Fragment:
    """What a learner keeps of a fragment, by the page's words."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.values = self.anchor = None
        self.version = (0, 0)
        self.n = self.t = self.seq = self.pushed = self.opened = 0
        self.pushed_own = 0     # own steps at the last push
        self.sent = []          # pushes that are not settled
        self.came = Values((0, 0), 0, False, None)  # the newest that came
        self.asked = False      # for values, by want
        self.waiting = None     # the newest global that is not applied
        self.done = False       # holds the final values


class Push:
    def __init__(self, fields, tensors):
        self.fields, self.tensors, self.taken = fields, tensors, ""


class Learner:
    TOKENS = 64         # a step

    def __init__(self, name, step_time=0.01, leave=None):
        self.name, self.step_time, self.leave = name, step_time, leave
        self.instance = random.getrandbits(64)
        self.clock = self.steps = self.tokens = 0
        self.fragments = None   # until welcome says the layout
        self.ending = self.drained = False
        self.told = 0           # when step was said last

    # Saying.

    def greet(self, link):
        self.link, self.welcomed = link, False
        versions = []
        if self.fragments:
            data = b"".join(struct.pack("<QQ", *f.version)
                            for f in self.fragments)
            versions = [("versions",
                         Tensor("U64", [len(self.fragments), 2], data))]
        link.say("hello", hello(self.name, instance=self.instance,
                                clock=self.clock, steps=self.steps,
                                tokens=self.tokens), versions)

    def tell_step(self):
        self.told = time.monotonic()
        self.link.say("step", dict(clock=self.clock, steps=self.steps,
                                   tokens=self.tokens, loss=5.5))

    def push_fields(self, p):
        f = self.fragments[p]
        return dict(fragment=p, seq=f.seq, step=self.clock,
                    base=version_text(f.version), steps=f.n, tokens=f.t,
                    codec="f32")

    def push(self, p):
        f = self.fragments[p]
        f.seq += 1
        delta = array("f", (v - a for v, a in zip(f.values, f.anchor)))
        f.anchor = array("f", (a + d for a, d in zip(f.anchor, delta)))
        push = Push(self.push_fields(p), to_f32(delta, f.tensors))
        f.sent.append(push)
        f.n, f.t, f.pushed, f.pushed_own = 0, 0, self.clock, self.steps
        self.link.say("push", push.fields, push.tensors, DATA)

    # Hearing.

    def on_welcome(self, m):
        if self.welcomed:
            raise Gone("welcome comes twice")
        if not self.fragments:
            layout = m.tensors["layout"].data.decode()
            self.fragments = [Fragment(t) for t in read_layout(layout)]
        self.welcomed, self.ending, self.drained = True, False, False
        self.h, self.tau = int(m.fields["h"]), int(m.fields["tau"])
        self.apply_how, self.lockstep = m.fields["apply"], m.fields["wait"] == "1"
        self.clock = int(m.fields["clock"])
        self.name = m.fields.get("learner", self.name)
        versions, origins = pairs(m.tensors["versions"]), pairs(
            m.tensors["origins"])
        for p, taken in enumerate(u64s(m.tensors["taken"])):
            f = self.fragments[p]
            f.opened, f.pushed = 0, min(f.pushed, self.clock)
            f.asked = False
            if f.version == origins[p]:
                f.version = versions[p]
            if f.came.version == origins[p]:
                f.came = f.came._replace(version=versions[p])
            for push in f.sent:
                if push.fields["seq"] > taken:
                    push.taken = ""
                    push.fields["step"] = min(push.fields["step"], self.clock)
                    self.link.say("push", push.fields, push.tensors, DATA)

    def on_taken(self, f, m):
        seq, word = int(m.fields["seq"]), m.fields["taken"]
        if word == "settled":
            f.sent = [s for s in f.sent if s.fields["seq"] > seq]
        for push in [s for s in f.sent if s.fields["seq"] == seq]:
            push.taken = word
            if word in ("late", "again", "refused"):
                f.sent.remove(push)

    def on_global(self, p, m):
        f, now = self.fragments[p], version(m.fields["version"])
        final = m.fields["final"] == "1"
        if final:
            f.sent = []
        if "base" not in m.fields:
            values = from_f32(m.tensors, f.tensors)
        elif now <= f.came.version:
            return
        elif f.came.version != version(m.fields["base"]):
            self.want(p)
            return
        else:
            values = array("f", map(sum, zip(f.came.values, from_int8(
                m.fields, m.tensors, f.tensors))))
        new = Values(now, int(m.fields["step"]), final, values)
        if now >= f.came.version:
            f.came, f.asked = new, False
        if now < f.version or (now == f.version and not final):
            return
        if not f.waiting or now >= f.waiting.version:
            f.waiting = new

    def want(self, p):
        if not self.fragments[p].asked:
            self.fragments[p].asked = True
            self.link.say("want", dict(fragment=p))

    def on_message(self, m):
        """Takes a message in; False when the syncer has said its last."""
        if m.kind == "welcome":
            self.on_welcome(m)
        elif m.kind == "error":
            raise SystemExit(refused(m))
        elif m.kind == "bye":
            if m.fields["reason"] == "restarting":
                raise Gone("the syncer restarts")
            return False
        elif m.kind == "end":
            self.ending = True
        elif m.kind != "peers":
            f = self.fragments[int(m.fields["fragment"])]
            if m.kind == "open":
                f.opened = max(f.opened, int(m.fields["step"]))
            elif m.kind == "taken":
                self.on_taken(f, m)
            elif m.kind == "global":
                self.on_global(int(m.fields["fragment"]), m)
            else:
                raise Gone(f"{m.kind} is not for learners")
        return True

    # Training.

    def train(self, f):
        """One inner step: some values move a little."""
        for i in range(self.steps % 7, len(f.values), 7):
            f.values[i] += 1e-5 * ((i * 13 + self.steps) % 5 - 2)

    def step(self):
        self.clock, self.steps = self.clock + 1, self.steps + 1
        self.tokens += self.TOKENS
        for f in self.fragments:
            self.train(f)
            f.n, f.t = f.n + 1, f.t + self.TOKENS

    def is_wanted(self, p):
        f = self.fragments[p]
        if not f.n or f.done or self.ending:
            return f.n and not f.done
        due = self.clock % self.h == p * self.h // len(self.fragments)
        if self.lockstep:
            return due
        return (due and not f.sent) or f.opened > f.pushed or (
            f.waiting and not f.waiting.final and f.waiting.step > f.pushed)

    def is_out(self, f):
        """In lock-step: no step is made while this is so."""
        return (self.lockstep and f.sent and f.sent[-1].taken != "waiting" and
                self.steps - f.pushed_own >= self.tau)

    def apply(self, p):
        f, came = self.fragments[p], self.fragments[p].waiting
        new = came.values
        how = "overwrite" if came.final else self.apply_how
        if how == "overwrite" or not f.values:
            f.values, f.anchor, f.n, f.t = array("f", new), new, 0, 0
        elif how == "carry":
            f.values = array("f", (v + (w - a) for v, w, a in
                                   zip(f.values, new, f.anchor)))
            f.anchor = new
        else:
            a = float(how.partition(":")[2])
            f.values, f.anchor = (
                array("f", (a * v + (1 - a) * w for v, w in zip(old, new)))
                for old in (f.values, f.anchor))
            f.n, f.t = int(a * f.n + 0.5), int(a * f.t + 0.5)
        f.version, f.done, f.waiting = came.version, came.final, None
        f.pushed = max(f.pushed, came.step)
        self.link.say("applied", dict(fragment=p,
                                      version=version_text(came.version)))

    def after_step(self):
        if not self.lockstep:
            self.clock = max([self.clock] +
                             [f.opened for f in self.fragments])
        wanted = [p for p in range(len(self.fragments)) if self.is_wanted(p)]
        if wanted or time.monotonic() - self.told >= 0.1:
            self.tell_step()
        for p in wanted:
            self.push(p)
        for p, f in enumerate(self.fragments):
            if f.waiting:
                self.apply(p)

    # Living.

    def is_delivered(self):
        return not any(f.n or any(not s.taken for s in f.sent)
                       for f in self.fragments if not f.done)

    def turn(self):
        """One step, if there is one to make; False when all is done."""
        if not self.welcomed or not all(
                f.values or f.waiting for f in self.fragments):
            return True
        if self.leave is not None and self.steps >= self.leave:
            self.ending = True
        if not self.ending and all(
                f.values and not self.is_out(f) for f in self.fragments):
            self.step()
        self.after_step()
        if self.ending and not self.drained and self.is_delivered():
            if self.leave is not None:
                return False
            self.drained = True
            self.link.say("end", dict(step=self.clock))
        return not all(f.done for f in self.fragments)

    def take_part(self, link):
        """Until the run ends; Gone when the connection does."""
        self.greet(link)
        heard = beat = time.monotonic()
        next_step = heard
        while True:
            m = link.hear(max(next_step - time.monotonic(), 0))
            now = time.monotonic()
            if m:
                heard = now
                if not self.on_message(m):
                    break
            if now >= next_step:
                next_step = max(next_step + self.step_time, now)
                if not self.turn():
                    break
            if now - beat >= 2:
                beat = now
                link.beat()
            if now - heard > 30:
                raise Gone("the syncer says nothing")
        link.say("bye", dict(reason="leaving"))
        link.close()


def refused(m):
    print(f"learner.py: refused: {m.fields['text']}", file=sys.stderr)
    return int(m.fields["code"])


def read_key(path):
    with open(path, encoding="ascii") as f:
        return base64.b64decode(f.read())


def main():
    a = argparse.ArgumentParser(usage=__doc__)
    a.add_argument("-v", action="store_true")
    a.add_argument("-n", default=socket.gethostname())
    a.add_argument("--key")
    a.add_argument("--suites", default="AESGCM,ChaChaPoly")
    a.add_argument("--run", default="-")
    a.add_argument("--step-time", type=float, default=0.01)
    a.add_argument("--leave", type=int)
    a.add_argument("link")
    o = a.parse_args()
    learner = Learner(o.n, o.step_time, o.leave)
    key = read_key(o.key) if o.key else None
    for attempt in range(20):
        try:
            link = Link(o.link, key=key, suites=o.suites, run=o.run)
            link.verbose = o.v
            learner.take_part(link)
            return 0
        except (Gone, OSError) as e:
            print(f"learner.py: {e}: trying again", file=sys.stderr)
            time.sleep(0.2 + 0.1 * attempt)
    return 69


if __name__ == "__main__":
    sys.exit(main())
