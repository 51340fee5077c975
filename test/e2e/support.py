"""What the end-to-end tests share: running programs, compiling models, editing checkpoints.

Every test module is a program: `MCC_BUILD=build python3 test/e2e/kjv_test.py [-v] [TestCase.test_method]`.
A module ends with `support.main()`, or `support.main(needs_oracle=True)` where its data lies in MCC_ORACLE_DIR:
without that folder the program exits with 77, which ctest counts as skipped.
"""
import atexit
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("MCC_BUILD", os.path.join(ROOT, "build"))
MCC = os.path.join(BUILD, "bin", "mcc")
KJV = os.path.join(ROOT, "examples", "01-kjv")
FAMILIES = os.path.join(ROOT, "test", "data", "families")
ORACLE = os.environ.get("MCC_ORACLE_DIR")
SKIPPED = 77
FINAL_NAMES = ("model", "model.weights", "manifest.json")

_scratch = tempfile.mkdtemp(prefix="mcc-e2e-")
atexit.register(shutil.rmtree, _scratch, ignore_errors=True)
_compiled = {}


class Run:
    """A finished program: `code` is negative where a signal ended it; texts are decoded leniently."""

    def __init__(self, command, code, out, err, seconds):
        self.command, self.code, self.raw_out, self.seconds = command, code, out, seconds
        self.out = out.decode(errors="replace")
        self.err = err.decode(errors="replace")

    def ids(self):
        """Returns the token ids on stdout."""
        return [int(token) for token in re.findall(r"-?\d+", self.out)]

    def __str__(self):
        return f"{' '.join(map(str, self.command))}\nexit {self.code}\nstdout: {self.out[:2000]}\nstderr: {self.err[:2000]}"


def limit_memory(limit):
    """Returns a preexec function that caps the address space, so that a wild allocation fails."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run(*command, timeout=300, **options):
    """Runs `command` to its end; a hang is an error."""
    start = time.monotonic()
    command = [str(part) for part in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          timeout=timeout, check=False, **options)
    return Run(command, done.returncode, done.stdout, done.stderr, time.monotonic() - start)


def scratch(name):
    """Returns a fresh folder that lives until the program ends."""
    return tempfile.mkdtemp(prefix=name + "-", dir=_scratch)


def read_bytes(path):
    with open(path, "rb") as stream:
        return stream.read()


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as stream:
        return json.load(stream)


def write_json(value, *path):
    with open(os.path.join(*path), "w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1)
    return os.path.join(*path)


def read_safetensors(path):
    """Returns {name: (dtype, shape, bytes)} of a safetensors file."""
    data = read_bytes(path)
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
            for name, entry in header.items()}


def write_safetensors(tensors, path):
    """Writes {name: (dtype, shape, bytes)} as a safetensors file."""
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text + body)


def floats(tensor):
    """Returns the elements of an F32 tensor of read_safetensors."""
    dtype, _, data = tensor
    assert dtype == "F32", dtype
    return struct.unpack(f"<{len(data) // 4}f", data)


def compiled(*arguments):
    """Compiles once a program and set of arguments, and returns the output folder."""
    key = tuple(str(argument) for argument in arguments)
    if key not in _compiled:
        out = os.path.join(scratch("out"), "out")
        done = run(MCC, *arguments, "-o", out)
        if done.code != 0:
            raise AssertionError(f"compile failed: {done}")
        _compiled[key] = out
    return _compiled[key]


def model_of(*arguments):
    """Returns the executable that `mcc ARGUMENTS -o DIR` makes."""
    return os.path.join(compiled(*arguments), "model")


def variant(source, edit_config=None, edit_tensors=None):
    """Returns a copy of a model folder with one checkpoint file, its config and tensors edited in place."""
    folder = os.path.join(scratch("variant"), "m")
    shutil.copytree(source, folder)
    os.chmod(folder, 0o755)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)
    if edit_config:
        config = read_json(folder, "config.json")
        edit_config(config)
        write_json(config, folder, "config.json")
    if edit_tensors:
        path = os.path.join(folder, "model.safetensors")
        tensors = read_safetensors(path)
        edit_tensors(tensors)
        write_safetensors(tensors, path)
    return folder


class TestCase(unittest.TestCase):
    """Assertions about programs."""

    maxDiff = None

    def ran(self, *command, code=0, **options):
        """Runs `command` and asserts its exit status."""
        done = run(*command, **options)
        self.assertEqual(done.code, code, f"\n{done}")
        return done

    def diagnosed(self, done, *fragments, code=1):
        """Asserts that a run ended with one line of error that has every fragment (a pattern, any letter case)."""
        self.assertEqual(done.code, code, f"\n{done}")
        lines = [line for line in done.err.splitlines() if line.strip() and not line.startswith("note:")]
        errors = [line for line in lines if "error:" in line]
        self.assertEqual(len(errors), 1, f"one line of error is wanted\n{done}")
        self.assertEqual(len(lines), 1, f"nothing beside the error is wanted\n{done}")
        for fragment in fragments:
            self.assertRegex(errors[0], re.compile(fragment, re.IGNORECASE), f"\n{done}")
        return errors[0]

    def same_folder(self, first, second):
        """Asserts that two output folders hold the same files with the same bytes."""
        self.assertEqual(sorted(os.listdir(first)), sorted(os.listdir(second)))
        for name in os.listdir(first):
            self.assertTrue(read_bytes(os.path.join(first, name)) == read_bytes(os.path.join(second, name)),
                            f"{name} differs between {first} and {second}")


def main(needs_oracle=False):
    if needs_oracle and not ORACLE:
        print("skipped: MCC_ORACLE_DIR is not set")
        sys.exit(SKIPPED)
    unittest.main()
