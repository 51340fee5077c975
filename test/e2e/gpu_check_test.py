"""scripts/gpu-check itself, with a bundle of made-up programs in place of a compiler, a model and a GPU.

It must notice a run that fell back to the CPU, and one configuration that fails must not lose the others.
"""
import os
import stat
import sys

import support
from support import ROOT, TestCase, run, scratch

# A compiler whose models are the program `model` beside it; it refuses weights named in REFUSED.
COMPILER = """#!/usr/bin/env python3
import os, shutil, sys
weights = sys.argv[2]
if weights == os.environ.get("REFUSED"):
    sys.exit("mcc: error: refused")
out = sys.argv[sys.argv.index("-o") + 1]
os.makedirs(out, exist_ok=True)
shutil.copy(os.path.join(os.path.dirname(sys.argv[0]), "model"), out)
with open(os.path.join(out, "model.weights"), "wb") as file:
    file.truncate(1000)
"""
# A model that says what a run on the GPU, or on the CPU alone, says; BROKEN chooses what is wrong with it.
MODEL = """#!/usr/bin/env python3
import json, os, sys
broken, arguments = os.environ.get("BROKEN", ""), sys.argv[1:]
fell_back = broken == "no gpu" and "--placement" not in arguments
if fell_back and "--on-gpu-missing=fail" in arguments:
    sys.exit("error: the GPU cannot be used: no driver")
if broken == "lost":
    print("GPU: ran 7 ops; last error: cudaGraphLaunch: cudaErrorUnknown", file=sys.stderr)
elif "--stats" in arguments and broken != "unused":
    print("GPU: ran 7 ops", file=sys.stderr)
if "--bench" in arguments:
    alone = "cpu" in arguments
    slow = alone != (broken == "slow split" and "--gpu-memory" in arguments)
    print(json.dumps({"prefill_ms": 1000.0 if slow or broken == "slow split" else 10.0, "decode_ms": 100.0 if slow else 1.0,
                      "gpu": broken != "silent" and not alone, "upload_s": 1.0, "upload_gb_s": 2.0}))
sys.exit(3 if broken == "fails" else 0)
"""
KERNELS = """#!/usr/bin/env python3
import os, sys
print("[doctest] test cases: 5 | 5 passed")
sys.exit(77 if os.environ.get("BROKEN") == "no gpu" else 0)
"""


def program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


class GpuCheck(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bundle = scratch("bundle")
        program(os.path.join(cls.bundle, "bin", "mcc"), COMPILER)
        program(os.path.join(cls.bundle, "bin", "model"), MODEL)
        program(os.path.join(cls.bundle, "check", "kernels-cuda-test"), KERNELS)

    def check(self, parts, *options, code=0, **environment):
        """Returns (the table as a dictionary, everything printed)."""
        done = run(sys.executable, os.path.join(ROOT, "scripts", "gpu-check"), self.bundle, "--only", parts, *options,
                   env={**os.environ, "PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin", **environment})
        self.assertEqual(done.code, code, done)
        table = done.out.split("| what | result |")[1]
        return dict(line.strip("| ").split(" | ", 1) for line in table.splitlines() if line.startswith("| ")), done.out

    def test_all_is_well(self):
        table, _ = self.check("kernels,split,speed")
        self.assertEqual(table["kernel tests"], "ok: test cases: 5 | 5 passed")
        self.assertEqual(table["8B bf16, decode at 512"], "1.000 ms (1000 tokens/s)")
        self.assertIn("8B bf16, prefill of 2048, fast", table)
        self.assertIn("CPU alone", table["1B bf16, half of its weights' memory"])
        self.assertNotIn("WRONG", str(table))

    def test_a_run_on_the_cpu_is_none_on_the_gpu(self):
        for broken, text in (("no gpu", "no driver"), ("lost", "the GPU was given up"), ("silent", "ran on the CPU"), ("fails", "exit status 3")):
            with self.subTest(broken=broken):
                table, out = self.check("speed", code=1, BROKEN=broken)
                self.assertEqual(table["8B q4_0, decode at 512"], "WRONG", out)
                self.assertIn(text, out)
        table, out = self.check("speed", code=1, BROKEN="unused")
        self.assertEqual(table["1B bf16, start to first token"], "WRONG", out)
        self.assertIn("no op ran on the GPU", out)

    def test_one_failure_loses_nothing_else(self):
        table, out = self.check("speed", code=1, REFUSED="random:1:q8_0")
        self.assertEqual(table["1B q8_0 does not compile"], "WRONG", out)
        self.assertEqual(table["8B q4_0, decode at 512"], "1.000 ms (1000 tokens/s)")
        self.assertIn("2 wrong: 1B q8_0 does not compile, 8B q8_0 does not compile", out)

    def test_split_must_pay(self):
        table, out = self.check("split", code=1, BROKEN="slow split")
        self.assertIn("not faster than the CPU alone", out)
        self.assertEqual(len(table), 1)

    def test_kernels(self):
        table, _ = self.check("kernels", code=1, BROKEN="no gpu")
        self.assertEqual(table["kernel tests"], "WRONG")
        if not os.path.exists("/usr/local/cuda/bin/compute-sanitizer"):
            table, out = self.check("kernels", "--sanitizer", code=1)
            self.assertEqual(table["kernel tests, racecheck"], "WRONG")
            self.assertIn("compute-sanitizer'", out)


if __name__ == "__main__":
    support.main()
