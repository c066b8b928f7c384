"""Layouts, dl-layout(5), and the values of fragments, dl-fragment(5): of a
fragment they are one array of F32 in packed order."""
import sys
from array import array

from link import Gone, Tensor


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
