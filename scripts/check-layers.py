#!/usr/bin/env python3
"""Checks the layering of compiler/README.md by a scan of #include lines.

    scripts/check-layers.py [ROOT]       prints each violation as file:line and exits 1 where there is one
    scripts/check-layers.py --self-test  plants violations in a scratch tree and checks that each is found

A file belongs to the first layer of LAYERS whose pattern its path matches. It may include the standard
library, files of its own folder, and what its layer lists. Files under test/ may include anything.
"""
import os
import re
import sys
import tempfile

SOURCES = (".h", ".hpp", ".c", ".cpp", ".cc", ".cu", ".cuh", ".inc", ".def", ".td")
INCLUDE = re.compile(r'^\s*#?\s*include\s*(?:"([^"]+)"|<([^>]+)>)')

# Which other dialects' IR a dialect may name. A DAG: Exec shares the weight types and devices of Mcc, which must never
# look down at what it is lowered to.
DIALECT_DAG = {"Mcc": [], "Exec": ["Mcc"]}

MLIR = ["mlir/", "llvm/", "llvm-c/", "mlir-c/"]
LIBRARIES = ["nlohmann/", "xxhash.h", "pcre2.h", "utf8proc.h", "CLI/"]
LLD = ["lld/"]
CUDA = ["cuda", "cooperative_groups", "mma.h"]

# (layer, pattern of its files, prefixes it may include). `{X}` in a prefix is the pattern's first group.
LAYERS = [
    ("CUDA kernels", r"kernels/cuda/", ["kernels/", *CUDA]),
    ("kernels", r"kernels/", ["kernels/"]),
    ("GPU runtime", r"runtime-lib/cuda/", ["kernels/", "runtime-lib/", "mcc/", *LIBRARIES, *CUDA]),
    ("runtime-lib", r"runtime-lib/", ["kernels/", "runtime-lib/", "mcc/", *LIBRARIES]),
    ("compiler/Support", r"compiler/Support/", ["compiler/Support/", *MLIR]),
    ("conversion", r"dialects/Conversion/(\w+)To(\w+)/",
     ["kernels/", "compiler/Support/", "dialects/{0}/IR/", "dialects/{1}/IR/", "dialects/Conversion/{0}To{1}/", *MLIR]),
    ("dialect IR", r"dialects/(\w+)/IR/", ["kernels/", "compiler/Support/", "dialects/{0}/IR/", "{dag}", *MLIR]),
    ("dialect", r"dialects/(\w+)/", ["kernels/", "compiler/Support/", "dialects/{0}/", "{dag}", *MLIR]),
    # The C ABI that the generated object implements (mcc/*.h) is codegen's output format.
    ("codegen", r"codegen/", ["kernels/", "compiler/Support/", "dialects/*/IR/", "codegen/", "mcc/", *MLIR, *LLD]),
    ("compiler", r"compiler/", ["compiler/", "codegen/", "dialects/", "kernels/", "runtime-lib/", "mcc/", *LIBRARIES, *MLIR]),
]
# Anything that starts so is ours or third-party and has to be allowed by name; the rest is the system's.
OURS = ["kernels/", "runtime-lib/", "compiler/", "dialects/", "codegen/", "test/", "mcc/"]
NAMED = [*OURS, *MLIR, *LIBRARIES, *LLD, "clang/", *CUDA, "doctest/", "cblas.h"]
SYSTEM_FOLDERS = ["sys/", "linux/", "asm/", "bits/", "arpa/", "netinet/"]


def layer_of(path):
    """Returns (name, allowed prefixes) of the layer that `path` belongs to, or None."""
    for name, pattern, prefixes in LAYERS:
        match = re.match(pattern, path)
        if not match:
            continue
        allowed = []
        for prefix in prefixes:
            if prefix == "{dag}":
                allowed += [f"dialects/{other}/IR/" for other in DIALECT_DAG.get(match.group(1), [])]
            else:
                allowed.append(prefix.format(*match.groups()))
        return name, allowed
    return None


