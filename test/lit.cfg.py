# lit's configuration for tests written as text: .mlir files with RUN and CHECK lines under test/dialects,
# test/pipeline and test/driver. ctest's entry `lit` runs it and sets:
#   MCC_BUILD        the build folder, whose bin/ holds mcc and mcc-opt
#   MCC_LLVM_TOOLS   the folder of FileCheck, not and split-file
#   MCC_ORACLE_DIR   optional; tests that need it say `REQUIRES: oracle` and are counted as unsupported without
# Substitutions: %root (the repository), %oracle (MCC_ORACLE_DIR), and lit's own (%s, %t, %S, ...).
import os

import lit.formats

build = os.environ["MCC_BUILD"]
config.name = "mcc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "data", "lit", "unit", "e2e", "bench", "scripts"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "test", "lit", "out")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), os.environ["MCC_LLVM_TOOLS"], config.environment["PATH"]]
)
config.substitutions.append(("%root", os.path.dirname(config.test_source_root)))

oracle = os.environ.get("MCC_ORACLE_DIR")
if oracle:
    config.available_features.add("oracle")
    config.environment["MCC_ORACLE_DIR"] = oracle
    config.substitutions.append(("%oracle", oracle))
