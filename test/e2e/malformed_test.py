"""Files that other projects' tests hold malformed (or odd but right): `mcc inspect` answers each as its name says,
within a second and without a large allocation."""
import os
import tarfile

import support
from support import MCC, ORACLE, TestCase, run

MALFORMED = os.path.join(ORACLE or "", "malformed")
SECONDS = 1.0
ADDRESS_SPACE = 1 << 30  # the shared libraries of mcc alone map a few hundred megabytes


class Malformed(TestCase):
    def answered(self, path):
        verdict = os.path.basename(path).rsplit(".", 2)[1]
        self.assertIn(verdict, ("ok", "bad"))
        with self.subTest(os.path.basename(path)):
            done = run(MCC, "inspect", path, preexec_fn=support.limit_memory(ADDRESS_SPACE))
            self.assertLess(done.seconds, SECONDS, f"\n{done}")
            if verdict == "ok":
                self.assertEqual(done.code, 0, f"\n{done}")
            else:
                self.diagnosed(done, os.path.basename(path).split(".")[0])

    def test_gguf(self):
        folder = support.scratch("gguf")
        with tarfile.open(os.path.join(MALFORMED, "gguf.tar.xz")) as archive:
            archive.extractall(folder)
        paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
        self.assertEqual(len(paths), 54)
        for path in sorted(paths):
            self.answered(path)

    def test_safetensors(self):
        folder = os.path.join(MALFORMED, "safetensors")
        names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
        self.assertGreaterEqual(len(names), 30)
        for name in names:
            self.answered(os.path.join(folder, name))


if __name__ == "__main__":
    support.main(needs_oracle=True)