def resolve(root, path, included):
    """Returns `included` as seen from the repository root: includes relative to the file are made absolute."""
    if included.startswith("runtime-lib/include/"):
        return included[len("runtime-lib/include/"):]
    if any(included.startswith(prefix) for prefix in NAMED):
        return included
    beside = os.path.normpath(os.path.join(os.path.dirname(path), included))
    if os.path.exists(os.path.join(root, beside)):
        return beside
    if "/" not in included and included.endswith(".inc"):  # generated beside its source
        return beside
    return included


def allows(prefixes, target):
    for prefix in prefixes:
        pattern = re.escape(prefix).replace(r"\*", r"\w+")
        if re.match(pattern, target):
            return True
    return False


def is_system(target):
    if any(target.startswith(prefix) for prefix in NAMED):
        return False
    return "/" not in target or any(target.startswith(folder) for folder in SYSTEM_FOLDERS)


def violations(root):
    """Yields (path, line, message) for every include that breaks a rule under `root`."""
    for top in ("kernels", "runtime-lib", "dialects", "codegen", "compiler"):
        for folder, folders, files in sorted(os.walk(os.path.join(root, top))):
            folders.sort()
            for file in sorted(files):
                if file.endswith(SOURCES):
                    yield from violations_of(root, os.path.relpath(os.path.join(folder, file), root))


def violations_of(root, path):
    layer = layer_of(path)
    if layer is None:
        yield path, 1, "belongs to no layer; add its folder to LAYERS in scripts/check-layers.py"
        return
    name, prefixes = layer
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = resolve(root, path, match.group(1) or match.group(2))
            if not is_system(target) and not allows(prefixes, target):
                yield path, number, f"layer '{name}' includes '{target}'; it may include {', '.join(prefixes)}"


def cycle():
    """Returns a dialect on a cycle of DIALECT_DAG, or None."""
    def reaches(start, node):
        return any(after == start or reaches(start, after) for after in DIALECT_DAG.get(node, []))
    try:
        return next((dialect for dialect in DIALECT_DAG if reaches(dialect, dialect)), None)
    except RecursionError:
        return next(iter(DIALECT_DAG))


