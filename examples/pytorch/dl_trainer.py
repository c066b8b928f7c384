"""Makes a PyTorch training loop a learner of dl-tools (dl-trainer(7)).

Copy this file beside your program; it needs nothing but torch.

    dl = dl_trainer.Trainer(model, optimizer)
    for clock in dl:                    # for ever, or until the run is over
        loss = train_one_step(clock)    # samples and rate follow the clock
        dl.step(tokens, loss)

    dl-learn tcp:... -- python3 train.py

Without a learner (no DL_TRAINER in the environment) the loop counts 0, 1, 2 ...
and dl.step does nothing, so one program serves both. dl.slot and dl.seed say
which data are this learner's; dl.since is the clock at which the optimizer last
began anew, from where a warm-up counts. Of several processes that are one
learner (torchrun), rank 0 talks and the others follow its orders.

Tensors of the layout that are not F32 on the model's side have an F32 master
here, so that what the run adds is not lost in their rounding. Files that come
from others are safetensors and are checked in full before anything changes;
nothing is ever unpickled.
"""

import json
import math
import os
import socket
import struct
import sys
import time

import torch

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16,
    "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32,
    "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
HEADER_MOST = 100_000_000


def size_of(dtype):
    return torch.empty(0, dtype=dtype).element_size()


def read_header(f, path):
    """The entries and metadata of a safetensors file, checked, and where its
    data begin."""
    size = os.fstat(f.fileno()).st_size
    start = f.read(8)
    n = struct.unpack("<Q", start)[0] if len(start) == 8 else size
    if n > min(size - 8, HEADER_MOST):
        raise ValueError(f"{path}: the header is not all there")
    head = json.loads(f.read(n))
    meta = head.pop("__metadata__", {})
    at = 0
    entries = sorted(head.items(), key=lambda item: item[1]["data_offsets"])
    for name, t in entries:
        first, end = t["data_offsets"]
        width = size_of(DTYPES[t["dtype"]])
        if first != at or end - first != math.prod(t["shape"]) * width:
            raise ValueError(f"{path}: {name} is not where it should be")
        at = end
    if size != 8 + n + at:
        raise ValueError(f"{path}: {size} bytes, not {8 + n + at}")
    return entries, meta, 8 + n


def read(path):
    """A safetensors file: tensors that share one buffer, and its metadata."""
    with open(path, "rb") as f:
        entries, meta, at = read_header(f, path)
        size = entries[-1][1]["data_offsets"][1] if entries else 0
        data = bytearray(size)
        if f.readinto(data) != size:
            raise ValueError(f"{path}: ends early")
    out = {}
    for name, t in entries:
        dtype, (first, end) = DTYPES[t["dtype"]], t["data_offsets"]
        if first % size_of(dtype):
            raise ValueError(f"{path}: {name} is not aligned")
        flat = torch.frombuffer(
            data, dtype=dtype, offset=first, count=(end - first) // size_of(dtype)
        ) if end > first else torch.empty(0, dtype=dtype)
        out[name] = flat.reshape(t["shape"])
    return out, meta


class File:
    """A safetensors file to be written, again and again: header and data are
    one buffer, and data are copied into it once."""

    def __init__(self, like, meta):
        """like: (name, dtype, shape) of each tensor."""
        like = sorted(like, key=lambda t: (-size_of(t[1]), t[0]))
        head, at = {"__metadata__": meta}, 0
        for name, dtype, shape in like:
            end = at + math.prod(shape) * size_of(dtype)
            head[name] = {"dtype": NAMES[dtype], "shape": list(shape),
                          "data_offsets": [at, end]}
            at = end
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        start = 8 + len(text)
        self.bytes = bytearray(start + at)
        self.bytes[:start] = struct.pack("<Q", len(text)) + text
        self.names = [name for name, _, _ in like]
        self.views = {}
        for name, dtype, shape in like:
            first, end = head[name]["data_offsets"]
            self.views[name] = torch.frombuffer(
                self.bytes, dtype=dtype, offset=start + first,
                count=(end - first) // size_of(dtype),
            ).reshape(shape) if end > first else torch.empty(shape, dtype=dtype)
        self.flat = torch.frombuffer(
            self.bytes, dtype=torch.uint8, offset=start, count=at)

    def write(self, path):
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            f.write(self.bytes)
            f.truncate()


