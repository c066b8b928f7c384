#!/usr/bin/env python3
"""A trainer of nothing much, after dl-trainer(7): its values roll, with
momentum, towards a point that moves with the clock. Words on the command line
make it misbehave, each in the way that FAULTS says. With once=FILE it does so
while there is such a file, which it removes; pause=SECONDS makes steps last."""
import array, json, os, socket, struct, sys, time

FAULTS = """
hang-ready hang-step hang-answer   say nothing where a line is due
garbage long                       say what is no line
die die-send                       exit in a step, or when asked to send
no-tokens many-tokens more-tokens  count none, far too many, more each time
nan half lacks                     send NaN, half a file, a tensor too few
still nan-loss                     steps that change nothing, lose nothing
load set add blend                 obey this as something else
other                              apply to all fragments what is for one
takes-half takes-torn hums         obey what cannot be obeyed
deaf                               no heed of the clock
rw                                 lose orders that come together
stale forgets                      moments are kept by fresh, lost by apply
save export import                 state without moments, old, or values only
refuses                            error for all that may be refused
stop lingers status end            ignore stop, stay or fail after it
"""
faults = {w for w in sys.argv[1:] if "=" not in w}
options = dict(w.split("=") for w in sys.argv[1:] if "=" in w)
once = options.get("once")
known = {w for line in FAULTS.splitlines() for w in line.split("  ")[0].split()}
assert faults <= known, faults - known


def bad(what):
    if what not in faults or once and not os.path.exists(once):
        return False
    if once:
        os.remove(once)
    return True


layout = [
    line.split("\t")
    for line in open(os.environ["DL_LAYOUT"]).read().splitlines()
    if not line.startswith("#")
]
tensors = {}  # name: (fragment, shape)
for name, dtype, shape, elements, fragment, rule in layout:
    if not rule.startswith("alias"):
        shape = [int(n) for n in shape.split("x")]
        tensors[name] = (int(fragment), shape)
values = {}
moments = {}
clock = 0
told = 0


def read(path):
    data = open(path, "rb").read()
    (n,) = struct.unpack_from("<Q", data)
    head = json.loads(data[8 : 8 + n])
    meta = head.pop("__metadata__", {})
    out = {}
    end = 0
    for name, t in head.items():
        a, b = t["data_offsets"]
        out[name] = array.array("f", data[8 + n + a : 8 + n + b])
        end = max(end, b)
    if len(data) != 8 + n + end:
        raise ValueError("a file that ends too early or too late")
    return out, meta


