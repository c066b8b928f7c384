#!/usr/bin/env python3
"""A service manager's ear: binds the datagram socket that is named, a path or
@NAME, and prints what comes, each datagram's lines joined by spaces."""
import socket, sys

name = sys.argv[1]
ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
ear.bind("\0" + name[1:] if name[0] == "@" else name)
print("hears", flush=True)
while True:
    print(ear.recv(4096).decode().replace("\n", " "), flush=True)
