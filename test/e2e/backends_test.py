"""mcc run and mcc backends: every back end on the same golden file, and what is said where one cannot."""
import os

import support
from support import FAMILIES, KJV, MCC, TestCase, read_json, run, scratch, write_json

GOLDEN = os.path.join(KJV, "golden.json")


def listed():
    """Returns {name: the rest of its line} of `mcc backends`."""
    return dict(line.split(None, 1) for line in run(MCC, "backends").out.splitlines())


class Backends(TestCase):
    def judged(self, folder, golden, *options, code=0):
        return self.ran(MCC, "run", folder, "--sequences", golden, "-o", os.path.join(scratch("run"), "out"), *options, code=code)

    def test_list(self):
        self.assertEqual(list(listed()), ["native", "cuda"])
        self.assertRegex(listed()["native"], ": usable$")
        self.assertRegex(listed()["cuda"], r": (usable|not usable: (no CUDA device on this machine \(.+\)|this mcc was built without CUDA))$")

    def test_every_usable_one_passes(self):
        for name, state in listed().items():
            if state.endswith(": usable"):
                for folder in (KJV, os.path.join(FAMILIES, "llama"), os.path.join(FAMILIES, "mamba")):
                    with self.subTest(name, folder=folder):
                        golden = os.path.join(folder, "golden.json")
                        count = len(read_json(golden)["sequences"])
                        done = self.judged(folder, golden, "--backend", name)
                        self.assertIn(f"{count} sequences: {count} pass, 0 tie, 0 wrong; ok", done.out)

    def test_wrong_and_tie(self):
        golden = read_json(GOLDEN)
        golden["sequences"] = golden["sequences"][:2]
        for sequence, margin in zip(golden["sequences"], (0.5, 1e-6)):
            sequence["expect"][3] = (sequence["expect"][3] + 1) % 100
            sequence["margin"][3] = margin
        done = self.judged(KJV, write_json(golden, scratch("golden"), "golden.json"), code=1)
        self.assertRegex(done.out, r"sequences\[0\]: wrong at step 3 of \d+: expected \d+, got \d+; margin 0.5\n")
        self.assertRegex(done.out, r"sequences\[1\]: tie at step 3 of \d+: expected \d+, got \d+; margin 1e-06\n")
        golden["sequences"] = golden["sequences"][1:]
        self.judged(KJV, write_json(golden, scratch("golden"), "golden.json"))

    def test_a_failing_gpu_is_a_refusal(self):
        if not listed()["cuda"].endswith(": usable"):
            self.skipTest("needs a GPU")
        done = run(MCC, "run", KJV, "--backend", "cuda", "--sequences", GOLDEN, "-o", os.path.join(scratch("run"), "out"),
                   env={**os.environ, "MCC_GPU_FAULT": "cudaGraphLaunch:1"})
        self.diagnosed(done, "^cuda: error: the GPU failed; ")

    def test_refusals(self):
        def refused(*options, golden=GOLDEN):
            out = os.path.join(scratch("run"), "out")
            done = run(MCC, "run", KJV, "--sequences", golden, "-o", out, *options)
            self.assertFalse(os.path.exists(out))
            return done
        self.diagnosed(refused("--backend", "abacus"), "unknown back end 'abacus'; known are native, cuda")
        if "not usable" in listed()["cuda"]:
            self.diagnosed(refused("--backend", "cuda"), "^cuda: error: (no CUDA device on this machine|this mcc was built without CUDA)")
        self.diagnosed(refused(golden="/no/such.json"), "/no/such.json: ")
        bad = write_json({"sequences": [{"prompt": [1], "expect": [1 << 20]}]}, scratch("golden"), "bad.json")
        self.diagnosed(refused(golden=bad), f"{bad}:\\d+:\\d+: error: 'expect\\[0\\]' is 1048576; the vocabulary has \\d+ ids")
        self.diagnosed(refused("--ctx", "4"), r"sequence needs \d+ cache positions .*; the program has a context of 4")


if __name__ == "__main__":
    support.main()
