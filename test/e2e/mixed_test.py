"""Plans that mix devices, and executables for a GPU on a machine without one.

The plans run with a twin of the CPU in the GPU's place (test/unit/runtime/TwinGpu.cpp), which has memory of its own: a value
that is not copied where it is needed gives other tokens. A real GPU's turn is scripts/gpu-check.
"""
import os
import shutil
import subprocess
import unittest

import support
from support import BUILD, FAMILIES, KJV, MCC, TestCase, run, scratch

TWIN = os.path.join(BUILD, "lib", "test", "libtwin-gpu.a")
RUNTIME = os.path.join(BUILD, "lib", "mcc", "libmccrt.a")
GPU_RUNTIME = os.path.join(BUILD, "lib", "mcc", "libmccrt-cuda.a")
MODELS = {"kjv": KJV, **{name: os.path.join(FAMILIES, name) for name in sorted(os.listdir(FAMILIES)) if os.path.isdir(os.path.join(FAMILIES, name))}}
needs_cuda = unittest.skipUnless(os.path.exists(GPU_RUNTIME), "this mcc is built without CUDA")

_linked = {}


def with_twin(name):
    """Returns the executable of a model whose GPU is the twin."""
    if name not in _linked:
        out = scratch(name)
        done = run(MCC, MODELS[name], "-o", out, "--placement", "gpu", "--emit", "obj")
        assert done.code == 0, done
        model = os.path.join(out, "model")
        subprocess.run(["cc", "-o", model, os.path.join(out, "model.o"), TWIN, RUNTIME, "-lm", "-lpthread"], check=True)
        _linked[name] = model
    return _linked[name]


class Twin(TestCase):
    def checks(self, name, *options, env=None):
        golden = os.path.join(MODELS[name], "golden.json")
        done = run(with_twin(name), "--check", golden, *options, env={**os.environ, **(env or {})})
        self.assertEqual(done.code, 0, f"\n{done}")
        return done

    def test_every_model_and_plan(self):
        for name in MODELS:
            if not os.path.exists(os.path.join(MODELS[name], "golden.json")):
                continue
            for placement in ("built", "gpu", "cpu", *(f"random:{seed}" for seed in range(1, 7))):
                for chunk in ("1", "1000"):
                    with self.subTest(model=name, placement=placement, chunk=chunk):
                        self.checks(name, "--placement", placement, "--chunk", chunk)

    def test_twenty_seeds(self):
        for seed in range(20):
            with self.subTest(seed=seed):
                self.checks("kjv", "--placement", f"random:{seed}")

    def test_plans_differ(self):
        """Random plans do run on both devices, and in different ways."""
        counts = {self.checks("kjv", "--placement", f"random:{seed}", "--stats").err.split("ran ")[1].split()[0] for seed in range(4)}
        self.assertGreater(len(counts), 1)

    def test_an_error_loses_nothing(self):
        for step in (1, 2, 30, 100):
            with self.subTest(step=step):
                done = self.checks("kjv", env={"TWIN_GPU_FAIL_AT": str(step)})
                self.assertRegex(done.err, r"GPU: ran \d+ ops; last error: twinStep: twinErrorAsAsked \(told to fail\)")


@needs_cuda
class WithoutGpu(TestCase):
    """What the real GPU runtime does without a driver or a device."""

    @classmethod
    def setUpClass(cls):
        out = scratch("gpu")
        done = run(MCC, KJV, "-o", out, "--placement", "gpu")
        assert done.code == 0, done
        cls.model = os.path.join(out, "model")
        cls.golden = os.path.join(KJV, "golden.json")
        # A machine with a GPU is made to hide it.
        cls.env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}

    def test_warns_and_goes_on(self):
        done = run(self.model, "--check", self.golden, env=self.env)
        self.assertEqual(done.code, 0, done)
        self.assertRegex(done.err, "note: the CPU runs everything: .*(driver|GPU|device)")
        self.assertRegex(done.err, "GPU: ran 0 ops; last error: ")

    def test_fails_where_told(self):
        done = run(self.model, "--tokens", "1", "--on-gpu-missing=fail", env=self.env)
        self.diagnosed(done, "error: the GPU cannot be used: ", "--on-gpu-missing=warn")

    def test_says_nothing_where_told(self):
        done = run(self.model, "--tokens", "1,2,3", "-n", "4", "--on-gpu-missing=cpu", env=self.env)
        self.assertEqual((done.code, done.err), (0, ""), done)

    def test_placement_cpu_asks_for_no_gpu(self):
        done = run(self.model, "--tokens", "1,2,3", "-n", "4", "--placement", "cpu", env=self.env)
        self.assertEqual((done.code, done.err), (0, ""), done)


class CpuAlone(TestCase):
    def test_a_model_for_the_cpu_refuses_a_gpu(self):
        model = support.model_of(KJV)
        done = run(model, "--tokens", "1", "--placement", "gpu")
        self.diagnosed(done, "compiled for the CPU alone", "--placement gpu")

    def test_option_values(self):
        model = support.model_of(KJV)
        for options, text in ((("--placement", ""), "takes built, cpu, gpu, auto or a file of rules"),
                              (("--placement", "random:x"), "takes random:SEED with a number, not 'random:x'"),
                              (("--on-gpu-missing", "cry"), "takes fail, warn or cpu, not 'cry'"),
                              (("--numerics", "wrong"), "takes invariant, accurate or fast, not 'wrong'")):
            with self.subTest(options=options):
                done = run(model, "--tokens", "1", *options)
                self.assertIn(done.code, (1, 2), done)
                self.assertIn(text, done.err)


@unittest.skipIf(os.path.exists(GPU_RUNTIME), "this mcc has CUDA")
class WithoutCuda(TestCase):
    def test_placement_gpu_needs_cuda(self):
        out = scratch("none")
        shutil.rmtree(out)
        self.diagnosed(run(MCC, KJV, "-o", out, "--placement", "gpu"), "built without CUDA", "MCC_CUDA=ON")


if __name__ == "__main__":
    support.main()
