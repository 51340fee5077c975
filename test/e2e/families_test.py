"""Tiny random models of each family, against the ids and logits of transformers in float32.

`--check` is the judge that users have; here its verdict is confirmed from outside: the ids are compared wherever
the recorded margin is 1e-3 or more, on every chunking and thread count.
"""
import os

import support
from support import FAMILIES, TestCase, model_of, read_json, run

# Looked at from all sides; the others, which cover every code path (scripts/pick-packs), in one run and token by token.
NAMES = ("llama", "llama3-scaled-tied", "llama-biases", "llama-linear-rope", "llama-yarn", "mistral-window", "qwen2", "qwen3")
MARGIN = 1e-3


def older_spelling(config):
    """Rewrites a config of transformers 5 as transformers 4 would have written it."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope.get("rope_type") == "default" else rope
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.48.0"


class Families(TestCase):
    def checked(self, name, *options):
        folder = os.path.join(FAMILIES, name)
        self.ran(model_of(folder), "--check", os.path.join(folder, "golden.json"), *options)

    def tokens_agree(self, name):
        folder = os.path.join(FAMILIES, name)
        for sequence in read_json(folder, "golden.json")["sequences"]:
            prompt = ",".join(map(str, sequence["prompt"]))
            ids = self.ran(model_of(folder), "--tokens", prompt, "-n", len(sequence["expect"])).ids()
            for step, (got, expected) in enumerate(zip(ids, sequence["expect"])):
                if got != expected:
                    self.assertLess(sequence["margin"][step], MARGIN, f"{name}: step {step}: {got} instead of {expected}")
                    break
            else:
                self.assertEqual(len(ids), len(sequence["expect"]))

    def older(self, name):
        folder = support.variant(os.path.join(FAMILIES, name), older_spelling)
        self.same_folder(support.compiled(os.path.join(FAMILIES, name)), support.compiled(folder))


def add(name):
    method = name.replace("-", "_")

    def check(self):
        for options in ([], ["--chunk", "1"], ["--threads", "1"], ["--threads", "2"], ["--threads", "2", "--chunk", "1"]):
            with self.subTest(options=options):
                self.checked(name, *options)

    setattr(Families, f"test_{method}", check)
    setattr(Families, f"test_{method}_tokens", lambda self: self.tokens_agree(name))
    setattr(Families, f"test_{method}_older_spelling", lambda self: self.older(name))


def add_other(name):
    def check(self):
        for options in ([], ["--chunk", "1"]):
            with self.subTest(options=options):
                self.checked(name, *options)

    setattr(Families, f"test_{name.replace('-', '_')}", check)


for family in NAMES:
    add(family)
for family in sorted(os.listdir(FAMILIES)):
    if family not in NAMES and os.path.isdir(os.path.join(FAMILIES, family)):
        add_other(family)


class Judge(TestCase):
    """Packs are told apart: one's golden file fails on another's weights."""

    def test_other_weights(self):
        golden = os.path.join(FAMILIES, "llama-linear-rope", "golden.json")
        done = run(model_of(os.path.join(FAMILIES, "llama-yarn")), "--check", golden)
        self.assertEqual(done.code, 1, f"\n{done}")


if __name__ == "__main__":
    support.main()
