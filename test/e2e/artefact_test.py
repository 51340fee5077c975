"""What mcc writes: the same bytes every time, three files that may be moved anywhere, no library but libc and libm."""
import os
import shutil
import struct
import tempfile
import unittest

import support
from support import FINAL_NAMES, KJV, MCC, TestCase, compiled, model_of, read_bytes, run

CONFIG = os.path.join(KJV, "config.json")
WEIGHTS = os.path.join(KJV, "model.safetensors")
GOLDEN = os.path.join(KJV, "golden.json")
QEMU = shutil.which("qemu-x86_64")


class Reproducible(TestCase):
    def test_two_compiles(self):
        first = compiled(CONFIG, WEIGHTS)
        with tempfile.TemporaryDirectory() as folder:
            second = os.path.join(folder, "another name")
            self.ran(MCC, os.path.relpath(CONFIG, folder), os.path.relpath(WEIGHTS, folder), "-o", second, cwd=folder)
            self.same_folder(first, second)

    def test_files(self):
        self.assertEqual(set(os.listdir(compiled(CONFIG, WEIGHTS))), set(FINAL_NAMES))

    def test_recompiling_over_the_old_output(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            self.ran(MCC, CONFIG, WEIGHTS, "-o", out, "--ctx", "64")
            self.ran(MCC, CONFIG, WEIGHTS, "-o", out)
            self.same_folder(compiled(CONFIG, WEIGHTS), out)

    def test_the_printed_spec(self):
        """`mcc inspect config.json` prints a spec that compiles to the same bytes."""
        sources = [KJV] + [os.path.join(support.FAMILIES, name) for name in ("llama-yarn", "mistral-window", "qwen3")]
        for source in sources:
            with self.subTest(os.path.basename(source)), tempfile.TemporaryDirectory() as folder:
                printed = self.ran(MCC, "inspect", os.path.join(source, "config.json"))
                clone = os.path.join(folder, "model")
                shutil.copytree(source, clone)
                os.chmod(clone, 0o755)
                spec = os.path.join(clone, "spec.json")
                with open(spec, "wb") as stream:
                    stream.write(printed.raw_out)
                again = self.ran(MCC, "inspect", spec)
                self.assertEqual(again.out, printed.out)
                out = os.path.join(folder, "out")
                self.ran(MCC, spec, os.path.join(clone, "model.safetensors"), "-o", out)
                self.same_folder(compiled(os.path.join(source, "config.json"), os.path.join(source, "model.safetensors")), out)

    def test_random_weights(self):
        """random:SEED makes the same weights for the same seed, and others for another."""
        first = compiled(CONFIG, "random:1")
        with tempfile.TemporaryDirectory() as folder:
            for seed, same in (("1", True), ("2", False)):
                out = os.path.join(folder, seed)
                self.ran(MCC, CONFIG, f"random:{seed}", "-o", out)
                equal = read_bytes(os.path.join(out, "model.weights")) == read_bytes(os.path.join(first, "model.weights"))
                self.assertEqual(equal, same)
        ids = self.ran(os.path.join(first, "model"), "--tokens", "1,2,3", "-n", "8").ids()
        self.assertGreater(len(ids), 0)


class Movable(TestCase):
    """`out/` may be moved, renamed or copied; the weights lie beside the executable, wherever that is called from."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.here = self.folder.name

    def checked(self, *command, **options):
        return self.ran(*command, "--check", GOLDEN, **options)

    def test_copied_renamed_and_moved(self):
        for name in ("copy", "with space", "mit Ümläuten 日本", "quote'd \"name\" $HOME"):
            target = os.path.join(self.here, name, "deeper")
            shutil.copytree(compiled(CONFIG, WEIGHTS), target)
            self.checked(os.path.join(target, "model"))
            moved = os.path.join(self.here, "moved " + name)
            os.rename(target, moved)
            self.checked(os.path.join(moved, "model"))

    def test_from_other_folders(self):
        target = os.path.join(self.here, "out")
        shutil.copytree(compiled(CONFIG, WEIGHTS), target)
        self.checked("./model", cwd=target)
        self.checked("out/model", cwd=self.here)
        self.checked(os.path.join(target, "model"), cwd="/")
        self.checked("model", cwd="/", env={**os.environ, "PATH": target + ":" + os.environ["PATH"]})

    def test_through_symlinks(self):
        os.symlink(compiled(CONFIG, WEIGHTS), os.path.join(self.here, "link"))
        self.checked(os.path.join(self.here, "link", "model"))
        os.symlink(os.path.join(compiled(CONFIG, WEIGHTS), "model"), os.path.join(self.here, "program"))
        self.checked(os.path.join(self.here, "program"), cwd="/")

    def test_read_only(self):
        target = os.path.join(self.here, "out")
        shutil.copytree(compiled(CONFIG, WEIGHTS), target)
        os.chmod(os.path.join(target, "model.weights"), 0o444)
        os.chmod(target, 0o555)
        self.addCleanup(os.chmod, target, 0o755)
        self.checked(os.path.join(target, "model"))

    def test_compiling_with_awkward_paths(self):
        source = os.path.join(self.here, "model dir é")
        shutil.copytree(KJV, source)
        os.chmod(source, 0o755)
        out = os.path.join(self.here, "aus gabe ß", "deep")
        self.ran(MCC, source, "-o", out)
        self.same_folder(compiled(KJV), out)
        self.ran(MCC, "config.json", "model.safetensors", "-o", "out", cwd=source)
        self.same_folder(compiled(KJV), os.path.join(source, "out"))


class Blob(TestCase):
    """A weights file that is not the one compiled with the executable is refused."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "out")
        shutil.copytree(compiled(CONFIG, WEIGHTS), self.out)
        self.model = os.path.join(self.out, "model")
        self.weights = os.path.join(self.out, "model.weights")
        self.size = os.path.getsize(self.weights)

    def refused(self, *fragments):
        return self.diagnosed(run(self.model, "--tokens", "0,1", "-n", "2"), "model.weights", *fragments)

    def test_missing(self):
        os.remove(self.weights)
        self.refused()

    def test_truncated(self):
        for size in (self.size - 1, self.size // 2, 4096, 100, 1, 0):
            os.truncate(self.weights, size)
            self.refused(rf"\b{size}\b", rf"\b{self.size}\b")

    def test_too_long(self):
        with open(self.weights, "ab") as stream:
            stream.write(b"\0" * 4096)
        self.refused(str(self.size), str(self.size + 4096))

    def test_another_model(self):
        shutil.copy(os.path.join(compiled(CONFIG, "random:1"), "model.weights"), self.weights)
        self.refused(r"weights of another program: their id is \w+ \(\d+ bytes\)", "this program was compiled with")

    def test_damaged_header(self):
        cases = [(0, "not a weights file: it begins with the bytes"), (9, "the header is damaged"),
                 (40, "the header is damaged"), (600, "the header is damaged")]
        for place, message in cases:
            data = bytearray(read_bytes(os.path.join(compiled(CONFIG, WEIGHTS), "model.weights")))
            data[place] ^= 0x40
            with open(self.weights, "wb") as stream:
                stream.write(data)
            self.refused(message)

    def test_verify_finds_a_damaged_weight(self):
        self.ran(self.model, "--verify")
        data = bytearray(read_bytes(self.weights))
        data[self.size // 2] ^= 1
        with open(self.weights, "wb") as stream:
            stream.write(data)
        self.diagnosed(run(self.model, "--verify"), "model.weights")

    def test_not_a_file(self):
        os.remove(self.weights)
        os.mkdir(self.weights)
        self.refused("error: not a regular file")


class Executable(TestCase):
    def test_libraries(self):
        done = self.ran("ldd", model_of(CONFIG, WEIGHTS))
        names = {line.split()[0].split("/")[-1] for line in done.out.splitlines()}
        self.assertLessEqual(names, {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"})

    def test_small(self):
        self.assertLess(os.path.getsize(model_of(CONFIG, WEIGHTS)), 8 << 20)

    def test_size_does_not_grow_with_depth(self):
        deep = support.variant(KJV, lambda config: config.update(num_hidden_layers=48))
        shallow = os.path.getsize(model_of(CONFIG, "random:1"))
        self.assertLess(os.path.getsize(model_of(os.path.join(deep, "config.json"), "random:1")), shallow + 65536)

    def test_no_build_paths_inside(self):
        data = read_bytes(model_of(CONFIG, WEIGHTS))
        for path in (KJV, support.BUILD):
            self.assertNotIn(path.encode(), data)

    def test_sections_hold_no_weights(self):
        tensor = support.read_safetensors(WEIGHTS)["model.embed_tokens.weight"][2]
        self.assertNotIn(tensor[:64], read_bytes(model_of(CONFIG, WEIGHTS)))
        self.assertEqual(struct.unpack("<4s", read_bytes(model_of(CONFIG, WEIGHTS))[:4])[0], b"\x7fELF")


@unittest.skipUnless(QEMU, "no qemu-x86_64")
class OtherProcessors(TestCase):
    def test_an_unfit_processor_gets_a_message(self):
        model = model_of(CONFIG, WEIGHTS, "--target-cpu", "x86-64-v3")
        done = run(QEMU, "-cpu", "Nehalem", model, "--tokens", "0,1", "-n", "2")
        self.diagnosed(done, "avx2", "compile the model again with --target-cpu=native on this machine, or name its CPU there")

    def test_an_older_target(self):
        model = model_of(CONFIG, WEIGHTS, "--target-cpu", "nehalem")
        self.ran(QEMU, "-cpu", "Nehalem", model, "--check", GOLDEN)
        self.ran(model, "--check", GOLDEN)

    def test_unknown_target(self):
        done = run(MCC, CONFIG, WEIGHTS, "--target-cpu", "nehalen", "-o", support.scratch("cpu"))
        self.diagnosed(done, "unknown target CPU 'nehalen'", "nehalem")


if __name__ == "__main__":
    support.main()
