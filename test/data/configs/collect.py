#!/usr/bin/env python3
"""Collects, from folders with a config.json and safetensors, what the import tests need of each model without its weights:
NAME.json = {"config": the config, "tensors": {name: shape}}.

usage: collect.py FOLDER... (writes beside this script)
"""
import json
import pathlib
import struct
import sys


def shapes(path):
    with open(path, "rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


def main():
    for folder in map(pathlib.Path, sys.argv[1:]):
        tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            tensors.update(shapes(path))
        config = json.loads((folder / "config.json").read_text())
        lines = ",\n  ".join(f"{json.dumps(name)}: {json.dumps(shape)}" for name, shape in sorted(tensors.items()))
        target = pathlib.Path(__file__).parent / f"{folder.name}.json"
        target.write_text(f'{{"config": {json.dumps(config, indent=2, sort_keys=True)},\n"tensors": {{\n  {lines}\n}}}}\n')


if __name__ == "__main__":
    main()