class Trainer:
    def __init__(self, model, optimizer):
        self.optimizer = optimizer
        self.tensors = dict(model.named_parameters())
        self.parameters = dict(self.tensors)
        for name, t in model.named_buffers():
            if name in model.state_dict():
                self.tensors[name] = t
        self.clock = self.since = self.updates = self.tokens = 0
        self.slot = int(os.environ.get("DL_SLOT", 0))
        self.seed = int(os.environ.get("DL_SEED", 0))
        self.master = {}  # name: (F32 on the CPU, the tensor as it was then)
        self.files = {}
        self.lost = self.steps = 0
        self.began = self.boundary = None
        self.stopped = False
        self.rank, self.ranks = 0, 1
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self.rank = torch.distributed.get_rank()
            self.ranks = torch.distributed.get_world_size()
        self.learning = "DL_TRAINER" in os.environ
        if self.learning:
            self.read_layout()
        if self.learning and not self.rank:
            link = socket.socket(socket.AF_UNIX)
            link.connect(os.environ["DL_TRAINER"])
            self.heard, self.said = link.makefile("r"), link.makefile("w")
            self.say("ready 1")

    def read_layout(self):
        self.fragments = {}
        with open(os.environ["DL_LAYOUT"]) as f:
            for line in f:
                if line.startswith("#"):
                    continue
                name, _, shape, _, p, rule = line.rstrip("\n").split("\t")[:6]
                if rule.startswith("alias"):
                    continue
                if name not in self.tensors:
                    raise SystemExit(f"the run has a tensor {name}, this model not")
                self.fragments.setdefault(int(p), []).append(name)
        for names in self.fragments.values():
            for name in names:
                t = self.tensors[name]
                if t.dtype != torch.float32 and t.is_floating_point():
                    self.keep_master(name, t.detach().float().cpu())

    # The loop.

    def __iter__(self):
        self.began = time.monotonic()
        while not self.stopped:
            if self.learning and not self.obey():
                break
            yield self.clock
            if not self.learning:
                self.clock += 1
        self.report()

    def step(self, tokens, loss):
        """One inner step is done, on so many tokens, with that mean loss."""
        self.steps += 1
        self.tokens += tokens
        self.updates += 1
        if self.learning:
            loss = float(loss)  # waits for the device
            self.boundary = time.monotonic()
            self.clock += 1
            if not self.rank:
                self.say(f"step {tokens} {loss:.6f}")

    def report(self):
        spent = time.monotonic() - self.began
        if self.learning and self.steps and not self.rank:
            print(f"dl_trainer: {self.steps} steps in {spent:.2f} s, "
                  f"{self.lost:.2f} s of it ({100 * self.lost / spent:.1f}%) "
                  "between steps", file=sys.stderr)

    # Orders.

    def say(self, line):
        self.said.write(line + "\n")
        self.said.flush()

    def hear(self):
        line = [None if self.rank else self.heard.readline()]
        if self.ranks > 1:
            torch.distributed.broadcast_object_list(line)
        return line[0].split()

    def obey(self):
        """Orders, until one is to make a step; False: to stop."""
        while True:
            verb, *words = self.hear() or ["end"]
            if verb == "go":
                if self.boundary:
                    self.lost += time.monotonic() - self.boundary
                return True
            answer = "ok"
            if verb not in ("stop", "end"):
                try:
                    getattr(self, "do_" + verb)(*words)
                except Exception as error:
                    answer = f"error {verb}: {error!r}"[:1000].replace("\n", " ")
            if not self.rank and verb != "end":
                self.say(answer)
            if verb in ("stop", "end"):
                return False

    def do_load(self, path):
        if os.path.isdir(path):
            path = os.path.join(path, "model.safetensors")
        data, _ = read(path)
        names = [n for names in self.fragments.values() for n in names]
        self.put(self.check(data, names))

    def do_send(self, p, path):
        names = self.fragments[int(p)]
        if p not in self.files:
            self.files[p] = File(
                [(n, torch.float32, self.tensors[n].shape) for n in names],
                {"dl.format": "1", "dl.kind": "params", "dl.fragment": p})
        self.gather(self.files[p], names)
        if not self.rank:
            self.files[p].write(path)

    def do_apply(self, p, path, how, a=0):
        if how not in ("set", "add", "blend"):
            raise ValueError(f"there is no {how}")
        names = self.fragments[int(p)]
        data = self.check(read(path)[0], names)
        a = float(a)
        if how != "set":
            for name in names:
                new, old = data[name], self.value(name)
                data[name] = old + new if how == "add" else a * old + (1 - a) * new
        self.put(data)

    def do_clock(self, s, fresh=None):
        self.clock = int(s)
        if fresh:
            self.since, self.updates = self.clock, 0
            self.optimizer.state.clear()

    def do_save(self, path):
        if not self.rank:
            self.write_state(path)

    do_export = do_save

    def do_prepare(self, path):
        pass

    def do_restore(self, path):
        """All is checked before anything is changed."""
        data, meta = read(path)
        counters = [int(meta[key]) for key in
                    ("dl.step", "dl.since", "dl.updates", "dl.tokens")]
        names = [n for n in self.tensors if n in data or n in self.in_layout()]
        values = self.check(data, names)
        moments = {}
        for name, p in self.parameters.items():
            for key in {n[: -len(name) - 1] for n in data
                        if n.endswith("." + name) and n not in self.tensors}:
                moment = data[f"{key}.{name}"]
                if moment.shape != p.shape:
                    raise ValueError(f"{key}.{name} has another shape")
                moments.setdefault(p, {})[key] = moment
        self.put(values)
        self.clock, self.since, self.updates, self.tokens = counters
        self.optimizer.state.clear()
        for p, state in moments.items() if self.updates else ():
            for key, moment in state.items():
                self.optimizer.state[p][key] = moment.to(p.device, p.dtype).clone()
            self.optimizer.state[p]["step"] = torch.tensor(float(self.updates))

    do_import = do_restore

    # Values.

    def in_layout(self):
        return {n for names in self.fragments.values() for n in names}

    def check(self, data, names):
        for name in names:
            if name not in data:
                raise ValueError(f"{name} is missing")
            if data[name].shape != self.tensors[name].shape:
                raise ValueError(f"{name} has another shape")
        return {name: data[name] for name in names}

    def keep_master(self, name, value):
        self.master[name] = value, self.tensors[name].detach().clone()

    def value(self, name):
        """In F32, on the CPU: where there is a master, that and what the steps
        since have added."""
        t = self.tensors[name].detach()
        if name not in self.master:
            return t.float().cpu()
        master, then = self.master[name]
        moved = (t.float() - then.float()).cpu()
        return master + moved

    def gather(self, file, names):
        """Values into the file: one copy from the device."""
        same = [n for n in names if n not in self.master]
        parts = [self.tensors[n].detach() for n in same]
        if parts and parts[0].is_cuda:
            host = torch.cat([t.float().reshape(-1) for t in parts]).cpu()
            parts = [h.reshape(t.shape) for h, t in
                     zip(host.split([t.numel() for t in parts]), parts)]
        for name, t in zip(same, parts):
            file.views[name].copy_(t)
        for name in set(names) - set(same):
            file.views[name].copy_(self.value(name))

    def put(self, values):
        with torch.no_grad():
            for name, value in values.items():
                self.tensors[name].copy_(value)
                if name in self.master:
                    self.keep_master(name, value.float().clone())

    def write_state(self, path):
        """Parameters, the optimizer's tensors by name, counters."""
        like, data = [], {}
        for name, t in self.tensors.items():
            mine = name in self.in_layout()
            data[name] = self.value(name) if name in self.master else t.detach()
            like.append((name, torch.float32 if mine else t.dtype, t.shape))
        for name, p in self.parameters.items():
            for key, t in self.optimizer.state.get(p, {}).items():
                if torch.is_tensor(t) and t.shape == p.shape and key != "step":
                    data[f"{key}.{name}"] = t
                    like.append((f"{key}.{name}", torch.float32, t.shape))
        file = File(like, {
            "dl.format": "1", "dl.kind": "state", "dl.step": str(self.clock),
            "dl.since": str(self.since), "dl.updates": str(self.updates),
            "dl.tokens": str(self.tokens)})
        for name, t in data.items():
            file.views[name].copy_(t)
        file.write(path)
