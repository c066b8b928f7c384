"""A run of real processes: a syncer, learners, and the relays between them."""

import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from control import Control
from relay import Relay

PATIENCE = 30  # seconds, for what takes a moment
UNDELIVERED = 75  # exit status of a learner whose last work got nowhere


class Failure(Exception):
    pass


def wait_for(what, holds, patience=PATIENCE):
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise Failure(f"{what}: not within {patience} s")
        time.sleep(0.02)


def descendants(pid):
    """The process and all that it has started."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="latin-1") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


class Process:
    """One that ends only when it is asked to."""

    def __init__(self, name, folder, shim, disk=None):
        self.name, self.folder = name, folder
        self.control = Control(f"{folder}/{name}.control")
        self.log = f"{folder}/{name}.log"
        self.child, self.asked = None, False
        self.env = dict(os.environ, LD_PRELOAD=os.path.abspath(shim),
                        ASAN_OPTIONS="verify_asan_link_order=0",
                        DL_CHAOS_CONTROL=self.control.path)
        if disk:
            self.env["DL_CRASH_ROOT"] = disk

    def start(self, command):
        self.asked = False
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                command, cwd=self.folder, env=self.env, stdout=log,
                stderr=log, stdin=subprocess.DEVNULL)

    def alive(self):
        return self.child is not None and self.child.poll() is None

    def died(self):
        """By itself: how."""
        if self.asked or self.child is None or self.child.poll() is None:
            return None
        return f"{self.name} ended with {self.child.returncode}"

    def kill(self):
        self.asked = True
        self.child.kill()
        self.child.wait()

    def ask(self):
        self.asked = True
        self.child.terminate()

    def ends(self, codes=(0,), patience=PATIENCE):
        self.asked = True
        try:
            code = self.child.wait(patience)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name}: still there after {patience} s")
        if code not in codes:
            raise Failure(f"{self.name} ended with {code}")

    def freeze(self, frozen):
        for pid in descendants(self.child.pid):
            try:
                os.kill(pid, signal.SIGSTOP if frozen else signal.SIGCONT)
            except ProcessLookupError:
                pass


class Run:
    """serve and learn are options of dl-sync serve and of dl-learn, train is
    the command of all trainers. Without relays a learner must be started again
    when the syncer was."""

    def __init__(self, folder, names, shim, serve, learn, train, relays=True):
        self.folder, self.names = folder, names
        self.serve, self.learn, self.train = serve, learn, train
        self.disk = f"{folder}/disk"
        os.mkdir(self.disk)
        self.copies = f"{folder}/checkpoints"  # that a start may be from
        os.mkdir(self.copies)
        self.scratch = tempfile.mkdtemp(
            prefix="chaos-", dir="/dev/shm" if os.path.isdir("/dev/shm")
            else folder)
        self.syncer = Process("syncer", folder, shim, self.disk)
        self.learners = {name: Process(name, folder, shim) for name in names}
        self.relays = {name: Relay() for name in names} if relays else {}
        self.port = None
        self.tapes, self.listens, self.losses = 0, 0, 0
        self.key = self.make_keys()

    def call(self, *command, patience=PATIENCE, env=()):
        done = subprocess.run(command, cwd=self.folder, timeout=patience,
                              env={**os.environ, **dict(env)}, text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise Failure(f"{' '.join(command)}: {done.returncode}: "
                          f"{done.stderr.strip()}")
        return done.stdout

    def make_keys(self):
        lines = []
        for name in ("syncer", *self.names):
            self.call("dl-key", "gen", "-o", f"{name}.key")
            public = self.call("dl-key", "pub", f"{name}.key").strip()
            lines.append(f"{public} {name}")
        with open(f"{self.folder}/authorized", "w", encoding="ascii") as f:
            print(*lines[1:], sep="\n", file=f)
        return lines[0].split()[0]

    def start_syncer(self):
        whole = os.path.exists(f"{self.disk}/store/HEAD")
        begin = ["--layout", "layout.tsv", "m/model.safetensors"]
        if not whole and self.checkpoints():
            begin = ["--from", "disk/checkpoints"]
        self.syncer.start([
            "dl-sync", "serve", "--run", "chaos", "--store", "disk/store",
            "--listen", "tcp:127.0.0.1:0", "--listen", "unix:control",
            "--key", "syncer.key", "--authorized", "authorized",
            "--tape", "tape", "--record", "record",
            "-o", "out.safetensors", *self.serve, *begin])
        wait_for("the syncer listens", self.find_port)

    def checkpoints(self):
        """The newest last."""
        return sorted(
            glob.glob(f"{self.disk}/checkpoints/*.[0-9]*.tar.zst"),
            key=lambda path: [int(n) for n in path.split(".")[-4:-2]])

    def lose_store(self, damage):
        """Of the syncer's disk only checkpoints are left, and perhaps not the
        newest of them; copies of all are kept. Not before there are two."""
        found = self.checkpoints()
        if len(found) < 2 or not os.path.exists(f"{self.disk}/store/HEAD"):
            return
        self.losses += 1
        shutil.rmtree(f"{self.disk}/store")
        if damage:
            os.truncate(found[-1], os.path.getsize(found[-1]) // 2)
        for path in found:
            shutil.copy(path, self.copies)

    def find_port(self):
        """Of its last start: the port is another each time."""
        with open(self.syncer.log, encoding="utf-8") as f:
            ports = re.findall(r"listens at tcp:\S*:(\d+)$", f.read(), re.M)
        if len(ports) <= self.listens:
            return False
        self.listens = len(ports)
        self.port = int(ports[-1])
        for relay in self.relays.values():
            relay.there = self.port
        return True

    def start(self, name):
        relay = self.relays.get(name)
        port = relay.port if relay else self.port
        self.learners[name].start([
            "dl-learn", "-n", name, "--key", f"{name}.key", "--scratch",
            self.scratch, *self.learn,
            f"tcp:{self.key}@127.0.0.1:{port}", "--",
            *self.train])

    def processes(self):
        return [self.syncer, *self.learners.values()]

    def check_alive(self):
        for process in self.processes():
            if process.died():
                raise Failure(process.died())

    def wait_for(self, what, holds, patience=PATIENCE):
        """While everybody lives."""
        wait_for(what, lambda: self.check_alive() or holds(), patience)

    def rotate(self):
        self.tapes += 1
        os.rename(f"{self.folder}/tape", f"{self.folder}/tape.{self.tapes}")
        self.syncer.child.send_signal(signal.SIGHUP)

    def tape(self):
        """The tape's files, in order."""
        paths = [*(f"{self.folder}/tape.{i + 1}" for i in range(self.tapes)),
                 f"{self.folder}/tape"]
        return [path for path in paths if os.path.exists(path)]

    def whole_tape(self):
        """The same as one file, for those who read it afterwards."""
        whole = f"{self.folder}/whole.tape"
        with open(whole, "wb") as f:
            for path in self.tape():
                with open(path, "rb") as part:
                    f.write(part.read())
        return whole

    def merges(self):
        """That are on the tape."""
        found = 0
        for path in self.tape():
            with open(path, encoding="ascii") as f:
                found += f.read().count('"event":"merged"')
        return found

    def present(self):
        """Who is connected, by the tape."""
        here = set()
        for path in self.tape():
            with open(path, encoding="ascii") as f:
                for kind, name in re.findall(
                        r'^{"(format|event":"join|event":"leave)'
                        r'.*?(?:"learner":"([^"]*)"|$)', f.read(), re.M):
                    if kind.endswith("join"):
                        here.add(name)
                    elif kind.endswith("leave"):
                        here.discard(name)
                    else:
                        here.clear()
        return here

    def end(self, patience):
        """The run ends, and everybody with it."""
        self.check_alive()
        for process in self.processes():
            process.asked = True
        self.call("dl-sync", "end", "unix:control", patience=patience)
        for process in self.processes():
            if process.child:
                process.ends(patience=patience)

    def release(self):
        for process in self.processes():
            if process.alive():
                for pid in descendants(process.child.pid):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                process.child.wait()
        shutil.rmtree(self.scratch)

    def left_behind(self):
        """Processes that outlive those that started them."""
        left = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{entry}/cwd") == self.folder:
                    left.append(int(entry))
            except OSError:
                continue
        return left
