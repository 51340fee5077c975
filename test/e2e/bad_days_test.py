"""Bad days of a compile and of a compiled model: full disks, kills, closed pipes, prompts that do not fit, NaN."""
import json
import os
import resource
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import support
from support import FAMILIES, FINAL_NAMES, KJV, MCC, TestCase, compiled, model_of, read_bytes, run, variant

QWEN = os.path.join(FAMILIES, "qwen2")
GOLDEN = os.path.join(KJV, "golden.json")


def limit_files(limit):
    """Writes beyond `limit` bytes of a file fail as on a full disk (the signal for it is ignored)."""
    def limit_now():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return limit_now


class Disk(TestCase):
    def nothing_half_written(self, out):
        """Each final name that exists holds the bytes of an undisturbed compile."""
        for name in FINAL_NAMES:
            path = os.path.join(out, name)
            if os.path.exists(path):
                self.assertTrue(read_bytes(path) == read_bytes(os.path.join(compiled(KJV), name)), f"{name} is half-written")

    def test_writes_fail(self):
        for limit in (0, 1000, 100_000, 1_000_000, 3_000_000):
            with self.subTest(limit=limit), tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "out")
                done = run(MCC, KJV, "-o", out, preexec_fn=limit_files(limit), restore_signals=False)
                self.assertEqual(done.code, 1, f"\n{done}")
                self.assertRegex(done.err, "(?i)error:.*(file too large|no space|too large)")
                self.assertEqual(os.listdir(out) if os.path.isdir(out) else [], [], "a failed compile leaves nothing")

    def test_full_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], stderr=subprocess.DEVNULL, check=False)
            if mounted.returncode != 0:
                self.skipTest("may not mount a small file system here")
            try:
                out = os.path.join(folder, "out")
                done = run(MCC, KJV, "-o", out)
                self.diagnosed(done, "(?i)no space", "model")
                self.assertEqual(os.listdir(out) if os.path.isdir(out) else [], [])
            finally:
                subprocess.run(["umount", "-l", folder], check=True)

    def test_killed(self):
        """kill -9 at any moment, into an empty folder and over an older compile."""
        start = time.monotonic()
        compiled(KJV)
        self.ran(MCC, KJV, "-o", support.scratch("timing"))
        duration = (time.monotonic() - start) / 2
        killed = 0
        for tenth in range(1, 11):
            with tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "out")
                process = subprocess.Popen([MCC, KJV, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(duration * tenth / 10)
                process.kill()
                killed += process.wait() == -signal.SIGKILL
                self.nothing_half_written(out)
                if all(os.path.exists(os.path.join(out, name)) for name in FINAL_NAMES):
                    self.ran(os.path.join(out, "model"), "--check", GOLDEN)
                self.ran(MCC, KJV, "-o", out)
                for name in FINAL_NAMES:
                    self.assertTrue(os.path.exists(os.path.join(out, name)))
                self.nothing_half_written(out)
        self.assertGreater(killed, 0, "no kill came in time")

    def test_interrupted(self):
        """Control-C leaves nothing, not even temporary files."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            process = subprocess.Popen([MCC, KJV, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            process.wait()
            self.nothing_half_written(out)

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_unwritable_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o555)
            self.diagnosed(run(MCC, KJV, "-o", os.path.join(folder, "out")), "permission")
            os.chmod(folder, 0o755)


class Streams(TestCase):
    def test_head(self):
        """A reader that goes away ends the program quietly."""
        for options in ("", "--json"):
            command = f'"$1" "In the beginning" -n 400 {options} | head -c 5'
            done = self.ran("bash", "-c", command, "bash", model_of(KJV))
            self.assertEqual(done.err, "")
            self.assertEqual(len(done.raw_out), 5)

    def test_full_output(self):
        done = self.ran("bash", "-c", '"$1" "In the beginning" -n 20 >/dev/full', "bash", model_of(KJV), code=1)
        self.assertRegex(done.err, "(?i)no space")

    def test_closed_output(self):
        done = run("bash", "-c", '"$1" "In the beginning" -n 20 >&-', "bash", model_of(KJV))
        self.assertGreaterEqual(done.code, 0)
        self.assertLess(done.code, 128, f"\n{done}")

    def test_interrupt(self):
        process = subprocess.Popen([model_of(KJV, "--ctx", "20000"), "In the beginning", "-n", "19000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(4)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode in (130, -signal.SIGINT), True, process.returncode)
        self.assertEqual(err, b"")

    def test_logits_cannot_be_written(self):
        done = run(model_of(KJV), "--tokens", "0,1", "-n", "2", "--logits", "/nowhere/logits.safetensors")
        self.assertEqual(done.code, 1)
        self.assertIn("/nowhere/logits.safetensors", done.err)
        with tempfile.TemporaryDirectory() as folder:
            done = run(model_of(KJV), "--tokens", "0,1", "-n", "2", "--logits", folder)
            self.diagnosed(done, folder + ": error: exists and is not a regular file")


class Prompts(TestCase):
    def refused(self, *arguments, fragments=(), model=None):
        return self.diagnosed(run(model or model_of(KJV), *arguments), *fragments)

    def test_ids_outside_the_vocabulary(self):
        self.refused("--tokens", "0,2048", "-n", "2", fragments=["2048", "vocabulary"])
        self.refused("--tokens", "0,99999999999", "-n", "2", fragments=["99999999999"])
        self.refused("--tokens=-1", "-n", "2", fragments=["-1"])

    def test_longer_than_the_context(self):
        small = model_of(KJV, "--ctx", "32")
        self.refused("--tokens", ",".join(["7"] * 33), "-n", "2", fragments=[r"\b33\b", r"\b32\b"], model=small)
        self.ran(small, "--tokens", ",".join(["7"] * 31), "-n", "1")

    def test_stops_at_the_context(self):
        small = model_of(KJV, "--ctx", "32")
        done = self.ran(small, "--tokens", "0,1143,259", "-n", "200")
        self.assertLessEqual(len(done.ids()), 30)
        self.assertRegex(done.err, r"\b32\b")
        self.assertEqual(len(done.err.splitlines()), 1)

    def test_no_tokenizer(self):
        self.refused("Hello", fragments=["tokenizer", "--tokens"], model=model_of(QWEN))

    def test_a_prompt_that_is_no_utf8(self):
        done = run(model_of(KJV), b"\xff\xfe In".decode("utf-8", "surrogateescape"), "-n", "4")
        self.assertIn(done.code, (0, 1))
        done.raw_out.decode("utf-8")

    def test_a_line_without_end(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prompts.jsonl")
            with open(path, "wb") as stream:
                stream.truncate(1 << 31)
            done = run(model_of(KJV), "--prompts", path, preexec_fn=support.limit_memory(1 << 30))
            self.assertEqual(done.code, 1, f"\n{done}")
            self.assertRegex(done.err, r"prompts\.jsonl:1: error: line has more than \d+ bytes")

    def test_empty_prompt(self):
        done = run(model_of(KJV), "", "-n", "4")
        self.assertIn(done.code, (0, 1), f"\n{done}")

    def test_prompts_file(self):
        """A bad line is named and the others are answered; the exit status tells."""
        cases = [
            ('{"prompt": 7', None),
            ('{"prompt": 7}', "'prompt' must be a string, not number"),
            ("7", "a line must be a string or an object, not number"),
            ('{"prompt": "In", "n": -1}', "'n' must be a count of tokens from 0 to 2147483647, not -1"),
            ('{"prompt": "In", "m": 1}', "unknown key 'm'; known: 'prompt', 'tokens', 'n'"),
            ('{"n": 1}', "an object needs either 'prompt' or 'tokens'"),
            ('{"tokens": [0, 2048]}', "2048"),
        ]
        for line, message in cases:
            with self.subTest(line=line), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "prompts.jsonl")
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write('{"tokens": [0, 1143]}\n' + line + "\n")
                done = run(model_of(KJV), "--prompts", path, "-n", "2")
                self.assertEqual(done.code, 1, f"\n{done}")
                self.assertRegex(done.err, r"prompts\.jsonl:2")
                self.assertIn(message or "", done.err)
                self.assertEqual(len(json.loads(done.out.splitlines()[0])["tokens"]), 2)
        self.refused("--prompts", "/nowhere.jsonl", fragments=["/nowhere.jsonl"])

    def test_usage(self):
        cases = [
            (["--no-such"], "unknown option '--no-such'; see --help"),
            (["--thread", "2"], "unknown option '--thread'; did you mean '--threads'?"),
            ([], "no prompt; give a text, --tokens, --prompts or --check, or see --help"),
            (["In", "-n", "many"], "'-n' takes a whole number, not 'many'"),
            (["In", "-n", "-3"], "'-n' takes a number from 0 to 2147483647, not -3"),
            (["In", "--threads", "0"], "'--threads' takes a number from 1 to"),
            (["In", "--threads", "-1"], "'--threads' takes a number from 1 to"),
            (["In", "--tolerance", "x"], "'--tolerance' takes a number of at least 0, not 'x'"),
            (["In", "--json=yes"], "'--json' takes no value, but is given 'yes'"),
            (["In", "--tokens", "1,2"], "more than one of a text, --tokens, --prompts, --check, --bench, --info, --verify and --version"),
            (["--tokens", "1,,2"], "'--tokens' takes token ids separated by commas; '' is none"),
            (["--tokens", "1,x"], "'--tokens' takes token ids separated by commas; 'x' is none"),
            (["--tokens", ""], "'--tokens' takes token ids separated by commas; there is none"),
            (["--check"], "'--check' takes a value, FILE; there is none"),
            (["--check", GOLDEN, "--logits", "x"], "'--logits' goes with a text or --tokens"),
            (["In", "the"], "a second prompt 'the'; put quotes around a text with spaces"),
        ]
        for arguments, message in cases:
            with self.subTest(arguments=arguments):
                done = run(model_of(KJV), *arguments)
                self.assertEqual(done.code, 2, f"\n{done}")
                self.assertIn(message, done.err)

    def test_thousands_of_threads(self):
        done = run(model_of(KJV), "--tokens", "0,1", "-n", "1", "--threads", "100000")
        self.assertIn(done.code, (1, 2), f"\n{done}")
        self.assertIn("100000", done.err)


class GoldenFiles(TestCase):
    def refused(self, value, *fragments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "golden.json")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(value if isinstance(value, str) else json.dumps(value))
            return self.diagnosed(run(model_of(KJV), "--check", path), r"golden\.json", *fragments)

    def test_malformed(self):
        self.refused("{")
        self.refused("")
        self.refused([], "a golden file is an object with an array 'sequences'")
        self.refused({"sequence": []}, "a golden file is an object with an array 'sequences'")
        self.refused({"sequences": [{"prompt": [0], "expect": [1], "margin": ["0.5"]}]}, "must be a number, not string")
        self.refused({"sequences": [{"prompt": [0], "expect": [1]}], "logits": [0.5] * 2048},
                     r"'logits' belong to sequences\[1\]; there is 1 sequence")
        self.refused({"sequences": [{"prompt": [1]}]}, "expect")
        self.refused({"sequences": [{"prompt": [0, 2048], "expect": [1]}]}, "2048")
        self.refused({"sequences": [{"prompt": [0], "expect": [1, 2], "margin": [0.5]}]}, "margin", "2", "1")
        self.refused({"sequences": [{"prompt": [0], "expect": ["one"]}]}, "expect")
        self.refused({"sequences": [{"prompt": [], "expect": [1]}]}, "prompt")
        self.refused({"sequences": [{"prompt": [0], "expect": [1] * 600}]}, "600|601", "512")

    def test_no_sequences(self):
        self.refused({"sequences": []}, "'sequences' is empty; nothing would be checked")

    def test_missing(self):
        self.diagnosed(run(model_of(KJV), "--check", "/nowhere.json"), "/nowhere.json")


class NotANumber(TestCase):
    def poisoned(self, tensor):
        def edit(tensors):
            dtype, shape, data = tensors[tensor]
            self.assertEqual(dtype, "BF16")
            tensors[tensor] = (dtype, shape, struct.pack("<H", 0x7FC0) + data[2:])
        return model_of(variant(KJV, edit_tensors=edit))

    def test_nan_weights(self):
        for tensor in ("model.norm.weight", "model.layers.3.mlp.down_proj.weight"):
            done = run(self.poisoned(tensor), "--tokens", "0,1143", "-n", "4")
            self.assertEqual(done.code, 1, f"\n{done}")
            self.assertRegex(done.err, r"error: logits are NaN at position \d+; the weights or the activations overflow")

    def test_check_of_nan(self):
        done = run(self.poisoned("model.norm.weight"), "--check", GOLDEN)
        self.assertEqual(done.code, 1, f"\n{done}")


class LowMemory(TestCase):
    def test_cache_that_cannot_be(self):
        """A context beyond all memory is refused by one of the two programs, without a crash."""
        out = os.path.join(support.scratch("huge"), "out")
        done = run(MCC, KJV, "-o", out, "--ctx", str(10**12))
        self.assertEqual(done.code, 2, f"\n{done}")
        self.assertRegex(done.err, "--ctx.*1000000000000")

    def test_cache_beyond_the_limit(self):
        """The model says what it could not have where the system gives it no memory."""
        model = model_of(KJV, "--ctx", "1000000")
        done = run(model, "--tokens", "0,1", "-n", "1", preexec_fn=support.limit_memory(1 << 30))
        self.diagnosed(done, "cache", r"\d{9,}", "--ctx")


if __name__ == "__main__":
    support.main()
