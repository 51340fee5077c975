"""Placement by cost and by rules in the compiler: --placement auto|FILE, --machine, --gpu-memory, --explain.

Machines are made up, so that the plan is known; what was compiled runs with the twin GPU (see mixed_test.py), which gives
the golden tokens only where every value is copied to where the plan needs it.
"""
import os
import re
import subprocess
import unittest

import support
from support import BUILD, KJV, MCC, TestCase, read_json, run, scratch, write_json

TWIN = os.path.join(BUILD, "lib", "test", "libtwin-gpu.a")
RUNTIME = os.path.join(BUILD, "lib", "mcc", "libmccrt.a")


def curve(base, per_unit):
    return {"samples": [{"size": size, "rawNs": [base + size * per_unit]} for size in (1024, 65536, 4194304, 268435456)]}


def device(launch, per_byte):
    gemm = {"m": [2, 16, 128], "n": [256, 4096], "k": [256, 4096],
            "rawNs": [[100 + n * k * per_byte + m * n * k * per_byte / 16] for m in (2, 16, 128) for n in (256, 4096) for k in (256, 4096)]}
    return {"launchNs": [launch], "syncNs": [launch], "rows": curve(10, per_byte), "attentionKeys": curve(10, per_byte),
            "attentionMacs": curve(10, per_byte), "matrices": [{"format": "f32", "gemv": curve(100, per_byte), "gemm": gemm}]}


def machine(cpu, gpu=None, copy=1.0):
    """Returns a calibration's path; `cpu` and `gpu` are nanoseconds a byte."""
    profile = {"format": "mcc-machine-1", "machine": {"cpu": "Made Up", "threads": 2, "blas": "", "gpu": "", "driver": "", "link": ""},
               "cpu": device(100, cpu)}
    if gpu is not None:
        direction = {memory: curve(1000 * copy, copy / 10) for memory in ("pinned", "pageable")}
        profile["gpu"], profile["link"] = device(100, gpu), {"toGpu": direction, "toCpu": direction}
        profile["machine"]["gpu"] = "Made Up Too"
    path = os.path.join(scratch("machine"), "machine.json")
    write_json(profile, path)
    return path


