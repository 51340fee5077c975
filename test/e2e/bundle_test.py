"""The release download of scripts/bundle, unpacked elsewhere and used with an empty environment.

Skipped where dist/ has none.
"""
import glob
import os
import stat
import subprocess
import sys
import tarfile

import support
from support import KJV, ROOT, TestCase

BUNDLES = sorted(glob.glob(os.path.join(ROOT, "dist", "mcc-*-linux-x64.tar.xz")))
MOST_BYTES = 40_000_000
# All that a bare machine has: glibc, and the C compiler for the last link.
GLIBC = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
EMPTY = {"PATH": "/usr/bin:/bin"}


def needed(path):
    """Returns the names of the shared libraries that a program asks the loader for."""
    done = subprocess.run(["objdump", "-p", path], check=True, stdout=subprocess.PIPE, text=True)
    return {line.split()[1] for line in done.stdout.splitlines() if line.split()[:1] == ["NEEDED"]}


class Bundle(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.archive = BUNDLES[-1]
        with tarfile.open(cls.archive) as archive:
            cls.members = archive.getmembers()
            # A path with a space: nothing may be tied to where the bundle was made.
            cls.folder = os.path.join(support.scratch("bundle"), "some where")
            archive.extractall(cls.folder)
        cls.top = os.path.join(cls.folder, os.path.basename(cls.archive)[:-len(".tar.xz")])
        cls.mcc = os.path.join(cls.top, "bin", "mcc")

    def test_size(self):
        self.assertLessEqual(os.path.getsize(self.archive), MOST_BYTES)

    def test_layout(self):
        tops = {member.name.split("/")[0] for member in self.members}
        self.assertEqual(tops, {os.path.basename(self.top)})
        for name in ("bin/mcc", "lib/mcc/mcc-kernels.bc", "lib/mcc/libmccrt.a", "README.md", "LICENSE"):
            self.assertTrue(os.path.isfile(os.path.join(self.top, name)), name)
        self.assertTrue(os.stat(self.mcc).st_mode & stat.S_IXUSR)
        self.assertEqual({(member.uid, member.gid) for member in self.members}, {(0, 0)})

    def test_needs_glibc_only(self):
        """Also the programs for a machine with a GPU: they open the driver's library by themselves."""
        check = os.path.join(self.top, "check")
        names = sorted(os.listdir(check)) if os.path.isdir(check) else []
        for path in (self.mcc, *(os.path.join(check, name) for name in names)):
            with self.subTest(path=path):
                self.assertLessEqual(needed(path), GLIBC)

    def test_checks(self):
        """A bundle with CUDA has what scripts/gpu-check runs; without a GPU each says so, and none crashes."""
        if not os.path.isfile(os.path.join(self.top, "lib", "mcc", "libmccrt-cuda.a")):
            self.skipTest("this bundle is made without CUDA")
        hidden = {"CUDA_VISIBLE_DEVICES": ""}
        for name, code in (("kernels-cuda-test", support.SKIPPED), ("calibrate-gpu-test", support.SKIPPED), ("cuda-bench", support.SKIPPED), ("cuda-prefill-bench", 1)):
            with self.subTest(name=name):
                done = support.run(os.path.join(self.top, "check", name), env=hidden)
                self.assertEqual(done.code, code, done)

    def test_names_no_path_of_the_build(self):
        self.assertNotIn(ROOT.encode(), support.read_bytes(self.mcc))

    def test_compiles_and_runs(self):
        out = os.path.join(support.scratch("out"), "out")
        self.ran(self.mcc, KJV, "-o", out, env=EMPTY, cwd="/")
        self.ran(os.path.join(out, "model"), "--check", os.path.join(KJV, "golden.json"), env={}, cwd="/")

    def test_same_bytes_as_the_build(self):
        """The program in the bundle is the program that was tested: both make the same model."""
        out = os.path.join(support.scratch("out"), "out")
        self.ran(self.mcc, KJV, "-o", out, env=EMPTY, cwd="/")
        self.same_folder(out, support.compiled(KJV))

    def test_errors_stay_one_line(self):
        self.diagnosed(self.ran(self.mcc, "/nowhere", "-o", "/tmp/never", code=1, env=EMPTY), "/nowhere")


if __name__ == "__main__":
    if not BUNDLES:
        print("skipped: dist/ has no bundle; scripts/bundle makes one")
        sys.exit(support.SKIPPED)
    support.main()
