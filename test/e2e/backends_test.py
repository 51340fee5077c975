"""mcc run, mcc golden record and mcc backends: every back end on the same golden file, and what is said where one cannot."""
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

    def test_record(self):
        """What is recorded is what the reference recorded, and is judged as it was."""
        recorded = os.path.join(scratch("golden"), "recorded.json")
        self.ran(MCC, "golden", "record", KJV, "--tokens", "0,1143,259,1796,1239", "-n", "8", "--sequences", GOLDEN, "-o", recorded)
        found, expected = read_json(recorded)["sequences"], read_json(GOLDEN)["sequences"]
        self.assertEqual([s["expect"] for s in found[1:]], [s["expect"] for s in expected])
        self.assertEqual(found[0]["expect"], expected[0]["expect"][:8])
        for mine, theirs in zip(found[1:], expected):
            self.assertEqual(mine["prompt"], theirs["prompt"])
            for a, b in zip(mine["margin"], theirs["margin"]):
                self.assertAlmostEqual(a, b, delta=1e-3)
        self.judged(KJV, recorded)

    def test_record_refusals(self):
        def refused(*options, code=1, **environment):
            out = os.path.join(scratch("golden"), "no.json")
            done = run(MCC, "golden", "record", KJV, "-o", out, *options, env={**os.environ, **environment})
            self.assertFalse(os.path.exists(out))
            self.assertEqual(done.code, code, done)
            return done
        self.diagnosed(refused("--tokens", "5,99999"), "--tokens: the vocabulary has 2048 ids, 0 to 2047; 99999 is none")
        self.diagnosed(refused("--tokens", "5,x"), "--tokens takes ids separated by commas, not '5,x'")
        self.diagnosed(refused("--tokens", "5", "-n", "500", "--ctx", "20"),
                       "--tokens: a prompt of 1 and 500 new tokens need 500 cache positions; the context is 20")
        self.diagnosed(refused("--tokens", "5", TMPDIR="/no/such"), "cannot make a temporary folder for the model: no such file")
        self.assertIn("no prompts; give --tokens or --sequences", refused(code=2).err)
        done = run(MCC, "golden", "record", KJV, "--tokens", "5", "-n", "2", "-o", "/no/such/golden.json")
        self.diagnosed(done, "^/no/such/golden.json: error: cannot write: no such file")

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
