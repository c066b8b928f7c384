"""The page by which a process under the chaos shim learns of its machine."""

import mmap
import struct

LAYOUT = struct.Struct("=iiq")  # disk, delay in us, wall clock off by ns
DISK = {"sound": 0, "full": 1}


class Control:
    def __init__(self, path):
        self.path = path
        with open(path, "w+b") as f:
            f.truncate(LAYOUT.size)
            self.page = mmap.mmap(f.fileno(), LAYOUT.size)
        self.disk, self.delay, self.wall = "sound", 0.0, 0.0
        self.write()

    def write(self):
        LAYOUT.pack_into(self.page, 0, DISK[self.disk],
                         int(self.delay * 1e6), int(self.wall * 1e9))
