"""Connections of several streams: STREAMS in dl-protocol(7), a learner's side.
"""
import itertools
import select
import struct

from link import DATA, Gone, Link, hello

PIECES, RECEIVED = 2, 3
PIECE_MAX = 65510


class Extra(Link):
    """A further stream; what it brings is its owner's."""

    owner = None

    def take(self, channel, payload):
        if channel == PIECES:
            self.owner.take_piece(payload)
        else:
            super().take(channel, payload)


class Striped(Link):
    """A connection that has several streams once stripe() was called."""

    def __init__(self, *args, **more):
        self.args, self.more = args, more
        self.lanes = []         # the main stream first
        super().__init__(*args, **more)

    def stripe(self, streams, window, name, instance):
        self.window = window
        self.out = bytearray()  # bytes of the row that the peer may lack
        self.out_from = self.given = 0  # the first of them; the next to give
        self.next, self.early = 0, {}   # of the row that comes
        self.lanes, self.turn = [self], itertools.count()
        for _ in range(streams - 1):
            lane = Extra(*self.args, **self.more)
            lane.say("hello", hello(name, role="stream", instance=instance))
            m = lane.hear(30)
            if not m or m.kind != "attached":
                raise Gone("a stream is not attached")
            lane.owner = self
            self.lanes.append(lane)
            while lane.take_frame():
                pass

    def put(self, channel, data):
        if channel == DATA and self.lanes:
            self.out += data
            self.give()
        else:
            super().put(channel, data)

    def give(self):
        """Gives pieces to the streams in turn, as far as the window goes."""
        end = self.out_from + min(len(self.out), self.window)
        while self.given < end:
            at = self.given - self.out_from
            piece = self.out[at:at + min(PIECE_MAX, end - self.given)]
            lane = self.lanes[next(self.turn) % len(self.lanes)]
            try:
                lane.frame(PIECES, struct.pack("<Q", self.given) + piece)
            except Gone:
                self.lose(lane)
            else:
                self.given += len(piece)

    def lose(self, lane):
        """What it had is not told apart: all goes again."""
        if lane is self:
            raise Gone("the main stream is lost")
        self.lanes.remove(lane)
        lane.socket.close()
        self.given = self.out_from

    def take(self, channel, payload):
        if self.lanes and channel == PIECES:
            self.take_piece(payload)
        elif self.lanes and channel == RECEIVED:
            first = struct.unpack("<Q", payload)[0]
            del self.out[:first - self.out_from]
            self.out_from, self.given = first, max(first, self.given)
            self.give()
        else:
            super().take(channel, payload)

    def take_piece(self, payload):
        self.early[struct.unpack_from("<Q", payload)[0]] = payload[8:]
        while self.early and min(self.early) <= self.next:
            first = min(self.early)
            data = self.early.pop(first)[self.next - first:]
            self.streams[DATA] += data
            self.next += len(data)
        self.frame(RECEIVED, struct.pack("<Q", self.next))

    def wait(self, timeout):
        if not self.lanes:
            return super().wait(timeout)
        sockets = [lane.socket for lane in self.lanes]
        return select.select(sockets, [], [], max(timeout, 0))[0]

    def read_some(self):
        if not self.lanes:
            super().read_some()
        for lane in self.lanes[1:]:
            try:
                if Link.wait(lane, 0):
                    lane.read_some()
                while lane.take_frame():
                    pass
            except Gone:
                self.lose(lane)
                self.give()
        if self.lanes and Link.wait(self, 0):
            super().read_some()

    def beat(self):
        super().beat()
        for lane in self.lanes[1:]:
            lane.beat()

    def close(self):
        extra, self.lanes = self.lanes[1:], self.lanes[:1]
        super().close()
        for lane in extra:
            lane.socket.close()
