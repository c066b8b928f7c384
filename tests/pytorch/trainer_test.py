"""What examples/pytorch/dl_trainer.py does to a model's tensors, order by
order: trainers of small models, and no learner."""
import os
import socket
import sys
import tempfile
import unittest

import torch
from torch import nn

sys.path.insert(0, os.environ["pytorch"])
import dl_trainer

WORDS = {t: name for name, t in dl_trainer.DTYPES.items()}


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.last = nn.Linear(3, 3, bias=False)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(self.first(x).tanh())


class Nested(nn.Linear):
    def __init__(self):
        torch.manual_seed(1)
        super().__init__(4, 4)
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return super().forward(self.inner(x).tanh())


def two_layers():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.link = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.link.close)
        os.environ["DL_TRAINER"] = self.path("trainer")
        os.environ["DL_LAYOUT"] = self.path("layout.tsv")
        self.link.bind(self.path("trainer"))
        self.link.listen(8)

    def path(self, name):
        return os.path.join(self.folder, name)

    def trainer(self, model, rules=None, optimizer=None):
        """In a run whose layout has these tensors, by their rules, or all; one
        fragment."""
        tensors = model.state_dict(keep_vars=True)
        with open(self.path("layout.tsv"), "w") as f:
            f.write("# format\t1\n")
            for name, rule in (rules or dict.fromkeys(tensors, "mean")).items():
                t = tensors[name]
                shape = "x".join(map(str, t.shape)) or "-"
                f.write(f"{name}\t{WORDS[t.dtype]}\t{shape}\t{t.numel()}\t0\t{rule}\n")
        t = dl_trainer.Trainer(model, optimizer or torch.optim.AdamW(
            [p for p in model.parameters() if p.requires_grad], lr=0.1))
        for closed in (t.said, t.heard, t.link):
            self.addCleanup(closed.close)
        return t

    def sent(self, t):
        t.do_send("0", self.path("send"))
        values, meta = dl_trainer.read(self.path("send"))
        self.assertEqual(meta["dl.kind"], "params")
        self.assertTrue(all(v.dtype == torch.float32 for v in values.values()))
        return {name: v.clone() for name, v in values.items()}

    def apply(self, t, values, *how):
        dl_trainer.write(self.path("apply"), values)
        t.do_apply("0", self.path("apply"), *how)

    def step(self, t, model, x):
        t.optimizer.zero_grad()
        loss = model(x).float().square().mean()
        loss.backward()
        t.optimizer.step()
        t.step(len(x), loss.item())

    def same(self, a, b):
        self.assertEqual(sorted(a), sorted(b))
        for name in a:
            self.assertTrue(torch.equal(a[name], b[name]), name)


class Values(Case):
    def test_ways_to_apply(self):
        model = two_layers()
        t = self.trainer(model)
        old = self.sent(t)
        new = {name: torch.randn(v.shape) for name, v in old.items()}
        self.apply(t, new, "add")
        self.same(self.sent(t), {n: new[n] + old[n] for n in new})
        self.apply(t, new, "set")
        self.same(self.sent(t), new)
        self.apply(t, old, "blend", "0.25")
        for name, v in self.sent(t).items():
            self.assertTrue(torch.allclose(v, 0.25 * new[name] + 0.75 * old[name]))
        with self.assertRaises(KeyError):
            self.apply(t, new, "mix")

    def test_what_is_refused_changes_nothing(self):
        t = self.trainer(two_layers())
        old = self.sent(t)
        for bad in ({**old, "0.bias": torch.zeros(4)},
                    {n: v + 1 for n, v in old.items() if n != "2.bias"}):
            with self.assertRaises(ValueError):
                self.apply(t, bad, "set")
            self.same(self.sent(t), old)

    def test_longer_files_than_there_is_room_for(self):
        t = self.trainer(two_layers())
        old = self.sent(t)
        self.apply(t, {**old, "another": torch.zeros(1000)}, "set")
        self.same(self.sent(t), old)

    def test_the_model_is_another(self):
        for model, other in ((nn.Linear(4, 3), nn.Linear(4, 2)),
                             (nn.Linear(4, 3), nn.Linear(4, 3, bias=False))):
            self.trainer(model)
            with self.assertRaises(SystemExit):
                dl_trainer.Trainer(other, None)

    def test_statistics_and_counters(self):
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        t = self.trainer(model)
        for _ in range(5):
            self.step(t, model, torch.randn(8, 4))
        values = self.sent(t)
        self.assertEqual(values["1.num_batches_tracked"], 5)
        self.assertTrue(torch.equal(values["1.running_mean"], model[1].running_mean))
        self.apply(t, {n: v + 1 for n, v in values.items()}, "set")
        self.assertEqual(model[1].num_batches_tracked, 6)
        self.assertEqual(model[1].num_batches_tracked.dtype, torch.int64)