def rules(text):
    path = os.path.join(scratch("rules"), "rules.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


class Placing(TestCase):
    def place(self, *options):
        """Returns (the run, the devices by op, the manifest) of a compilation to an object."""
        self.out = scratch("out")
        done = run(MCC, KJV, "-o", self.out, "--emit", "obj", *options)
        self.assertEqual(done.code, 0, done)
        manifest = read_json(self.out, "manifest.json")
        return done, [(entry["op"], entry["device"]) for entry in manifest["plan"]], manifest

    def devices(self, *options):
        return {device for _, device in self.place(*options)[1]}

    def check_twin(self):
        """The executable of the last place() gives the golden tokens by its built plan and on each device alone."""
        path = os.path.join(self.out, "model")
        subprocess.run(["cc", "-o", path, os.path.join(self.out, "model.o"), TWIN, RUNTIME, "-lm", "-lpthread"], check=True)
        for plan in ("built", "cpu", "gpu"):
            done = run(path, "--check", os.path.join(KJV, "golden.json"), "--placement", plan, "--stats")
            self.assertEqual(done.code, 0, done)


class Compiler(Placing):
    def test_the_cheaper_device(self):
        self.assertEqual(self.devices("--placement", "auto", "--machine", machine(cpu=0.001, gpu=100.0)), {"cpu"})
        self.check_twin()
        self.assertIn("gpu", self.devices("--placement", "auto", "--machine", machine(cpu=1000.0, gpu=0.0001, copy=0.01)))
        self.check_twin()

    def test_no_gpu(self):
        self.assertEqual(self.devices("--placement", "auto", "--machine", machine(cpu=1000.0)), {"cpu"})

    def test_memory_cap(self):
        fast = machine(cpu=1000.0, gpu=0.0001, copy=0.01)
        whole = self.place("--placement", "auto", "--machine", fast)[2]["predicted"]
        self.assertGreater(whole["gpuBytes"], 0)
        none = self.place("--placement", "auto", "--machine", fast, "--gpu-memory", "1")
        self.assertEqual({device for _, device in none[1]}, {"cpu"})
        self.assertGreater(none[2]["predicted"]["totalNs"], whole["totalNs"])
        self.diagnosed(run(MCC, KJV, "-o", scratch("no"), "--emit", "obj", "--placement", "gpu", "--machine", fast, "--gpu-memory", "1"),
                       "error: --placement gpu: activations and workspaces need", "1 may be used")

    def test_predicted(self):
        predicted = self.place("--placement", "auto", "--machine", machine(cpu=1.0, gpu=0.5), "--expect-prompt", "7", "--expect-new", "9")[2]["predicted"]
        self.assertEqual((predicted["expectPrompt"], predicted["expectNew"], predicted["machine"]["cpu"]), (7, 9, "Made Up"))
        self.assertAlmostEqual(predicted["totalNs"], predicted["opsNs"] + predicted["copiesNs"] + predicted["uploadsNs"], delta=1)
        self.assertLessEqual(predicted["boundNs"], predicted["totalNs"] * (1 + 1e-9))
        more = self.place("--placement", "auto", "--machine", machine(cpu=1.0, gpu=0.5), "--expect-prompt", "7", "--expect-new", "90")[2]["predicted"]
        self.assertGreater(more["totalNs"], predicted["totalNs"])

    def test_auto_measures_this_machine(self):
        done, plan, manifest = self.place("--placement", "auto")
        self.assertRegex(done.err, "note: placed for this machine as measured now; .*--machine FILE")
        self.assertTrue(plan)
        self.assertEqual(manifest["predicted"]["machine"]["threads"] > 0, True, manifest)

    def test_rules(self):
        _, plan, _ = self.place("--placement", rules("# by hand\n*mlp* gpu\n* cpu\n"))
        self.assertEqual({device for op, device in plan if "mlp" not in op}, {"cpu"}, plan)
        self.assertIn("gpu", {device for op, device in plan if "mlp" in op}, plan)
        self.check_twin()

    def test_explain(self):
        done, plan, _ = self.place("--placement", "auto", "--machine", machine(cpu=1.0, gpu=0.5), "--explain")
        for op, _ in plan:
            self.assertIn(op, done.out)
        self.assertRegex(done.out, "(?i)total")
        self.assertRegex(done.out, "(?i)bound")

    def test_diagnostics(self):
        def refused(*options):
            return run(MCC, KJV, "-o", scratch("no"), "--emit", "obj", *options)
        self.diagnosed(refused("--placement", rules("*mlp* cpu\n")), "left to its cost", "--machine FILE")
        self.diagnosed(refused("--placement", "/no/such"), "/no/such", "'cpu', 'gpu', 'auto' or a file of rules")
        bad = rules("* cpu\n* moon\n")
        self.diagnosed(refused("--placement", bad), f"{bad}:2:3: error: ", "moon")
        broken = rules("{\n  \"format\": }")
        self.diagnosed(refused("--placement", "auto", "--machine", broken), f"{broken}:2:")
        self.diagnosed(refused("--placement", "auto", "--machine", "/no/such"), "/no/such: error: ")
        unused = refused("--placement", rules("nothing.here gpu\n* cpu\n"))
        self.assertEqual(unused.code, 0, unused)
        self.assertRegex(unused.err, "note: .*:1: pattern 'nothing.here' matches no op")


class Executable(Placing):
    """The same choices at the executable's start."""

    def start(self, *options, **environment):
        path = os.path.join(self.out, "model")
        return run(path, "--check", os.path.join(KJV, "golden.json"), *options, env={**os.environ, **environment})

    def test_solves_again(self):
        self.place("--placement", "auto", "--machine", machine(cpu=0.001, gpu=100.0))
        self.check_twin()
        done = self.start("--placement", "auto", "--machine", machine(cpu=1000.0, gpu=0.0001, copy=0.01), "--stats")
        self.assertEqual(done.code, 0, done)
        self.assertRegex(done.err, r"note: placement: [1-9]\d* of \d+ launches on the gpu; built with 0, ")
        self.assertRegex(done.err, r"ran [1-9]\d* ")
        same = self.start("--placement", "auto", "--machine", machine(cpu=0.001, gpu=100.0))
        self.assertEqual((same.code, "placement" in same.err), (0, False), same)
        ruled = self.start("--placement", rules("*mlp* gpu\n* cpu\n"), "--stats")
        self.assertEqual(ruled.code, 0, ruled)
        self.assertRegex(ruled.err, r"ran [1-9]\d* ")
        self.diagnosed(self.start("--placement", "moon"), "moon: error: ", "a file of rules")
        bad = rules("* moon\n")
        self.diagnosed(self.start("--placement", bad), f"{bad}:1:3: error: ")

    def test_memory_cap(self):
        """A built plan that takes more than is permitted gives way to the best that fits; one that was asked for is refused."""
        self.place("--placement", "gpu")
        self.check_twin()
        fast = ("--machine", machine(cpu=1000.0, gpu=0.0001, copy=0.01), "--stats")
        small = self.start("--gpu-memory", "1K", *fast)
        self.assertEqual(small.code, 0, small)
        self.assertRegex(small.err, r"note: the built plan takes up to \d+ bytes of GPU memory, --gpu-memory permits 1024: placing by cost")
        self.assertRegex(small.err, r"note: placement: 0 of \d+ launches on the gpu")
        whole = int(re.search(r"takes up to (\d+) bytes", small.err).group(1))
        # Under half of what the weights take beside the rest, both devices work.
        weights = os.path.getsize(os.path.join(self.out, "model.weights"))
        split = self.start("--gpu-memory", str(whole - weights // 2), *fast)
        self.assertEqual(split.code, 0, split)
        placed = re.search(r"note: placement: (\d+) of (\d+) launches on the gpu", split.err)
        self.assertTrue(placed and 0 < int(placed.group(1)) < int(placed.group(2)), split)
        for enough in (str(whole), "1G", "1.5GiB", "1gb", "2T"):
            done = self.start("--gpu-memory", enough, *fast)
            self.assertEqual((done.code, "note: " in done.err), (0, False), done)
        self.diagnosed(self.start("--placement", "gpu", "--gpu-memory", "1K", *fast), "error: --placement gpu: activations and workspaces need", "1024 may be used")
        over = self.start("--placement", "random:1", "--gpu-memory", "1K")
        self.assertIn("note: the CPU runs everything: twinMalloc: twinErrorNoMemory", over.err)
        for size in ("", "G", "8X", "-1", "8Gi", "1e30", "nan", "8GBs"):
            done = self.start("--gpu-memory", size)
            self.assertEqual(done.code, 2, done)
            self.assertIn(f"'--gpu-memory' takes a size, 8G or the like, not '{size}'", done.err)

    def test_profile(self):
        """Every op of a mixed plan has its device, its predicted and its measured time; the tokens stay the same."""
        self.place("--placement", "gpu")
        self.check_twin()
        model = os.path.join(self.out, "model")
        tokens = ("--tokens", "1,2,3,4,5", "-n", "6", "--ignore-eos")
        plain = run(model, *tokens)
        done = run(model, *tokens, "--profile", "--placement", "random:3", "--machine", machine(cpu=1.0, gpu=0.5))
        self.assertEqual((done.code, done.out), (0, plain.out), done)
        rows = [line.split() for line in done.err.splitlines() if re.search(r" (cpu|gpu) ", line)]
        self.assertEqual({row[-7] for row in rows}, {"cpu", "gpu"}, done)
        self.assertGreater(len(rows), 10)
        number = r"\d+\.\d"
        self.assertRegex(done.err, rf"total +{number} +{number} +\S+ +{number} +{number} ")
        for row in rows:
            self.assertRegex(row[-5], number)
            self.assertRegex(row[-2], number)
        # Without a calibration there is nothing to predict with, unless the machine can be measured; a bench has many sequences.
        bench = run(model, "--bench", "--prompt-tokens", "9", "-n", "3", "--profile", "--placement", "cpu")
        self.assertEqual(bench.code, 0, bench)
        self.assertRegex(bench.err, rf"total +{number} +{number} +\S+ +{number} +{number} ")
        failed = run(model, *tokens, "--profile", "--machine", machine(cpu=1.0, gpu=0.5), env={**os.environ, "TWIN_GPU_FAIL_AT": "2"})
        self.assertEqual((failed.code, failed.out), (0, plain.out), failed)
        self.assertIn("note: no profile: the GPU was given up: twinStep: ", failed.err)
        self.assertIn("'--profile' goes with a text, --tokens or --bench", self.start("--profile").err)
        self.diagnosed(run(support.model_of(KJV), *tokens, "--profile"), "error: '--profile': this model was compiled for the CPU alone and has no table of its ops; ")

    def test_measures_this_machine(self):
        """Without --machine the executable measures its CPU with its own kernels, and asks the GPU's side to do the same."""
        self.place("--placement", "gpu")
        self.check_twin()
        fast = self.start("--placement", "auto", "--stats", TWIN_GPU_NS_PER_UNIT="1e-9")
        self.assertEqual(fast.code, 0, fast)
        self.assertRegex(fast.err, r"ran [1-9]\d* ")
        slow = self.start("--placement", "auto", TWIN_GPU_NS_PER_UNIT="1000")
        self.assertEqual(slow.code, 0, slow)
        self.assertRegex(slow.err, "note: placement: 0 of .* built with [1-9]")
        none = self.start("--placement", "auto")
        self.assertEqual(none.code, 0, none)
        self.assertIn("note: the CPU runs everything: twinCalibrate: twinErrorNotMeasured", none.err)
        self.assertNotIn("runs everything", self.start("--placement", "auto", "--on-gpu-missing=cpu").err)
        self.diagnosed(self.start("--placement", "auto", "--on-gpu-missing=fail"), "error: the GPU cannot be used: twinCalibrate: ", "--on-gpu-missing=warn")


if __name__ == "__main__":
    support.main()
