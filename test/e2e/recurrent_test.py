"""Mixers with a state where the packs of the oracle say nothing: Falcon-H1's multipliers, and the places of Mamba 2's norm.

Multipliers are powers of two here, so a model with them and one with them multiplied into its weights are to agree in every
bit of every logit. The packs themselves are checked by all_families_test.py.
"""
import os
import re
import struct

import support
from support import MCC, ORACLE, TestCase, model_of, read_bytes, run

FALCON = os.path.join(ORACLE or "", "families", "falcon-h1")
PROMPT, COUNT = "3,17,99,4,120,63,8", 9
# What each multiplier is, and the rows of which weights take it: of mamba_in those of z, x, B, C and dt.
INNER, STATE, HEADS = 64, 16, 4
PARTS = (INNER, INNER, STATE, STATE, HEADS)
PART_SCALES = (2.0, 0.5, 4.0, 0.25, 8.0)
MULTIPLIERS = {
    "embedding_multiplier": 4.0, "lm_head_multiplier": 0.5, "key_multiplier": 0.25, "attention_in_multiplier": 2.0,
    "attention_out_multiplier": 0.5, "ssm_in_multiplier": 0.5, "ssm_out_multiplier": 2.0, "mlp_multipliers": [0.5, 4.0],
    "ssm_multipliers": list(PART_SCALES),
}


def scaled(tensor, factors):
    """Returns a bf16 matrix with row r multiplied by factors[r], a power of two: exactly."""
    dtype, shape, data = tensor
    assert dtype == "BF16" and len(factors) == shape[0], (dtype, shape)
    words, cols = struct.unpack(f"<{len(data) // 2}H", data), shape[1]
    made = []
    for i, word in enumerate(words):
        (value,) = struct.unpack("<f", struct.pack("<I", word << 16))
        (bits,) = struct.unpack("<I", struct.pack("<f", value * factors[i // cols]))
        assert bits & 0xFFFF == 0
        made.append(bits >> 16)
    return dtype, shape, struct.pack(f"<{len(made)}H", *made)


def set_multipliers(config):
    config.update(MULTIPLIERS)


def fold_multipliers(tensors):
    """Multiplies what set_multipliers says into the weights that it stands before or after."""
    gate, down = MULTIPLIERS["mlp_multipliers"]
    attention_in = MULTIPLIERS["attention_in_multiplier"]
    whole = {"model.embed_tokens": MULTIPLIERS["embedding_multiplier"], "lm_head": MULTIPLIERS["lm_head_multiplier"]}
    for layer in range(2):
        place = f"model.layers.{layer}."
        whole.update({
            place + "self_attn.q_proj": attention_in, place + "self_attn.v_proj": attention_in,
            place + "self_attn.k_proj": attention_in * MULTIPLIERS["key_multiplier"],
            place + "self_attn.o_proj": MULTIPLIERS["attention_out_multiplier"],
            place + "mamba.out_proj": MULTIPLIERS["ssm_out_multiplier"],
            place + "feed_forward.gate_proj": gate, place + "feed_forward.down_proj": down,
        })
        name = place + "mamba.in_proj.weight"
        rows = [scale * MULTIPLIERS["ssm_in_multiplier"] for size, scale in zip(PARTS, PART_SCALES) for _ in range(size)]
        tensors[name] = scaled(tensors[name], rows)
    for name, factor in whole.items():
        tensors[name + ".weight"] = scaled(tensors[name + ".weight"], [factor] * tensors[name + ".weight"][1][0])


class Recurrent(TestCase):
    def generated(self, folder, *options):
        """Returns the ids and the bytes of all logits."""
        path = os.path.join(support.scratch("logits"), "logits.safetensors")
        ids = self.ran(model_of(folder), "--tokens", PROMPT, "-n", COUNT, "--ignore-eos", "--logits", path, *options).ids()
        return ids, read_bytes(path)

    def test_multipliers(self):
        with_them = support.variant(FALCON, set_multipliers)
        folded = support.variant(FALCON, None, fold_multipliers)
        expected = self.generated(folded)
        self.assertEqual(len(expected[0]), COUNT)
        self.assertFalse(expected[1] == self.generated(FALCON)[1], "the multipliers change nothing")
        for options in ([], ["--chunk", "1"], ["--chunk", "3", "--threads", "1"]):
            with self.subTest(options=options):
                ids, logits = self.generated(with_them, *options)
                self.assertEqual(ids, expected[0])
                self.assertTrue(logits == expected[1], "logits differ")

    def built(self, **settings):
        """Returns the step of a Falcon-H1 with made-up weights as the model defines it."""
        folder = support.variant(FALCON, lambda config: config.update(settings))
        return self.ran(MCC, os.path.join(folder, "config.json"), "random:1", "--emit=mcc").out

    def test_norm_before_gate(self):
        text = self.built(mamba_rms_norm=True, mamba_norm_before_gate=True, mamba_n_groups=2)
        self.assertRegex(text, re.compile(r"= mcc\.state_scan[^\n]* groups 2[^\n]*\n[^\n]*mcc\.weight[^\n]*mamba\.norm\.weight[^\n]*\n"
                                          r"[^\n]*mcc\.norm rms[^\n]* groups 2 own_weights[^\n]*\n[^\n]*mcc\.gate silu"))

    def test_norm_after_gate(self):
        text = self.built(mamba_rms_norm=True, mamba_norm_before_gate=False)
        self.assertRegex(text, re.compile(r"= mcc\.state_scan[^\n]*\n[^\n]*mcc\.gate silu[^\n]*\n[^\n]*mcc\.weight[^\n]*mamba\.norm\.weight[^\n]*\n"
                                          r"[^\n]*mcc\.norm rms"))

    def test_limits_of_the_time_step(self):
        self.assertIn("time_min 1.250000e-01 time_max 5.000000e-01", self.built(time_step_limit=[0.125, 0.5]))
        self.assertNotIn("time_max", self.built())


if __name__ == "__main__":
    support.main(needs_oracle=True)