def write(path, what, meta={}):
    head, body = {"__metadata__": meta}, b""
    for name, v in sorted(what.items()):
        shape = tensors[name.split(":")[-1]][1]
        head[name] = {
            "dtype": "F32",
            "shape": shape,
            "data_offsets": [len(body), len(body) + 4 * len(v)],
        }
        body += v.tobytes()
    head = json.dumps(head).encode()
    data = struct.pack("<Q", len(head)) + head + body
    with open(path, "wb") as f:
        f.write(data[: len(data) // 2] if bad("half") else data)


def take(source):
    """All tensors from a file, or none."""
    new = {name: source[name] for name in tensors}
    for name, v in new.items():
        if len(v) != len(values.get(name, v)):
            raise ValueError(f"{name} has another size")
    return new


def restart():
    for name, v in values.items():
        moments[name] = array.array("f", [0.0] * len(v))


def load(path):
    values.update(take(read(path)[0]))
    if bad("load"):
        next(iter(values.values()))[0] += 1
    restart()


def part(p):
    return [name for name, (fragment, _) in tensors.items() if fragment == p]


def send(p, path):
    if bad("die-send"):
        os._exit(3)
    names = part(int(p))
    if bad("lacks"):
        names.pop()
    out = {name: values[name] for name in names}
    if bad("nan"):
        out[names[0]] = array.array("f", out[names[0]])
        out[names[0]][0] = float("nan")
    write(path, out)


def apply(p, path, how, a=0):
    a = float(a)
    try:
        source = read(path)[0]
    except Exception:
        if bad("takes-half"):
            return
        raise
    if bad(how):
        how, a = {"set": "add", "add": "set", "blend": "blend"}[how], 1 - a
    if bad("forgets"):
        restart()
    for name in tensors if bad("other") else part(int(p)):
        new = source.get(name) or array.array("f", [0.0] * len(values[name]))
        old = values[name]
        for i, x in enumerate(new):
            if how == "set":
                old[i] = x
            elif how == "add":
                old[i] += x
            else:
                old[i] = a * old[i] + (1 - a) * x


def save(path):
    kept = moments if not bad("save") else {n: values[n] for n in moments}
    write(
        path,
        {**values, **{f"m:{n}": v for n, v in kept.items()}},
        {"clock": str(clock)},
    )


def restore(path):
    global clock
    data, meta = read(path)
    new = take(data)
    kept = {name: data[f"m:{name}"] for name in tensors}
    clock = int(meta["clock"])
    values.update(new)
    moments.update(kept)


def export(path):
    if "export" in faults and os.path.exists(path):
        return
    save(path)


def import_(path):
    try:
        restore(path)
    except Exception:
        if bad("takes-torn"):
            return
        raise
    if bad("import"):
        restart()


def set_clock(s, fresh=None):
    global clock
    clock = int(s)
    if fresh and not bad("stale"):
        restart()


def step():
    global clock, told
    time.sleep(float(options.get("pause", 0)))
    if bad("hang-step"):
        time.sleep(3600)
    if bad("die"):
        os._exit(3)
    if bad("garbage"):
        say("Traceback (most recent call last):")
    if bad("long"):
        say("step " + "1" * 2000)
    if bad("many-tokens"):
        next(iter(values.values()))[0] += 1
        return say(f"step {10**12} 1")
    loss, n = 0.0, 0
    goal = 0 if "deaf" in faults else 0.01 * (clock % 7)
    for name, v in values.items():
        m = moments[name]
        for i, x in enumerate(v):
            loss += (x - goal) ** 2
            m[i] = 0.9 * m[i] + (x - goal)
            if "still" not in faults:
                v[i] = x - 0.01 * m[i]
        n += len(v)
    clock += 1
    told += 1
    loss = float("nan") if bad("nan-loss") else loss / n
    tokens = 64
    if bad("no-tokens"):
        tokens = 0
    if bad("more-tokens"):
        tokens += told
    say(f"step {tokens} {loss:.9g}")


def say(line):
    said.write(line + "\n")
    said.flush()


orders = {
    "load": load,
    "send": send,
    "apply": apply,
    "save": save,
    "restore": restore,
    "prepare": lambda path: None,
    "export": export,
    "import": import_,
    "clock": set_clock,
}
optional = {"save", "restore", "prepare", "export", "import"}

link = socket.socket(socket.AF_UNIX)
link.connect(os.environ["DL_TRAINER"])
heard, said = link.makefile("r"), link.makefile("w")
if "rw" in faults:
    heard = said = link.makefile("rw")
if bad("hang-ready"):
    time.sleep(3600)
say("ready 1")
for line in heard:
    verb, *words = line.split()
    if verb == "go":
        step()
        continue
    if verb == "stop" and not bad("stop"):
        say("ok")
        if bad("lingers"):
            time.sleep(3600)
        sys.exit(3 if bad("status") else 0)
    if bad("hang-answer"):
        time.sleep(3600)
    try:
        if verb in optional and bad("refuses"):
            raise ValueError("cannot do that")
        if not (verb == "stop" or verb == "hum" and bad("hums")):
            orders[verb](*words)
        if verb != "stop":
            say("ok")
    except Exception as error:
        say(f"error {verb}: {error or type(error).__name__}")
if bad("end"):
    time.sleep(3600)
