"""gpt-oss's experts as published, in MXFP4 (`_blocks`, `_scales`), beside the same numbers stored as bf16.

MXFP4 numbers are exact in bf16, so the two weights files must be equal byte for byte.
"""
import os
import random
import struct

import support
from support import MCC, ORACLE, TestCase

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
EXPERTS = ("experts.gate_up_proj", "experts.down_proj")


def bf16(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def mxfp4(name, experts, inputs, outputs, seed):
    """Returns the packed tensors of [experts, inputs, outputs] and the plain one, as the model's parameter lies."""
    draw = random.Random(seed)
    codes = [[[draw.randrange(16) for _ in range(inputs)] for _ in range(outputs)] for _ in range(experts)]
    scales = [[[draw.randrange(118, 124) for _ in range(inputs // 32)] for _ in range(outputs)] for _ in range(experts)]
    blocks = bytes(row[i] | row[i + 1] << 4 for expert in codes for row in expert for i in range(0, inputs, 2))
    plain = []
    for expert in range(experts):
        for i in range(inputs):
            for o in range(outputs):
                code = codes[expert][o][i]
                value = E2M1[code & 7] * 2.0 ** (scales[expert][o][i // 32] - 127)
                plain.append(bf16(-value if code & 8 else value))
    packed = {name + "_blocks": ("U8", [experts, outputs, inputs // 32, 16], blocks),
              name + "_scales": ("U8", [experts, outputs, inputs // 32],
                                 bytes(scale for expert in scales for row in expert for scale in row))}
    return packed, ("BF16", [experts, inputs, outputs], struct.pack(f"<{len(plain)}H", *plain))


def folders():
    source = os.path.join(ORACLE, "families", "gpt-oss")
    packed, plain = {}, {}
    tensors = support.read_safetensors(os.path.join(source, "model.safetensors"))
    for seed, (name, tensor) in enumerate(sorted(tensors.items())):
        if not name.endswith(EXPERTS):
            packed[name] = plain[name] = tensor
            continue
        made, plain[name] = mxfp4(name, *tensor[1], seed)
        packed.update(made)

    def replace(by):
        def edit(tensors):
            tensors.clear()
            tensors.update(by)
        return edit

    config = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
    return (support.variant(source, lambda keys: keys.update(quantization_config=config), replace(packed)),
            support.variant(source, None, replace(plain)))


class Experts(TestCase):
    def test_equal_to_bf16(self):
        outs = [support.compiled(folder) for folder in folders()]
        weights = [support.read_bytes(os.path.join(out, "model.weights")) for out in outs]
        self.assertTrue(weights[0] == weights[1])
        runs = [self.ran(os.path.join(out, "model"), "--tokens", "1,2,3,4,5", "-n", "12") for out in outs]
        self.assertEqual(runs[0].ids(), runs[1].ids())

    def test_scales_missing(self):
        name = "model.layers.2.mlp.experts.down_proj"
        folder = support.variant(folders()[0], None, lambda tensors: tensors.pop(name + "_scales"))
        self.diagnosed(self.ran(MCC, folder, "-o", "/nowhere/out", code=1),
                       f"'{name}_scales': error: is missing; '{name}_blocks' cannot be read without it")


if __name__ == "__main__":
    support.main(needs_oracle=True)
