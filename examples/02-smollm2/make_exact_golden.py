#!/usr/bin/env python3
"""Records what the weights of the GGUF say when they are dequantised exactly and nothing else is rounded: writes
golden-exact.json, in which `out/model --check` must find no difference.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install numpy
    /tmp/v/bin/python examples/02-smollm2/make_exact_golden.py "$(examples/02-smollm2/fetch.sh)"

A plain forward pass of a llama, token by token, in float64 (products of a matrix with float32 inputs), over the
prompts of golden.json. Where its ids and llama.cpp's part, the margins of both tell how near the tie was.
"""
import json
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "test", "e2e"))
import gguf_reader  # noqa: E402


def q4_1(data):
    block = numpy.dtype([("scale", "<f2"), ("offset", "<f2"), ("quants", "u1", 16)])
    blocks = numpy.frombuffer(data, block)
    quants = numpy.concatenate([blocks["quants"] & 15, blocks["quants"] >> 4], axis=1).astype(numpy.float32)
    return (blocks["scale"].astype(numpy.float32)[:, None] * quants + blocks["offset"].astype(numpy.float32)[:, None]).ravel()


def q8_0(data):
    block = numpy.dtype([("scale", "<f2"), ("quants", "i1", 32)])
    blocks = numpy.frombuffer(data, block)
    return (blocks["scale"].astype(numpy.float32)[:, None] * blocks["quants"].astype(numpy.float32)).ravel()


DEQUANTISE = {0: lambda data: numpy.frombuffer(data, "<f4"), 3: q4_1, 8: q8_0}


class Llama:
    """One sequence through the model; keeps keys and values of the positions so far."""

    def __init__(self, path):
        metadata, tensors = gguf_reader.stored(path)
        self.weights = {name: DEQUANTISE[kind](data).reshape(shape[::-1]) for name, (shape, kind, data) in tensors.items()}
        self.layers = metadata["llama.block_count"]
        self.heads = metadata["llama.attention.head_count"]
        self.kv_heads = metadata["llama.attention.head_count_kv"]
        self.eps = metadata["llama.attention.layer_norm_rms_epsilon"]
        self.dims = metadata["llama.rope.dimension_count"]
        self.theta = metadata["llama.rope.freq_base"]
        self.eos = metadata["tokenizer.ggml.eos_token_id"]
        self.reset()

    def reset(self):
        self.keys = [[] for _ in range(self.layers)]
        self.values = [[] for _ in range(self.layers)]

    def norm(self, x, name):
        return x / numpy.sqrt(numpy.mean(x * x) + self.eps) * self.weights[name]

    def linear(self, x, name):
        return (self.weights[name] @ x.astype(numpy.float32)).astype(numpy.float64)

    def rotate(self, x, position):
        """GGUF orders q and k rows so that neighbours (2i, 2i + 1) turn together."""
        angle = position * self.theta ** (-numpy.arange(0, self.dims, 2) / self.dims)
        even, odd = x[:, 0::2], x[:, 1::2]
        turned = numpy.empty_like(x)
        turned[:, 0::2] = even * numpy.cos(angle) - odd * numpy.sin(angle)
        turned[:, 1::2] = even * numpy.sin(angle) + odd * numpy.cos(angle)
        return turned

    def attention(self, x, layer, position):
        name = f"blk.{layer}.attn_"
        q = self.rotate(self.linear(x, name + "q.weight").reshape(self.heads, -1), position)
        k = self.rotate(self.linear(x, name + "k.weight").reshape(self.kv_heads, -1), position)
        self.keys[layer].append(k)
        self.values[layer].append(self.linear(x, name + "v.weight").reshape(self.kv_heads, -1))
        keys, values = numpy.stack(self.keys[layer], 1), numpy.stack(self.values[layer], 1)  # [kv heads, positions, head dim]
        group = self.heads // self.kv_heads
        out = []
        for head in range(self.heads):
            scores = keys[head // group] @ q[head] / numpy.sqrt(q.shape[1])
            weights = numpy.exp(scores - scores.max())
            out.append(weights / weights.sum() @ values[head // group])
        return self.linear(numpy.concatenate(out), name + "output.weight")

    def feed_forward(self, x, layer):
        name = f"blk.{layer}.ffn_"
        gate = self.linear(x, name + "gate.weight")
        return self.linear(gate / (1 + numpy.exp(-gate)) * self.linear(x, name + "up.weight"), name + "down.weight")

    def step(self, token, position):
        """Returns the logits [vocabulary] after `token`; the head is the embedding."""
        x = self.weights["token_embd.weight"][token].astype(numpy.float64)
        for layer in range(self.layers):
            x = x + self.attention(self.norm(x, f"blk.{layer}.attn_norm.weight"), layer, position)
            x = x + self.feed_forward(self.norm(x, f"blk.{layer}.ffn_norm.weight"), layer)
        return self.linear(self.norm(x, "output_norm.weight"), "token_embd.weight")


def greedy(model, sequence):
    model.reset()
    for position, token in enumerate(sequence["prompt"]):
        logits = model.step(token, position)
    expect, margins = [], []
    for position in range(len(sequence["prompt"]), len(sequence["prompt"]) + len(sequence["expect"])):
        best, second = (int(index) for index in numpy.argsort(-logits, kind="stable")[:2])
        expect.append(best)
        margins.append(round(float(logits[best] - logits[second]), 6))
        logits = model.step(best, position)
    return {"text": sequence["text"], "prompt": sequence["prompt"], "expect": expect, "margin": margins}


def main():
    with open(os.path.join(HERE, "golden.json"), encoding="utf-8") as stream:
        recorded = json.load(stream)
    model = Llama(sys.argv[1])
    golden = {
        "reference": "exactly dequantised weights, float64 activations; made by examples/02-smollm2/make_exact_golden.py",
        "checkpoint": recorded["checkpoint"],
        "sequences": [greedy(model, sequence) for sequence in recorded["sequences"]],
    }
    for number, (exact, llama) in enumerate(zip(golden["sequences"], recorded["sequences"]), 1):
        pairs = enumerate(zip(exact["expect"], llama["expect"]))
        step = next((step for step, (ours, theirs) in pairs if ours != theirs), None)
        print(f"{number}. " + ("equal to llama.cpp" if step is None else
                               f"parts from llama.cpp at step {step}: margin {exact['margin'][step]} here, {llama['margin'][step]} there"))
    with open(os.path.join(HERE, "golden-exact.json"), "w", encoding="utf-8") as stream:
        json.dump(golden, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


if __name__ == "__main__":
    main()
