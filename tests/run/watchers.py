"""Watchers that come all the time, and read nothing.

    watchers.py LINK
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../protocol"))
from link import Link, hello

CROWD = 100


def come(address):
    link = Link(address)
    link.say("hello", hello("", role="watcher", instance=0))
    return link


def main(address):
    here = [come(address) for _ in range(CROWD)]
    print("crowded", flush=True)
    while True:
        time.sleep(0.05)
        here.pop(0).socket.close()
        here.append(come(address))


if __name__ == "__main__":
    main(sys.argv[1])
