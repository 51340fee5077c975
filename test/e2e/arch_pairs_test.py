"""The same weights as a Hugging Face folder and as a GGUF give the same, right ids: what each writer permutes, transposes, joins
or adds is undone by each reader. The recorded ids are those of double precision, up to the first near tie.
"""
import os

import support
from support import MCC, ORACLE, TestCase, model_of, read_json, run

PAIRS = os.path.join(ORACLE or "", "arch-pairs")
# Steps with a smaller margin may come out either way.
NEAR_TIE = 0.01
# What the builder cannot build yet, by the field it names: such a pair must be imported all the same.
REFUSED = {}


def certain(case):
    """Returns the recorded ids up to the first near tie."""
    steps = next((step for step, margin in enumerate(case["margins"]) if margin < NEAR_TIE), len(case["f64"]))
    return case["f64"][:steps]


class ArchPairs(TestCase):
    def check(self, source, cases):
        self.assertGreaterEqual(sum(len(certain(case)) for case in cases), 100)
        for case in cases:
            tokens = ",".join(str(token) for token in case["input_ids"])
            ids = self.ran(model_of(source), "--tokens", tokens, "-n", case["n"]).ids()
            wanted = certain(case)
            self.assertEqual(ids[:len(wanted)], wanted, f"{source}: {tokens}")

    def test_both_forms(self):
        pairs = sorted(os.listdir(PAIRS))
        self.assertEqual(len(pairs), 10)
        ggufs = 0
        for pair in pairs:
            folder = os.path.join(PAIRS, pair)
            cases = read_json(folder, "expected.json")["cases"]
            forms = [name for name in ("model.safetensors", "model.gguf") if os.path.exists(os.path.join(folder, name))]
            ggufs += "model.gguf" in forms
            for form in forms:
                with self.subTest(pair=pair, form=form):
                    if pair in REFUSED:
                        done = run(MCC, os.path.join(folder, form), "-o", support.scratch("refused"))
                        self.diagnosed(done, f"'{REFUSED[pair]}'".replace("[", "\\[").replace("]", "\\]"))
                        continue
                    self.check(os.path.join(folder, form), cases)
        self.assertEqual(ggufs, 9)


if __name__ == "__main__":
    support.main(needs_oracle=True)