# (file, include, whether it is allowed): one line for every rule, both ways.
CASES = [
    ("kernels/cpu/A.cpp", '"kernels/Format.h"', True),
    ("kernels/cpu/A.cpp", "<immintrin.h>", True),
    ("kernels/cpu/A.cpp", '"mcc/Model.h"', False),
    ("kernels/cpu/A.cpp", '"runtime-lib/src/Pool.h"', False),
    ("kernels/cpu/A.cpp", '"../../runtime-lib/src/Planted.h"', False),
    ("kernels/cpu/A.cpp", '"llvm/ADT/StringRef.h"', False),
    ("kernels/cpu/A.cpp", "<nlohmann/json.hpp>", False),
    ("kernels/cpu/A.cpp", "<boost/any.hpp>", False),
    ("kernels/cuda/A.cu", "<cuda_fp16.h>", True),
    ("kernels/cuda/A.cu", '"mlir/IR/Builders.h"', False),
    ("kernels/cpu/A.cpp", "<cuda_fp16.h>", False),
    ("runtime-lib/src/A.cpp", '"kernels/Step.h"', True),
    ("runtime-lib/src/A.cpp", '"mcc/Blob.h"', True),
    ("runtime-lib/src/A.cpp", "<sys/mman.h>", True),
    ("runtime-lib/src/A.cpp", "<nlohmann/json.hpp>", True),
    ("runtime-lib/src/A.cpp", '"compiler/Support/Error.h"', False),
    ("runtime-lib/src/A.cpp", '"mlir/IR/Builders.h"', False),
    ("runtime-lib/src/A.cpp", "<llvm/Support/Error.h>", False),
    ("compiler/Support/A.cpp", '"llvm/Support/Error.h"', True),
    ("compiler/Support/A.cpp", '"compiler/Import/Checkpoint.h"', False),
    ("compiler/Support/A.cpp", '"kernels/Format.h"', False),
    ("dialects/Mcc/IR/A.cpp", '"compiler/Support/Error.h"', True),
    ("dialects/Mcc/IR/A.cpp", '"kernels/Activation.h"', True),
    ("dialects/Mcc/IR/A.cpp", '"dialects/Exec/IR/Exec.h"', False),
    ("dialects/Mcc/IR/A.cpp", '"dialects/Mcc/Transforms/Passes.h"', False),
    ("dialects/Mcc/IR/A.cpp", '"compiler/Import/ModelSpec.h"', False),
    ("dialects/Mcc/Transforms/A.cpp", '"dialects/Mcc/IR/Mcc.h"', True),
    ("dialects/Mcc/Transforms/A.cpp", '"dialects/Exec/IR/Exec.h"', False),
    ("dialects/Exec/IR/A.td", '"dialects/Mcc/IR/Mcc.td"', True),
    ("dialects/Exec/Transforms/A.cpp", '"dialects/Mcc/IR/Mcc.h"', True),
    ("dialects/Exec/Transforms/A.cpp", '"dialects/Mcc/Transforms/Passes.h"', False),
    ("dialects/Conversion/MccToExec/A.cpp", '"dialects/Mcc/IR/Mcc.h"', True),
    ("dialects/Conversion/MccToExec/A.cpp", '"dialects/Exec/IR/Exec.h"', True),
    ("dialects/Conversion/MccToExec/A.cpp", '"dialects/Mcc/Transforms/Passes.h"', False),
    ("dialects/Conversion/MccToExec/A.cpp", '"codegen/CPU/Emit.h"', False),
    ("codegen/CPU/A.cpp", '"dialects/Exec/IR/Exec.h"', True),
    ("codegen/CPU/A.cpp", '"mcc/Model.h"', True),
    ("codegen/CPU/A.cpp", '"runtime-lib/include/mcc/Model.h"', True),
    ("codegen/CPU/A.cpp", '"dialects/Exec/Transforms/Passes.h"', False),
    ("codegen/CPU/A.cpp", '"compiler/Driver/Options.h"', False),
    ("codegen/CPU/A.cpp", '"runtime-lib/src/Pool.h"', False),
    ("compiler/Driver/A.cpp", '"codegen/CPU/Emit.h"', True),
    ("compiler/Driver/A.cpp", "<CLI/CLI.hpp>", True),
    ("compiler/Driver/A.cpp", '"test/e2e/helper.h"', False),
]


def self_test():
    failures = 0
    for path, include, allowed in CASES:
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "runtime-lib/src"))
            open(os.path.join(root, "runtime-lib/src/Planted.h"), "w").close()
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w") as stream:
                stream.write(f"// planted\n#include {include}\n")
            found = list(violations(root))
        right = not found if allowed else len(found) == 1 and found[0][:2] == (path, 2)
        if not right:
            failures += 1
            print(f"self-test: #include {include} in {path}: expected {'none' if allowed else 'a violation'}, got {found}")
    DIALECT_DAG["Mcc"].append("Exec")
    if cycle() != "Mcc":
        failures += 1
        print("self-test: a cycle of the dialects was not found")
    print(f"self-test: {len(CASES) + 1} cases, {failures} failed")
    return 1 if failures else 0


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    count = 0
    if cycle():
        count += 1
        print(f"scripts/check-layers.py: error: dialect '{cycle()}' reaches itself in DIALECT_DAG")
    for path, line, message in violations(os.path.normpath(root)):
        count += 1
        print(f"{path}:{line}: error: {message}")
    print(f"{count} violations of the layering" if count else "the layering holds")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
