"""mcc calibrate: a profile of this machine, which placement takes."""
import json
import os
import subprocess
import tempfile
import unittest

import support

LLAMA = os.path.join(support.ROOT, "test", "data", "families", "llama")


def mcc(*arguments, **environment):
    return subprocess.run([support.MCC, *arguments], capture_output=True, text=True, env={**os.environ, **environment})


class Calibration(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "machine.json")
        done = mcc("calibrate", "--threads", "1", "--milliseconds", "300", "-o", cls.path)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.notes = done.stderr
        with open(cls.path) as file:
            cls.profile = json.load(file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_fingerprint(self):
        machine = self.profile["machine"]
        self.assertEqual(machine["threads"], 1)
        self.assertTrue(machine["cpu"])
        # Without a GPU it is said why, where this mcc could have used one; nothing else is said in a pipe.
        self.assertTrue(self.notes == "" or self.notes.startswith("note: no GPU in the profile: "), self.notes)
        self.assertEqual("gpu" in self.profile, machine["gpu"] != "")

    def test_times_are_plausible(self):
        """Weights come at 0.1 to 1000 GB/s, and every format was measured."""
        matrices = self.profile["cpu"]["matrices"]
        self.assertEqual([m["format"] for m in matrices], ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q6_k"])
        for matrix in matrices:
            sample = matrix["gemv"]["samples"][-1]
            rate = sample["size"] / sorted(sample["rawNs"])[len(sample["rawNs"]) // 2]
            self.assertGreater(rate, 0.1, matrix["format"])
            self.assertLess(rate, 1000, matrix["format"])
            self.assertGreaterEqual(len(matrix["gemv"]["samples"]), 2)

    def test_placement_takes_it(self):
        done = mcc(LLAMA, "--emit=exec", "--placement", "auto", "--machine", self.path, "--explain", "-o", os.devnull)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("so no placement is better", done.stdout)

    def test_usage(self):
        self.assertEqual(mcc("calibrate", "--milliseconds", "0").returncode, 2)
        done = mcc("calibrate", "--milliseconds", "1", "-o", os.path.join(self.folder.name, "no", "such"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: cannot write", done.stderr)

    def test_a_program_that_fails(self):
        """What the measuring program says and returns is not taken for a profile unseen."""
        for body, text in (("exit 3", "error: the calibration program ended with 3\n"),
                           ("echo {}", "error: the calibration program printed no profile: calibration:1:1: error: missing field 'format'\n")):
            compiler = os.path.join(self.folder.name, "cc")
            with open(compiler, "w") as file:
                file.write(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nprintf "#!/bin/sh\\n{body}\\n" > "$2"; chmod +x "$2"\n')
            os.chmod(compiler, 0o755)
            done = mcc("calibrate", CC=compiler)
            self.assertEqual((done.returncode, done.stderr), (1, text))
        done = mcc("calibrate", TMPDIR=os.path.join(self.folder.name, "none"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: cannot make a temporary folder for the calibration: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
