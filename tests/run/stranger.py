"""stranger.py SOCKET INSTANCE: says that it is a stream of ann's, of that
instance, and prints the answer until the syncer closes."""

import json
import socket
import struct
import sys

words = {"dl.format": "1", "dl.kind": "hello", "dl.role": "stream",
         "dl.run": "", "dl.learner": "ann", "dl.instance": sys.argv[2],
         "dl.layout": "", "dl.codecs": "", "dl.clock": "0", "dl.steps": "0",
         "dl.tokens": "0"}
head = json.dumps({"__metadata__": words}).encode()
record = struct.pack("<Q", len(head)) + head
door = socket.socket(socket.AF_UNIX)
door.connect(sys.argv[1])
door.sendall(struct.pack("<HB", len(record) + 1, 0) + record)
door.shutdown(socket.SHUT_WR)
answer = b""
while True:
    more = door.recv(4096)
    if not more:
        break
    answer += more
print(answer)
