"""alter.py HOW FROM TO: a checkpoint that is not as it should be.

The tar is unpacked, altered and packed again; zstd(1) does the rest.
"""
import io
import re
import subprocess
import sys
import tarfile


def read(path):
    plain = subprocess.run(
        ["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        return [(m, tar.extractfile(m).read()) for m in tar]


def write(path, entries):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member, data in entries:
            tar.addfile(member, io.BytesIO(data))
    subprocess.run(
        ["zstd", "-qfo", path], check=True, input=plain.getvalue()
    )


def alter(how, entries):
    member, data = entries[3]
    if how == "bit":
        data = bytearray(data)
        data[-1] ^= 1
        entries[3] = (member, bytes(data))
    elif how == "missing":
        del entries[3]
    elif how == "extra":
        entries.append((tarfile.TarInfo("../../extra"), b""))
    elif how == "newer":
        member, data = entries[0]
        data = data.replace(b'"format":1', b'"format":2')
        entries[0] = (member, data)
    elif how == "later":
        member, data = entries[0]
        data = re.sub(rb'"made":\d*', b'"made":4102444800000000000', data)
        entries[0] = (member, data)
        member.size = len(data)
    elif how == "symlink":
        member.type, member.size = tarfile.SYMTYPE, 0
        member.linkname = "/etc/passwd"
    else:
        sys.exit("alter.py: how?")


entries = read(sys.argv[2])
alter(sys.argv[1], entries)
write(sys.argv[3], entries)