class Halves(Case):
    def test_additions_below_the_rounding_are_kept(self):
        for dtype in (torch.bfloat16, torch.float16):
            model = two_layers().to(dtype)
            t = self.trainer(model)
            start = {n: 1 + 2**-20 * torch.rand(v.shape)
                     for n, v in self.sent(t).items()}
            dl_trainer.write(self.path("model"), start)
            t.do_load(self.path("model"))
            self.same(self.sent(t), start)
            little = {n: torch.full(v.shape, 2**-12) for n, v in start.items()}
            for _ in range(64):
                self.apply(t, little, "add")
            for name, v in self.sent(t).items():
                moved = v - start[name]
                self.assertTrue(torch.allclose(moved, torch.tensor(2**-6), rtol=1e-3))
                self.assertTrue(torch.equal(model.state_dict()[name], v.to(dtype)))

    def test_steps_are_added_to_the_master(self):
        model = two_layers().bfloat16()
        t = self.trainer(model)
        start = {n: v + 2**-14 for n, v in self.sent(t).items()}
        self.apply(t, start, "set")
        before = {n: p.clone() for n, p in model.state_dict().items()}
        x = torch.randn(8, 4).bfloat16()
        self.step(t, model, x)
        # The same step without a run.
        twin = two_layers().bfloat16()
        twin.load_state_dict(before)
        twin(x).float().square().mean().backward()
        torch.optim.AdamW(twin.parameters(), lr=0.1).step()
        after = twin.state_dict()
        sent = self.sent(t)
        for name, v in sent.items():
            moved = after[name].float() - before[name].float()
            self.assertTrue(moved.any())
            self.assertTrue(torch.equal(v, start[name] + moved))
            self.assertTrue(torch.equal(model.state_dict()[name], v.bfloat16()))
        # Once, however often they are sent, or set to what they are.
        self.apply(t, sent, "set")
        self.same(self.sent(t), sent)


