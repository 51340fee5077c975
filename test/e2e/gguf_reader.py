"""A plain reader of GGUF files with exact dequantisation, to judge mcc's own: written for clarity, not speed.

Block formats as ggml defines them: 32 weights share a float16 scale `d` (and a float16 offset `m`), quants are
packed low nibbles first; q5 keeps every fifth bit in a 32-bit mask.
"""
import math
import struct

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0]

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            element = self.take("I")
            return [self.value(element) for _ in range(self.take("Q"))]
        return self.take(SCALARS[kind])


def f32(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def f16(data):
    return list(struct.unpack(f"<{len(data) // 2}e", data))


def rounded(value):
    """Rounds to float32, as the format's arithmetic is in float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def nibbles(data):
    return [byte & 15 for byte in data] + [byte >> 4 for byte in data]


def blocks(data, size):
    return (data[at:at + size] for at in range(0, len(data), size))


def q8_0(data):
    values = []
    for block in blocks(data, 34):
        (scale,) = f16(block[:2])
        values += [rounded(scale * quant) for quant in struct.unpack("<32b", block[2:])]
    return values


def q4_0(data):
    values = []
    for block in blocks(data, 18):
        (scale,) = f16(block[:2])
        values += [rounded(scale * (quant - 8)) for quant in nibbles(block[2:])]
    return values


def q4_1(data):
    values = []
    for block in blocks(data, 20):
        scale, offset = f16(block[:4])
        values += [rounded(rounded(scale * quant) + offset) for quant in nibbles(block[4:])]
    return values


def fifth_bits(block):
    (mask,) = struct.unpack("<I", block)
    return [(mask >> index & 1) << 4 for index in range(32)]


def q5_0(data):
    values = []
    for block in blocks(data, 22):
        (scale,) = f16(block[:2])
        quants = [low | high for low, high in zip(nibbles(block[6:]), fifth_bits(block[2:6]))]
        values += [rounded(scale * (quant - 16)) for quant in quants]
    return values


def q5_1(data):
    values = []
    for block in blocks(data, 24):
        scale, offset = f16(block[:4])
        quants = [low | high for low, high in zip(nibbles(block[8:]), fifth_bits(block[4:8]))]
        values += [rounded(rounded(scale * quant) + offset) for quant in quants]
    return values


# ggml type -> (weights in a block, bytes of a block, dequantise)
TYPES = {0: (1, 4, f32), 1: (1, 2, f16), 2: (32, 18, q4_0), 3: (32, 20, q4_1), 6: (32, 22, q5_0), 7: (32, 24, q5_1),
         8: (32, 34, q8_0)}


def stored(path):
    """Returns (metadata, {name: (shape innermost first, ggml type, bytes)}) of a GGUF file."""
    with open(path, "rb") as stream:
        cursor = Cursor(stream.read())
    assert cursor.take("I") == 0x46554747 and cursor.take("I") in (2, 3), path
    tensor_count, pair_count = cursor.take("Q"), cursor.take("Q")
    metadata = {}
    for _ in range(pair_count):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.take("I"))
    entries = []
    for _ in range(tensor_count):
        name = cursor.text()
        shape = [cursor.take("Q") for _ in range(cursor.take("I"))]
        entries.append((name, shape, cursor.take("I"), cursor.take("Q")))
    alignment = metadata.get("general.alignment", 32)
    start = -(-cursor.at // alignment) * alignment
    tensors = {}
    for name, shape, kind, offset in entries:
        per_block, size, _ = TYPES[kind]
        length = math.prod(shape) // per_block * size
        tensors[name] = (shape, kind, cursor.data[start + offset:start + offset + length])
    return metadata, tensors


def read(path):
    """Returns (metadata, {name: (shape innermost first, values)}) of a GGUF file."""
    metadata, tensors = stored(path)
    return metadata, {name: (shape, TYPES[kind][2](data)) for name, (shape, kind, data) in tensors.items()}


NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def rows_of_hugging_face(values, columns, heads):
    """Undoes GGUF's order of q and k rows: pairs (2i, 2i+1) of a head become (i, i + half)."""
    rows = [values[at:at + columns] for at in range(0, len(values), columns)]
    size = len(rows) // heads
    ordered = []
    for head in range(heads):
        block = rows[head * size:(head + 1) * size]
        ordered += block[0::2] + block[1::2]
    return [value for row in ordered for value in row]


def hugging_face_tensors(path):
    """Returns {Hugging Face name: values} of a llama GGUF."""
    metadata, tensors = read(path)
    heads = {"attn_q": metadata["llama.attention.head_count"], "attn_k": metadata["llama.attention.head_count_kv"]}
    result = {"model.embed_tokens.weight": tensors["token_embd.weight"][1], "model.norm.weight": tensors["output_norm.weight"][1]}
    if "output.weight" in tensors:
        result["lm_head.weight"] = tensors["output.weight"][1]
    for name, (shape, values) in tensors.items():
        if name.startswith("blk."):
            _, layer, role, _ = name.split(".")
            if role in heads:
                values = rows_of_hugging_face(values, shape[0], heads[role])
            result[f"model.layers.{layer}.{NAMES[role]}.weight"] = values
    return result
