"""Published quantised checkpoints: GPTQ, AWQ and FP8 forms of a tiny llama, packed here from the formats' definitions.

Each is compiled beside the same numbers stored as plain f32, dequantised here in double and rounded once: the two weights
files must be equal byte for byte, and so the tokens and logits.
"""
import os
import random
import struct

import support
from support import FAMILIES, MCC, TestCase

SOURCE = os.path.join(FAMILIES, "llama-linear-rope")
GROUP = 16
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def pack(dtype, shape, values):
    code = {"F32": "f", "F16": "e", "I32": "I", "F8_E4M3": "B"}[dtype]
    return dtype, list(shape), struct.pack(f"<{len(values)}{code}", *values)


def words(fields, bits):
    """Returns 32-bit words of fields that follow each other from the low bits up."""
    per = 32 // bits
    return [sum(field << bits * i for i, field in enumerate(fields[at:at + per])) for at in range(0, len(fields), per)]


def parameters(rows, cols, bits, seed):
    """Returns quants [rows][cols], and zeros and f16 scales [groups][rows]."""
    draw = random.Random(seed)
    quants = [[draw.randrange(1 << bits) for _ in range(cols)] for _ in range(rows)]
    zeros = [[draw.randrange(1 << bits) for _ in range(rows)] for _ in range(cols // GROUP)]
    scales = [[struct.unpack("<e", struct.pack("<e", draw.uniform(0.5, 1.5) / (1 << bits)))[0] for _ in range(rows)]
              for _ in range(cols // GROUP)]
    return quants, zeros, scales


def gptq(base, rows, cols, seed, bits=4, less_one=True, ordered=False):
    """Returns the packed tensors and the plain weight."""
    quants, zeros, scales = parameters(rows, cols, bits, seed)
    group = [col // GROUP for col in range(cols)]
    if ordered:
        random.Random(seed).shuffle(group)
    per, mask = 32 // bits, (1 << bits) - 1
    qweight = []
    for first in range(0, cols, per):
        qweight += [words(quants[row][first:first + per], bits)[0] for row in range(rows)]
    qzeros = [word for line in zeros for word in words([(zero - less_one) & mask for zero in line], bits)]
    groups = cols // GROUP
    tensors = {base + ".qweight": pack("I32", [cols // per, rows], qweight),
               base + ".qzeros": pack("I32", [groups, rows // per], qzeros),
               base + ".scales": pack("F16", [groups, rows], sum(scales, []))}
    if ordered:
        tensors[base + ".g_idx"] = pack("I32", [cols], group)
    plain = [f32(scales[group[col]][row] * (quants[row][col] - zeros[group[col]][row]))
             for row in range(rows) for col in range(cols)]
    return tensors, plain


def awq(base, rows, cols, seed):
    quants, zeros, scales = parameters(rows, cols, 4, seed)

    def words_of(line):
        return [sum(line[first + row] << 4 * i for i, row in enumerate(AWQ_ORDER)) for first in range(0, rows, 8)]

    qweight = [word for col in range(cols) for word in words_of([quants[row][col] for row in range(rows)])]
    groups = cols // GROUP
    tensors = {base + ".qweight": pack("I32", [cols, rows // 8], qweight),
               base + ".qzeros": pack("I32", [groups, rows // 8], [word for line in zeros for word in words_of(line)]),
               base + ".scales": pack("F16", [groups, rows], sum(scales, []))}
    plain = [f32((quants[row][col] - zeros[col // GROUP][row]) * scales[col // GROUP][row])
             for row in range(rows) for col in range(cols)]
    return tensors, plain


def e4m3(bits):
    exponent, mantissa = bits >> 3 & 15, bits & 7
    value = mantissa * 2.0 ** -9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -value if bits & 0x80 else value


def fp8(base, rows, cols, seed, block=None, name="weight_scale_inv", by_row=False):
    """`block` is rows and columns that share a scale; without it one scale, or `by_row` one for every row."""
    draw = random.Random(seed)
    # Exponents up to 7: no NaN, and values of the size of weights.
    bits = [draw.randrange(64) | draw.choice((0, 0x80)) for _ in range(rows * cols)]
    high, wide = block or (1 if by_row else rows, cols)
    shape = [-(-rows // high), -(-cols // wide)]
    scales = [f32(draw.uniform(0.1, 0.3)) for _ in range(shape[0] * shape[1])]
    plain = [f32(e4m3(bits[row * cols + col]) * scales[row // high * shape[1] + col // wide])
             for row in range(rows) for col in range(cols)]
    return {base + ".weight": pack("F8_E4M3", [rows, cols], bits),
            base + "." + name: pack("F32", shape if block or by_row else [], scales),
            base + ".input_scale": pack("F32", [], [1.0])}, plain


def folders(config, packer):
    """Returns a model folder packed by `packer`, and one with the same numbers as f32."""
    packed, plain = {}, {}

    def split(tensors):
        for seed, (name, (_, shape, _)) in enumerate(sorted(tensors.items())):
            if not name.endswith("_proj.weight"):
                packed[name] = plain[name] = tensors[name]
                continue
            made, values = packer(name[:-len(".weight")], shape[0], shape[1], seed)
            packed.update(made)
            plain[name] = pack("F32", shape, values)

    def replace(by):
        def edit(tensors):
            tensors.clear()
            tensors.update(by)
        return edit

    split(support.read_safetensors(os.path.join(SOURCE, "model.safetensors")))
    quantized = support.variant(SOURCE, lambda keys: keys.update(quantization_config=config), replace(packed))
    return quantized, support.variant(SOURCE, None, replace(plain))


class Equality(TestCase):
    def check(self, config, packer, native=False):
        """`native`: weights stay in their own format, whose values are the same bit for bit."""
        quantized, plain = folders(config, packer)
        outputs = [support.compiled(quantized), support.compiled(plain)]
        weights = [support.read_bytes(os.path.join(out, "model.weights")) for out in outputs]
        if native:
            self.assertLess(len(weights[0]), len(weights[1]))
        else:
            self.assertTrue(weights[0] == weights[1])
        logits = [os.path.join(support.scratch("logits"), f"{i}.safetensors") for i in range(2)]
        runs = [self.ran(os.path.join(out, "model"), "--tokens", "1,2,3,4,5", "-n", "12", "--ignore-eos", "--logits", file)
                for out, file in zip(outputs, logits)]
        self.assertEqual(len(runs[0].ids()), 12)
        self.assertEqual(runs[0].ids(), runs[1].ids())
        self.assertTrue(support.read_bytes(logits[0]) == support.read_bytes(logits[1]))

    def test_gptq(self):
        self.check({"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False}, gptq)

    def test_gptq_in_the_order_of_activations(self):
        self.check({"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": True},
                   lambda *a: gptq(*a, ordered=True))

    def test_gptq_second_version_of_8_bits(self):
        self.check({"quant_method": "gptq", "bits": 8, "group_size": GROUP, "checkpoint_format": "gptq_v2"},
                   lambda *a: gptq(*a, bits=8, less_one=False))

    def test_awq(self):
        self.check({"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}, awq)

    def test_fp8_blocks_that_do_not_divide(self):
        self.check({"quant_method": "fp8", "weight_block_size": [24, 40]}, lambda *a: fp8(*a, block=(24, 40)))

    def test_fp8_one_scale(self):
        self.check({"quant_method": "fp8"}, fp8, native=True)

    def test_fp8_blocks(self):
        self.check({"quant_method": "fp8", "weight_block_size": [16, 32]}, lambda *a: fp8(*a, block=(16, 32)), native=True)

    def test_fp8_a_scale_for_every_row(self):
        self.check({"quant_method": "fbgemm_fp8"}, lambda *a: fp8(*a, name="weight_scale", by_row=True), native=True)


class Errors(TestCase):
    NAME = "model.layers.0.self_attn.q_proj"

    def refused(self, edit, *fragments, config=None, packer=gptq):
        quantized, _ = folders(config or {"quant_method": "gptq", "bits": 4, "group_size": GROUP}, packer)
        folder = support.variant(quantized, None, edit)
        done = self.ran(MCC, folder, "-o", os.path.join(support.scratch("out"), "out"), code=1)
        self.diagnosed(done, "model.safetensors: tensor ", *fragments)

    def test_scales_missing(self):
        self.refused(lambda tensors: tensors.pop(self.NAME + ".scales"),
                     f"'{self.NAME}.scales': error: is missing; '{self.NAME}.qweight' cannot be read without it")

    def test_zeros_missing(self):
        self.refused(lambda tensors: tensors.pop(self.NAME + ".qzeros"), "qzeros': error: is missing")

    def test_order_missing(self):
        self.refused(lambda tensors: None, "g_idx': error: is missing",
                     config={"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": True})

    def test_order_out_of_range(self):
        def edit(tensors):
            cols = len(tensors[self.NAME + ".qweight"][2]) // 4 * 8 // tensors[self.NAME + ".qweight"][1][1]
            tensors[self.NAME + ".g_idx"] = pack("I32", [cols], [0] * (cols - 1) + [cols])
        self.refused(edit, r"puts input \d+ into group \d+; there are \d+ groups")

    def test_groups_that_do_not_divide(self):
        self.refused(lambda tensors: None, r"is packed in groups of 48 inputs, which do not divide its \d+ inputs",
                     config={"quant_method": "gptq", "bits": 4, "group_size": 48})

    def test_shape(self):
        self.refused(lambda tensors: None, r"has shape \[\d+, \d+\]; this quantisation of the weight takes \[\d+, \d+\]",
                     config={"quant_method": "gptq", "bits": 8, "group_size": GROUP})

    def test_type(self):
        def edit(tensors):
            dtype, shape, data = tensors[self.NAME + ".qweight"]
            tensors[self.NAME + ".qweight"] = ("U32", shape, data)
        self.refused(edit, "has type U32; this quantisation stores it as I32")

    def test_fp8_scale_missing(self):
        self.refused(lambda tensors: tensors.pop(self.NAME + ".weight_scale_inv"), "weight_scale_inv': error: is missing",
                     config={"quant_method": "fp8"}, packer=fp8)

    def test_awq_of_8_bits(self):
        self.refused(lambda tensors: None, "is said to have 8 bits; awq is read with 4",
                     config={"quant_method": "awq", "bits": 8, "group_size": GROUP}, packer=awq)

    def test_words_that_do_not_divide(self):
        """A weight of 60 outputs has no whole number of 32-bit words of 8."""
        def edit(keys):
            keys.update(intermediate_size=keys["intermediate_size"] - 4)
        quantized, _ = folders({"quant_method": "gptq", "bits": 4, "group_size": GROUP}, gptq)
        done = self.ran(MCC, support.variant(quantized, edit), "-o", "/nowhere/out", code=1)
        self.diagnosed(done, r"stands for a weight of shape \[\d+, \d+\], which 32-bit words of 8 do not divide")


if __name__ == "__main__":
    support.main()