class States(Case):
    def walk(self, t, model):
        torch.manual_seed(7)
        dtype = next(model.parameters()).dtype
        for _ in range(4):
            self.step(t, model, torch.randn(8, 4).to(dtype))
        return self.sent(t)

    def test_both_go_on_alike(self):
        for dtype in (torch.float32, torch.bfloat16):
            model, other = two_layers().to(dtype), two_layers().to(dtype)
            t = self.trainer(model)
            self.walk(t, model)
            t.do_export(self.path("state"))
            u = self.trainer(other)
            u.do_import(self.path("state"))
            self.assertEqual((u.clock, u.updates, u.tokens), (4, 4, 32))
            self.same(self.walk(u, other), self.walk(t, model))

    def state_without(self, t, name):
        t.do_save(self.path("state"))
        values, meta = dl_trainer.read(self.path("state"))
        values = {n: v for n, v in values.items() if n != name}
        file = dl_trainer.File([(n, v.dtype, v.shape) for n, v in values.items()], meta)
        for n, v in values.items():
            file.views[n].copy_(v)
        file.write(self.path("state"))

    def test_all_moments_must_be_there(self):
        model = two_layers()
        t = self.trainer(model)
        self.walk(t, model)
        for missing in ("exp_avg.0.bias", "exp_avg_sq.2.weight", "2.bias"):
            self.state_without(t, missing)
            other = two_layers()
            u = self.trainer(other)
            before = self.sent(u)
            with self.assertRaises(ValueError):
                u.do_restore(self.path("state"))
            self.same(self.sent(u), before)
            self.assertEqual((u.clock, len(u.optimizer.state)), (0, 0))
        self.state_without(t, "nothing")
        u.do_restore(self.path("state"))
        self.assertEqual(len(u.optimizer.state), 4)

    def test_no_updates_no_moments(self):
        t = self.trainer(two_layers())
        t.do_clock("30", "fresh")
        t.do_save(self.path("state"))
        u = self.trainer(two_layers())
        u.do_restore(self.path("state"))
        self.assertEqual((u.clock, u.since, u.updates), (30, 30, 0))
        self.assertEqual(len(u.optimizer.state), 0)

    def test_what_optimizers_keep(self):
        for kind, options, moments in (
                (torch.optim.SGD, {}, []),
                (torch.optim.SGD, {"momentum": 0.9}, ["momentum_buffer"]),
                (torch.optim.AdamW, {"amsgrad": True},
                 ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"])):
            model, other = two_layers(), two_layers()
            a = kind(model.parameters(), lr=0.1, **options)
            b = kind(other.parameters(), lr=0.1, **options)
            self.assertEqual(dl_trainer.kinds_of(a), moments)
            t = self.trainer(model, optimizer=a)
            self.walk(t, model)
            t.do_save(self.path("state"))
            u = self.trainer(other, optimizer=b)
            u.do_restore(self.path("state"))
            self.same(self.walk(u, other), self.walk(t, model))

    def test_one_name_that_ends_another(self):
        model, other = Nested(), Nested()
        t = self.trainer(model)
        self.walk(t, model)
        t.do_save(self.path("state"))
        u = self.trainer(other)
        u.do_restore(self.path("state"))
        self.same(self.walk(u, other), self.walk(t, model))


class Parts(Case):
    def test_a_frozen_trunk_stays(self):
        model = two_layers()
        model[0].requires_grad_(False)
        trunk = model[0].weight.clone()
        head = {"2.weight": "rda", "2.bias": "mean"}
        t = self.trainer(model, head)
        self.step(t, model, torch.randn(8, 4))
        self.assertEqual(sorted(self.sent(t)), sorted(head))
        self.apply(t, {n: torch.zeros(v.shape) for n, v in self.sent(t).items()}, "set")
        self.assertTrue(torch.equal(model[0].weight, trunk))
        self.assertFalse(model[2].weight.any())
        # The others have it, so that it is in no state.
        t.do_export(self.path("state"))
        values, _ = dl_trainer.read(self.path("state"))
        self.assertFalse([n for n in values if n.endswith("0.weight")])
        u = self.trainer(model, head)
        u.do_import(self.path("state"))
        self.assertEqual(u.clock, 1)

    def test_what_is_local_is_kept_in_states(self):
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        rules = {n: "mean" for n, _ in model.named_parameters()}
        t = self.trainer(model, rules)
        self.step(t, model, torch.randn(8, 4))
        self.assertEqual(sorted(self.sent(t)), sorted(rules))
        t.do_save(self.path("state"))
        other = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        self.trainer(other, rules).do_restore(self.path("state"))
        self.same(other.state_dict(), model.state_dict())

    def test_tied_weights_are_one(self):
        for one, other in (("first", "last"), ("last", "first")):
            model = Tied()
            rules = {f"{one}.weight": "rda",
                     f"{other}.weight": f"alias={one}.weight"}
            t = self.trainer(model, rules)
            self.assertEqual(list(self.sent(t)), [f"{one}.weight"])
            self.apply(t, {f"{one}.weight": torch.ones(3, 3)}, "set")
            self.assertEqual(model.first.weight.sum(), 9)
            self.assertEqual(model.last.weight.sum(), 9)
            self.step(t, model, torch.randn(8, 3))
            t.do_save(self.path("state"))
            values, _ = dl_trainer.read(self.path("state"))
            self.assertEqual(len(values), 3)
            u = self.trainer(Tied(), rules)
            u.do_restore(self.path("state"))
            self.same(self.sent(u), self.sent(t))

    def test_tied_weights_that_the_layout_has_twice(self):
        with self.assertRaises(SystemExit) as refused:
            self.trainer(Tied())
        self.assertIn("--alias last.weight=first.weight", str(refused.exception))


unittest.main()
