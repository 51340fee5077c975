#!/usr/bin/env python3
"""Compares a compiled SmolLM2 with llama.cpp's greedy text on the prompts of golden.json.

    examples/02-smollm2/compare.py out/smollm2/compiled/model [--near 0.25]

Every prompt is run twice, as text and as token ids. A sequence is *equal* where all tokens are llama.cpp's.
At the first step that differs it is a *near tie* where llama.cpp's own margin (best logit minus second) is
below --near and our token is the one that llama.cpp had second: the size of what llama.cpp's 8-bit activations
do to a logit. Anything else is *wrong*. Beside it stands the margin of golden-exact.json, whose weights are
dequantised exactly. Exit status 0 unless one is wrong.
"""
import argparse
import json
import os
import subprocess
import sys


def run(model, *arguments):
    result = subprocess.run([model, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if result.returncode != 0:
        sys.exit(f"compare.py: error: {model} exited with {result.returncode}: {result.stderr.decode(errors='replace').strip()}")
    return result.stdout.decode(errors="replace")


def read(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as stream:
        return json.load(stream)["sequences"]


def verdict(sequence, exact, ids, near):
    """Returns (verdict, explanation) for the generated `ids`."""
    for step, (got, expected) in enumerate(zip(ids, sequence["expect"])):
        if got == expected:
            continue
        margin, second = sequence["margin"][step], sequence["runner_up"][step]
        where = f"step {step}: llama.cpp took {expected} by a margin of {margin:.3f} over {second}, we took {got}"
        if exact["expect"][:step + 1] == ids[:step + 1]:
            where += f", as exact weights do by {exact['margin'][step]:.3f}"
        return ("near tie" if got == second and margin < near else "wrong"), where
    if len(ids) < len(sequence["expect"]):
        return "wrong", f"{len(ids)} tokens of {len(sequence['expect'])}"
    return "equal", f"{len(ids)} tokens, smallest margin {min(sequence['margin']):.3f}"


def main():
    parser = argparse.ArgumentParser(description="compare a compiled SmolLM2 with llama.cpp's greedy text")
    parser.add_argument("model", help="the executable")
    parser.add_argument("--near", type=float, default=0.25, help="margin below which a difference is a near tie")
    options = parser.parse_args()
    counts = {"equal": 0, "near tie": 0, "wrong": 0}
    for number, (sequence, exact) in enumerate(zip(read("golden.json"), read("golden-exact.json")), 1):
        count = str(len(sequence["expect"]))
        prompt = ",".join(str(token) for token in sequence["prompt"])
        ids = [int(token) for token in run(options.model, "--tokens", prompt, "-n", count).replace(",", " ").split()]
        answer, why = verdict(sequence, exact, ids, options.near)
        text = run(options.model, sequence["text"], "-n", count)
        if answer == "equal" and sequence["expect_text"].rstrip("\n") not in text:
            answer, why = "wrong", f"tokens equal but text differs: {text!r}"
        counts[answer] += 1
        print(f"{number}. {sequence['text']!r}: {answer} ({why})")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
