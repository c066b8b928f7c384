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
began anew, from where a warm-up counts.

Of several processes on one machine that are one learner (torchrun), rank 0 talks
and the others follow its orders; they see to it that all make the same steps,
as DistributedDataParallel does, and give its model.module to Trainer.

The layout says which tensors take part in the run: what it does not list, such
as a frozen trunk, stays as it is, and what is tied is in it once. Those of F16
or BF16 have an F32 master here, so that what the run adds is not lost in their
rounding. Files that come from others are safetensors and are checked in full
before anything changes; nothing is ever unpickled.
"""

import collections
import copy
import datetime
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


def read(path, room=None):
    """A safetensors file: tensors that share one buffer, and its metadata. The
    buffer is room, if that is large enough: new memory costs time."""
    with open(path, "rb") as f:
        entries, meta, at = read_header(f, path)
        size = entries[-1][1]["data_offsets"][1] if entries else 0
        data = room if room and len(room) >= size else bytearray(size)
        if f.readinto(memoryview(data)[:size]) != size:
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
        self.views = {}
        for name, dtype, shape in like:
            first, end = head[name]["data_offsets"]
            self.views[name] = torch.frombuffer(
                self.bytes, dtype=dtype, offset=start + first,
                count=(end - first) // size_of(dtype),
            ).reshape(shape) if end > first else torch.empty(shape, dtype=dtype)

    def write(self, path):
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            f.write(self.bytes)
            f.truncate()


def write(path, values):
    """A safetensors file of these tensors."""
    file = File([(name, t.dtype, t.shape) for name, t in values.items()], {})
    for name, t in values.items():
        file.views[name].copy_(t.detach())
    file.write(path)


def kinds_of(optimizer):
    """The names of the tensors that it keeps for each parameter, as a step on
    one number shows."""
    group = optimizer.param_groups[0]
    one = torch.ones(1, device=group["params"][0].device, requires_grad=True)
    one.grad = torch.ones_like(one)
    probe = copy.copy(optimizer)
    probe.state = collections.defaultdict(dict)
    probe.param_groups = [{**group, "params": [one]}]
    probe.step()
    return sorted(key for key, t in probe.state[one].items()
                  if torch.is_tensor(t) and t.shape == one.shape)


class Trainer:
    def __init__(self, model, optimizer):
        self.optimizer = optimizer
        # Parameters and buffers; what is tied is there by each of its names.
        self.tensors = {name: t for name, t in
                        model.state_dict(keep_vars=True).items()
                        if torch.is_tensor(t)}
        self.clock = self.since = self.updates = self.tokens = 0
        self.slot = int(os.environ.get("DL_SLOT", 0))
        self.seed = int(os.environ.get("DL_SEED", 0))
        self.files = {}
        self.lost = self.steps = 0
        self.began = self.boundary = None
        self.rank, self.group = 0, None
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self.rank = torch.distributed.get_rank()
            self.group = torch.distributed.new_group(
                backend="gloo", timeout=datetime.timedelta(days=1000))
        self.learning = "DL_TRAINER" in os.environ
        if self.learning:
            self.read_layout()
            self.find_others()
        if self.learning and not self.rank:
            self.link = socket.socket(socket.AF_UNIX)
            self.link.connect(os.environ["DL_TRAINER"])
            self.heard, self.said = self.link.makefile("r"), self.link.makefile("w")
            self.say("ready 1")

    def read_layout(self):
        self.fragments = {}
        self.name = {}  # of a tensor, by its id: the layout's if it has one
        with open(os.environ["DL_LAYOUT"], encoding="utf-8") as f:
            for line in f:
                if line.startswith("#"):
                    continue
                name, _, shape, _, p, rule = line.rstrip("\n").split("\t")[:6]
                if not rule.startswith("alias="):
                    self.take_part(name, shape)
                    self.fragments.setdefault(int(p), []).append(name)
        sizes = [sum(self.tensors[n].numel() for n in names)
                 for names in self.fragments.values()]
        self.room = bytearray(4 * max(sizes))  # for what comes
        self.master = {
            n: self.tensors[n].detach().float() for n in self.name.values()
            if self.tensors[n].dtype in (torch.float16, torch.bfloat16)}

    def take_part(self, name, shape):
        t = self.tensors.get(name)
        if t is None:
            raise SystemExit(f"the run has a tensor {name}, this model not")
        if "x".join(map(str, t.shape)) != shape.strip("-"):
            raise SystemExit(f"{name} is {shape} in the run, "
                             f"{list(t.shape)} in this model")
        other = self.name.setdefault(id(t), name)
        if other != name:
            raise SystemExit(f"{other} and {name} are one tensor: "
                             f"dl-frag plan --alias {name}={other}")

    def find_others(self):
        """What a state holds beside the run's tensors: not what is frozen,
        which all have, nor what is tied, twice."""
        for name, t in self.tensors.items():
            frozen = isinstance(t, torch.nn.Parameter) and not t.requires_grad
            if not frozen:
                self.name.setdefault(id(t), name)
        self.parameters = {
            self.name[id(p)]: p for group in self.optimizer.param_groups
            for p in group["params"] if p.requires_grad and id(p) in self.name}

    # The loop.

    def __iter__(self):
        self.began = time.monotonic()
        while not self.learning or self.obey():
            yield self.clock
            if not self.learning:
                self.clock += 1
        self.report()

    def step(self, tokens, loss):
        """One inner step is done, on so many tokens of this process, with that
        mean loss of theirs."""
        if not self.learning:
            return
        loss = float(loss)  # waits for the device
        self.boundary = time.monotonic()
        self.settle()
        if self.group:
            sums = torch.tensor([tokens, tokens * loss], dtype=torch.float64)
            torch.distributed.all_reduce(sums, group=self.group)
            tokens, loss = int(sums[0]), float(sums[1] / sums[0])
        self.steps += 1
        self.clock += 1
        self.updates += 1
        self.tokens += tokens
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
        """The next order, to all processes of this learner."""
        line = [None if self.rank else self.heard.readline()]
        if self.group:
            torch.distributed.broadcast_object_list(line, group=self.group)
        return line[0].split()

    def agree(self, answer):
        """The answer of all: the first that is not ok."""
        answers = [answer]
        if self.group:
            answers *= torch.distributed.get_world_size()
            torch.distributed.all_gather_object(answers, answer, group=self.group)
        return next((a for a in answers if a != "ok"), "ok")

    def obey(self):
        """Orders, until one is to make a step; False: to stop."""
        while True:
            verb, *words = self.hear() or ["end"]
            if verb == "go":
                if self.boundary:
                    self.lost += time.monotonic() - self.boundary
                return True
            if verb in ("stop", "end"):
                if verb == "stop" and not self.rank:
                    self.say("ok")
                return False
            answer = "ok"
            try:
                getattr(self, "do_" + verb)(*words)
            except Exception as error:
                answer = f"error {verb}: {error!r}"[:1000].replace("\n", " ")
            answer = self.agree(answer)
            if not self.rank:
                self.say(answer)

    def do_load(self, path):
        if os.path.isdir(path):
            path = os.path.join(path, "model.safetensors")
        data, _ = read(path)
        self.put(self.check(data, self.merged()))

    def do_send(self, p, path):
        names = self.fragments[int(p)]
        if p not in self.files:
            self.files[p] = File(
                [(n, torch.float32, self.tensors[n].shape) for n in names],
                {"dl.format": "1", "dl.kind": "params", "dl.fragment": p})
        values = self.take(names)
        if not self.rank:
            for name, t in values.items():
                self.files[p].views[name].copy_(t)
            self.files[p].write(path)

    def do_apply(self, p, path, how, a=0):
        a = float(a)
        keep, add = {"set": (0, 1), "add": (1, 1), "blend": (a, 1 - a)}[how]
        names = self.fragments[int(p)]
        data = self.check(read(path, self.room)[0], names)
        if keep:
            for name, old in self.take(names).items():
                data[name].mul_(add).add_(old, alpha=keep)
        self.put(data)

    def do_clock(self, s, fresh=None):
        self.clock = int(s)
        if fresh:
            self.since, self.updates = self.clock, 0
            self.optimizer.state.clear()

    def do_save(self, path):
        self.write_state(path)

    do_export = do_save

    def do_prepare(self, path):
        pass

    def do_restore(self, path):
        """All is checked before anything is changed."""
        data, meta = read(path)
        counters = [int(meta[key]) for key in
                    ("dl.step", "dl.since", "dl.updates", "dl.tokens")]
        merged = set(self.merged())
        values = self.check(data, [n for n in self.name.values()
                                   if n in data or n in merged])
        state = self.check_moments(data, counters[2])
        self.put(values)
        self.clock, self.since, self.updates, self.tokens = counters
        self.optimizer.load_state_dict({**self.optimizer.state_dict(),
                                        "state": state})

    do_import = do_restore

    def check_moments(self, data, updates):
        """The optimizer's state: all moments of all parameters, or, when there
        were no updates, none."""
        state = {}
        if not updates:
            return state
        order = [p for group in self.optimizer.param_groups for p in group["params"]]
        index = {id(p): i for i, p in enumerate(order)}
        kinds = kinds_of(self.optimizer)
        for name, p in self.parameters.items():
            state[index[id(p)]] = of = {"step": torch.tensor(float(updates))}
            for kind in kinds:
                t = data.get(f"{kind}.{name}")
                if t is None or t.shape != p.shape:
                    raise ValueError(f"there is no {kind}.{name} of its shape")
                of[kind] = t
        return state

    # Values.

    def merged(self):
        return [n for names in self.fragments.values() for n in names]

    def check(self, data, names):
        for name in names:
            if name not in data:
                raise ValueError(f"{name} is missing")
            if data[name].shape != self.tensors[name].shape:
                raise ValueError(f"{name} has another shape")
        return {name: data[name] for name in names}

    def take(self, names):
        """Values by name, of which some are the model's own tensors. One copy
        from the device."""
        parts = [self.master.get(n, self.tensors[n]).detach() for n in names]
        if {t.device.type for t in parts} == {"cuda"}:
            host = torch.cat([t.float().reshape(-1) for t in parts]).cpu()
            parts = [h.reshape(t.shape) for h, t in
                     zip(host.split([t.numel() for t in parts]), parts)]
        return dict(zip(names, parts))

    def settle(self):
        """Adds what a step has added to tensors to their masters, of which they
        were the rounding, and are again."""
        with torch.no_grad():
            for name, master in self.master.items():
                t = self.tensors[name]
                master += t.float() - master.to(t.dtype).float()
                t.copy_(master)

    def put(self, values):
        with torch.no_grad():
            for name, value in values.items():
                self.tensors[name].copy_(value)
                if name in self.master:
                    self.master[name].copy_(value)

    def write_state(self, path):
        """Values, the optimizer's tensors by name, counters. What no step has
        touched has moments of zero."""
        data = {n: self.take([n])[n] for n in self.name.values()}
        merged = set(self.merged())
        like = [(n, torch.float32 if n in merged else self.tensors[n].dtype, t.shape)
                for n, t in data.items()]
        kinds = kinds_of(self.optimizer) if self.updates else []
        for name, p in self.parameters.items():
            for kind in kinds:
                like.append((f"{kind}.{name}", torch.float32, p.shape))
                if kind in self.optimizer.state[p]:
                    data[f"{kind}.{name}"] = self.optimizer.state[p][kind]
        file = File(like, {
            "dl.format": "1", "dl.kind": "state", "dl.step": str(self.clock),
            "dl.since": str(self.since), "dl.updates": str(self.updates),
            "dl.tokens": str(self.tokens)})
        for name, t in data.items():
            file.views[name].copy_(t)
        if not self.rank:
            file.write(path)
