"""The fake model's executable from outside: options, exit codes, files, pipes, and bad days.

Usage: executable_test.py FOLDER, where FOLDER holds model, model.weights, other.weights, demanding and puzzling.
Expected tokens come from the plain model below, not from the executable.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

FOLDER = sys.argv.pop() if len(sys.argv) > 1 else "."
VOCABULARY, CONTEXT, END, POISON = 64, 40, 9, 63


def logits_after(tokens):
    weight = [v * v * 13 % 251 for v in range(VOCABULARY)]
    return [sum((7 * t + 3 * p + 5 * v + weight[v] + 11) % 31 for p, t in enumerate(tokens)) for v in range(VOCABULARY)]


def greedy(prompt, count):
    """Returns the next `count` tokens and the margin of each choice."""
    tokens, margins = list(prompt), []
    for _ in range(count):
        row = logits_after(tokens)
        ranked = sorted(range(VOCABULARY), key=lambda v: (-row[v], v))
        margins.append(row[ranked[0]] - row[ranked[1]])
        tokens.append(ranked[0])
    return tokens[len(prompt):], margins


def run(*arguments, program="model", folder=None, **options):
    path = os.path.join(folder or FOLDER, program)
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if options["stdin"] is None:
        del options["stdin"]
    return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=60, **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.scratch)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def copy(self, *names):
        """Copies the executable and its weights; returns the new folder."""
        folder = self.path(os.path.join("", *names))
        os.makedirs(folder, exist_ok=True)
        for name in ("model", "model.weights"):
            shutil.copy(os.path.join(FOLDER, name), folder)
        return folder

    def assertRefused(self, result, *texts, status=1):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)


class Generation(Case):
    def test_tokens(self):
        result = run("--tokens", "0,5,6", "-n", "12")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.stdout, ",".join(map(str, greedy([0, 5, 6], 12)[0])) + "\n")

    def test_every_thread_count_and_chunk(self):
        prompt = [(3 * i + 1) % 60 for i in range(21)]
        expected = greedy(prompt, 10)[0]
        for threads in ("1", "2", "3", "8"):
            for chunk in ("1", "2", "7", "8", "1000"):
                result = run("--tokens", ",".join(map(str, prompt)), "-n10", "--threads", threads, "--chunk=" + chunk,
                             "--json", "--ignore-eos")
                self.assertEqual(json.loads(result.stdout)["tokens"], expected, (threads, chunk))

    def test_stops_at_end_token(self):
        for start in range(60):
            expected = greedy([start], 30)[0]
            if END in expected[1:]:
                break
        result = run("--tokens", str(start), "-n", "30", "--json")
        answer = json.loads(result.stdout)
        self.assertEqual(answer["tokens"], expected[:expected.index(END)])
        self.assertEqual(answer["stop"], "eos")
        answer = json.loads(run("--tokens", str(start), "-n", "30", "--json", "--ignore-eos").stdout)
        self.assertEqual((answer["tokens"], answer["stop"]), (expected, "length"))

    def test_stops_at_context(self):
        prompt = [1] * 35
        result = run("--tokens", ",".join(map(str, prompt)), "-n", "100", "--ignore-eos", "--json")
        self.assertEqual(result.returncode, 0)
        answer = json.loads(result.stdout)
        self.assertEqual((answer["stop"], len(answer["tokens"])), ("context", CONTEXT - 35 + 1))
        self.assertIn("context of 40", result.stderr)
        full = run("--tokens", ",".join(["1"] * CONTEXT), "-n", "1")
        self.assertEqual((full.returncode, full.stdout), (0, f"{greedy([1] * CONTEXT, 1)[0][0]}\n"))

    def test_prompt_longer_than_context(self):
        self.assertRefused(run("--tokens", ",".join(["1"] * 41)), "41 tokens", "40")

    def test_ids_outside_the_vocabulary(self):
        for bad in ("64", "-1", "99999999999"):
            self.assertRefused(run("--tokens=0," + bad), f"token id {bad} ", "64 ids")

    def test_nan_logits(self):
        self.assertRefused(run("--tokens", f"1,{POISON}"), "logits are NaN at position 1")
        self.assertRefused(run("--tokens", f"1,{POISON}", "--chunk", "1"), "logits are NaN at position 1")

    def test_text_needs_a_tokenizer(self):
        self.assertRefused(run("hello"), "no tokenizer", "--tokens")
        self.assertRefused(run("-", input="hello\n"), "no tokenizer")

    def test_zero_new_tokens(self):
        result = run("--tokens", "5", "-n", "0")
        self.assertEqual((result.returncode, result.stdout), (0, "\n"))

    def test_speed_goes_to_standard_error_on_request(self):
        result = run("--tokens", "5", "-n", "3", "--stats", "--threads", "2", "--ignore-eos")
        self.assertRegex(result.stderr, r"prompt: 1 tokens, .*decode: 2 steps, .*tokens/s\); 2 threads\n")


class Prompts(Case):
    def test_lines(self):
        path = self.write("p.jsonl", '{"tokens": [1, 2], "n": 3}\n\n{"tokens": [4]}\r\n{"tokens": [70]}\n"text"\n'
                                     '{"token": [1]}\n[1\n{"tokens": [1], "n": -1}\n{"tokens": [7], "n": 2}')
        result = run("--prompts", path, "-n", "5", "--ignore-eos")
        self.assertEqual(result.returncode, 1)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([line["line"] for line in lines], [1, 3, 4, 5, 6, 7, 8, 9])
        self.assertEqual(lines[0]["tokens"], greedy([1, 2], 3)[0])
        self.assertEqual(lines[1]["tokens"], greedy([4], 5)[0])
        self.assertEqual(lines[7]["tokens"], greedy([7], 2)[0])
        errors = result.stderr.splitlines()
        self.assertEqual(errors, [lines[i]["error"] for i in range(2, 7)])
        for error, text in zip(errors, (":4:13: error: 'tokens[0]' is 70; the vocabulary has 64 ids",
                                        ":5: error: this model has no tokenizer", ":6:1", ":7:3: error: ",
                                        ":8:22: error: 'n' must be")):
            self.assertIn(path + text if text != ":6:1" else "unknown key 'token'", error)

    def test_standard_input(self):
        result = run("--prompts", "-", "-n", "2", input='{"tokens": [3]}\n')
        self.assertEqual(json.loads(result.stdout)["tokens"], greedy([3], 2)[0])


class Check(Case):
    def golden(self, change=lambda golden: None):
        sequences = []
        for prompt, count in (([1], 8), ([2, 3, 4], 6), ([5] * 20, 10)):
            expect, margin = greedy(prompt, count)
            sequences.append({"prompt": prompt, "expect": expect, "margin": margin,
                              "last_logits": logits_after(prompt + expect[:-1])})
        golden = {"reference": "plain", "sequences": sequences, "logits": logits_after([2, 3, 4])}
        change(golden)
        return self.write("golden.json", json.dumps(golden))

    def check(self, change=lambda golden: None, *arguments):
        return run("--check", self.golden(change), *arguments)

    def test_pass(self):
        for arguments in ((), ("--chunk", "1"), ("--threads", "3")):
            result = self.check(lambda golden: None, *arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("3 sequences: 3 pass, 0 tie, 0 wrong; 4 rows of logits, greatest difference 0; ok", result.stdout)

    def test_wrong_token(self):
        def change(golden):
            golden["sequences"][2]["expect"][4] += 1
            golden["sequences"][2]["margin"][4] = 0.5
        result = self.check(change)
        self.assertEqual(result.returncode, 1)
        self.assertIn("sequences[2]: wrong at step 4 of 10: expected", result.stdout)
        self.assertIn("2 pass, 0 tie, 1 wrong; 3 rows", result.stdout)

    def test_tie_ends_the_judging(self):
        def change(golden):
            sequence = golden["sequences"][0]
            sequence["expect"][3] += 1
            sequence["margin"][3] = 0.0005
            sequence["expect"][5] += 1
            sequence["last_logits"][0] += 100
        result = self.check(change)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("sequences[0]: tie at step 3", result.stdout)
        self.assertEqual(self.check(change, "--margin-tolerance", "0.0004").returncode, 1)
        report = json.loads(self.check(change, "--json").stdout)
        self.assertEqual((report["ok"], report["pass"], report["tie"], report["wrong"]), (True, 2, 1, 0))

    def test_no_margin_is_no_tie(self):
        def change(golden):
            golden["sequences"][0]["expect"][3] += 1
            del golden["sequences"][0]["margin"]
        self.assertEqual(self.check(change).returncode, 1)

    def test_logits(self):
        def prompt_logits(golden):
            golden["logits"][7] += 0.25
        def last_logits(golden):
            golden["sequences"][1]["last_logits"][9] -= 0.25
        for change, name in ((prompt_logits, "logits: wrong, greatest difference 0.25 at index "),
                             (last_logits, "sequences[1].last_logits: wrong, greatest difference 0.25 at index ")):
            result = self.check(change)
            self.assertEqual(result.returncode, 1)
            self.assertIn(name, result.stdout)
            self.assertEqual(self.check(change, "--tolerance", "0.26").returncode, 0)

    def test_last_logits_of_a_last_token_that_differs(self):
        def change(golden):
            golden["sequences"][1]["expect"][5] += 1
            golden["sequences"][1]["margin"][5] = 0
            golden["sequences"][1]["last_logits"][0] += 1
        result = self.check(change)
        self.assertIn("sequences[1]: tie at step 5", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_nan(self):
        def change(golden):
            golden["sequences"][1]["prompt"][0] = POISON
        self.assertRefused(self.check(change), "sequences[1]", "NaN at position 2")

    def test_malformed(self):
        for content, text in (("", ":1:1: error: "), ("{\n \"sequences\": [}", ":2:16: error: syntax error"),
                              ("[]", "an object with an array 'sequences'"), ('{"sequences": []}', "empty"),
                              ('{"sequences": [3]}', ":1:16: error: 'sequences[]' must be an object, not number"),
                              ('{"sequences": [{"prompt": [1]}]}', ":1:16: error: sequence has no 'expect'"),
                              ('{"sequences": [{"prompt": [1],\n"expect": [1, 64]}]}',
                               ":2:15: error: 'expect[1]' is 64; the vocabulary has 64 ids"),
                              ('{"sequences": [{"prompt": [1], "expect": [1.5]}]}', "must be a token id, not 1.5"),
                              ('{"sequences": [{"prompt": [], "expect": [1]}]}', "'prompt' is empty"),
                              ('{"sequences": [{"prompt": [1], "expect": [1], "margin": [1, 2]}]}',
                               "'margin' has 2 numbers; 'expect' has 1"),
                              ('{"sequences": [{"prompt": [1], "expect": [1]}], "logits": [1]}',
                               "'logits' has 1 numbers; the vocabulary has 64"),
                              ('{"sequences": [{"prompt": [%s], "expect": [1, 1]}]}' % ",".join(["1"] * 40),
                               "sequence needs 41 cache positions"),
                              ("[" * 100000, ": error: ")):
            path = self.write("bad.json", content)
            self.assertRefused(run("--check", path), path + ":", text)

    def test_unreadable(self):
        self.assertRefused(run("--check", self.path("none.json")), "none.json: error: cannot open: No such file")
        self.assertRefused(run("--check", self.scratch), "cannot read: Is a directory")


class Logits(Case):
    def test_safetensors(self):
        path = self.path("l.safetensors")
        result = run("--tokens", "3,4", "-n", "5", "--ignore-eos", "--logits", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(path, "rb") as file:
            length, = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
            data = file.read()
        expect = greedy([3, 4], 5)[0]
        self.assertEqual(header["logits"]["shape"], [5, VOCABULARY])
        rows = struct.unpack_from(f"<{5 * VOCABULARY}f", data)
        for i in range(5):
            self.assertEqual(list(rows[i * VOCABULARY:(i + 1) * VOCABULARY]), logits_after([3, 4] + expect[:i]))
        tokens = struct.unpack_from("<5i", data, header["tokens"]["data_offsets"][0])
        self.assertEqual(list(tokens), expect)
        self.assertEqual(header["prompt"]["data_offsets"][1], len(data))
        self.assertEqual(os.listdir(self.scratch), ["l.safetensors"])

    def test_refusals_leave_nothing(self):
        self.assertRefused(run("--tokens", "3", "--logits", self.path("no/l")), "cannot create")
        self.assertRefused(run("--tokens", "3", "--logits", "/dev/null"), "not a regular file")
        self.assertRefused(run("--tokens", str(POISON), "--logits", self.path("l")), "NaN")
        self.assertEqual(os.listdir(self.scratch), [])


class Weights(Case):
    def test_verify(self):
        result = run("--verify")
        self.assertEqual(result.returncode, 0)
        self.assertIn("segment 'weights': 64 bytes, ok", result.stdout)

    def damaged(self, change):
        folder = self.copy("damaged")
        with open(os.path.join(folder, "model.weights"), "rb") as file:
            content = bytearray(file.read())
        changed = change(content)
        content = content if changed is None else changed
        self.write("damaged/model.weights", bytes(content))
        return folder

    def test_damaged_content_is_found_by_verify(self):
        def change(content):
            content[4100] ^= 1
        folder = self.damaged(change)
        self.assertRefused(run("--verify", folder=folder), "segment 'weights' (64 bytes) has digest", "it should be")

    def test_damaged_header(self):
        def flip(position):
            def change(content):
                content[position] ^= 1
            return change
        self.assertRefused(run("--tokens", "1", folder=self.damaged(flip(0))), "not a weights file")
        for position in (8, 12, 16, 24, 40, 64, 72, 100, 600):
            self.assertRefused(run("--tokens", "1", folder=self.damaged(flip(position))), "checksum is", "it says")

    def test_truncated(self):
        self.assertRefused(run("--tokens", "1", folder=self.damaged(lambda c: c[:8000])), "file has 8000 bytes",
                           "its header says 8192")
        self.assertRefused(run("--tokens", "1", folder=self.damaged(lambda c: c + b"x")), "8193", "8192")
        self.assertRefused(run("--tokens", "1", folder=self.damaged(lambda c: c[:100])), "100 bytes", "8192")
        self.assertRefused(run("--tokens", "1", folder=self.damaged(lambda c: b"")), "0 bytes")

    def test_swapped(self):
        self.assertRefused(run("--tokens", "1", "--weights", os.path.join(FOLDER, "other.weights")),
                           "weights of another program", "their id is", "compiled with")

    def test_missing_and_odd_files(self):
        folder = self.copy("lonely")
        os.unlink(os.path.join(folder, "model.weights"))
        self.assertRefused(run("--tokens", "1", folder=folder), "lonely/model.weights: error: cannot open: No such file",
                           "--weights FILE")
        os.mkfifo(os.path.join(folder, "model.weights"))
        self.assertRefused(run("--tokens", "1", folder=folder), "not a regular file")
        self.assertRefused(run("--tokens", "1", "--weights", self.scratch), "not a regular file")

    def test_moved_renamed_linked(self):
        expected = run("--tokens", "1,2", "-n", "4").stdout
        folder = self.copy("mit Leerzeichen", "und ünïcødé 語")
        self.assertEqual(run("--tokens", "1,2", "-n", "4", folder=folder, cwd="/").stdout, expected)
        os.symlink(os.path.join(folder, "model"), self.path("link"))
        self.assertEqual(run("--tokens", "1,2", "-n", "4", program="link", folder=self.scratch).stdout, expected)
        os.rename(folder, self.path("renamed"))
        os.rename(self.path("renamed/model"), self.path("renamed/kjv"))
        os.rename(self.path("renamed/model.weights"), self.path("renamed/kjv.weights"))
        result = subprocess.run(["./kjv", "--tokens", "1,2", "-n", "4"], cwd=self.path("renamed"), capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(result.stdout, expected)
        by_path = dict(os.environ, PATH=self.path("renamed"))
        result = subprocess.run(["kjv", "--tokens", "1,2", "-n", "4"], env=by_path, capture_output=True, text=True,
                                timeout=60)
        self.assertEqual(result.stdout, expected)


def byte_alphabet():
    """Returns the byte of every character that byte-level vocabularies write it as."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


@unittest.skipUnless(os.path.exists(os.path.join(FOLDER, "speaking")), "needs the compiler's tokenizer importer")
class Text(Case):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bytes.tokenizer.json")) as file:
            vocabulary = json.load(file)["model"]["vocab"]
        alphabet = byte_alphabet()
        cls.bytes = {number: bytes([alphabet[text]]) for text, number in vocabulary.items() if len(text) == 1}
        cls.ids = {byte: number for number, byte in cls.bytes.items()}

    def encode(self, text, special=True):
        return [0] * special + [self.ids[bytes([byte])] for byte in text.encode()]

    def decode(self, ids):
        return b"".join(self.bytes.get(number, b"") for number in ids).decode("utf-8", "replace")

    def continuation(self, text, count, special=True):
        return self.decode(greedy(self.encode(text, special), count)[0])

    def test_text(self):
        seen = ""
        for prompt in ("h", "one two", "é 語 😀", "", "a\nb"):
            result = run(prompt, "-n", "20", "--ignore-eos", program="speaking")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(result.stdout, self.continuation(prompt, 20) + "\n")
            seen += result.stdout
            answer = json.loads(run(prompt, "-n", "20", "--ignore-eos", "--json", program="speaking").stdout)
            self.assertEqual((answer["prompt"], answer["text"] + "\n"), (self.encode(prompt), result.stdout))
        # The model babbles bytes: pieces of characters have to occur for the test to mean anything.
        self.assertIn("\N{REPLACEMENT CHARACTER}", seen)

    def test_no_special(self):
        result = run("one", "-n", "9", "--ignore-eos", "--no-special", program="speaking")
        self.assertEqual(result.stdout, self.continuation("one", 9, special=False) + "\n")
        self.assertRefused(run("", "--no-special", program="speaking"), "the prompt has no tokens")

    def test_standard_input(self):
        for given, prompt in (("one\n", "one"), ("one", "one"), ("one\n\n", "one\n"), ("", "")):
            result = run("-", "-n", "9", "--ignore-eos", program="speaking", input=given)
            self.assertEqual(result.stdout, self.continuation(prompt, 9) + "\n")

    def test_every_write_is_whole_characters(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            subprocess.run([os.path.join(FOLDER, "speaking"), "語é", "-n", "30", "--ignore-eos"],
                           stdout=theirs, check=True, timeout=60)
            theirs.close()
            pieces = []
            while piece := ours.recv(1 << 16):
                pieces.append(piece.decode("utf-8"))
        self.assertEqual("".join(pieces), self.continuation("語é", 30) + "\n")
        self.assertGreater(len(pieces), 10)

    def test_prompts(self):
        path = self.write("p.jsonl", '"one"\n{"prompt": "\\u8a9e", "n": 4}\n')
        lines = [json.loads(line) for line in
                 run("--prompts", path, "-n", "6", "--ignore-eos", program="speaking").stdout.splitlines()]
        self.assertEqual([line["text"] for line in lines], [self.continuation("one", 6), self.continuation("語", 4)])

    def test_check_of_texts(self):
        prompt = self.encode("one two")
        expect, margin = greedy(prompt, 12)
        sequence = {"text": "one two", "prompt": prompt, "expect": expect, "margin": margin,
                    "expect_text": self.decode(expect)}
        result = run("--check", self.write("g.json", json.dumps({"sequences": [sequence]})), program="speaking")
        self.assertEqual(result.returncode, 0, result.stdout)
        for key, fault in (("text", "the text encodes to 0,"), ("expect_text", "the expected ids decode to")):
            other = dict(sequence, **{key: "one twa"})
            result = run("--check", self.write("g.json", json.dumps({"sequences": [other]})), program="speaking")
            self.assertEqual(result.returncode, 1)
            self.assertIn("sequences[0]: wrong text: " + fault, result.stdout)
        unchecked = run("--check", self.path("g.json"))
        self.assertEqual(unchecked.returncode, 0)
        self.assertIn("texts: not checked, this model has no tokenizer", unchecked.stdout)

    def test_bytes_that_are_no_text(self):
        path = self.write("noise", bytes(range(128, 256)))
        with open(path, "rb") as noise:
            result = run("-", "-n", "3", program="speaking", stdin=noise)
        self.assertIn(result.returncode, (0, 1))
        self.assertLessEqual(result.stderr.count("\n"), 1)


class Usage(Case):
    def test_usage_errors(self):
        for arguments, text in (((), "no prompt"), (("--token", "1"), "did you mean '--tokens'?"),
                                (("--tokens",), "takes a value, IDS"), (("--tokens", "1,x"), "'x' is none"),
                                (("--tokens", ""), "there is none"), (("a", "b"), "a second prompt 'b'"),
                                (("a", "-n", "x"), "takes a whole number, not 'x'"), (("a", "-n-1"), "not -1"),
                                (("a", "--threads", "0"), "from 1 to 1024"), (("a", "--chunk=0"), "from 1 to"),
                                (("a", "--json=yes"), "takes no value"), (("a", "--tolerance", "nan"), "at least 0"),
                                (("a", "--info"), "more than one of"), (("--check", "f", "--logits", "x"), "goes with"),
                                (("-q",), "unknown option '-q'")):
            self.assertRefused(run(*arguments), "error: ", text, status=2)

    def test_help_version_info(self):
        help_text = run("--help").stdout
        for option in ("--gpu-memory", "--profile", "-n N", "--tokens", "--prompts", "--check", "--info", "--verify", "--threads", "--chunk", "--weights",
                       "--logits", "--json", "--ignore-eos", "--no-special", "--tolerance", "--margin-tolerance",
                       "--stats", "--version", "--help"):
            self.assertIn("  " + option, help_text)
        self.assertTrue(all(len(line) <= 100 for line in help_text.splitlines()))
        self.assertRegex(run("--version").stdout, r"^fake model compiled by mcc 0.1.0; runtime \d+\.\d+\.\d+, ABI \d+\n$")
        info = json.loads(run("--info").stdout)
        self.assertEqual((info["family"], info["context"], info["eos"]), ("fake", CONTEXT, [END]))

    def test_dash_dash(self):
        self.assertRefused(run("--", "--info"), "no tokenizer")


class Pipes(Case):
    def shell(self, script):
        return subprocess.run(["bash", "-c", script], cwd=FOLDER, capture_output=True, text=True, timeout=60)

    def test_reader_leaves_early(self):
        for arguments in ("--tokens 1", "--tokens 1 --json", "--info", "--help",
                          "--prompts <(yes '{\"tokens\": [1]}')"):
            result = self.shell(f"./model {arguments} -n 38 --ignore-eos | head -c 5; echo $? ${{PIPESTATUS[0]}} >&2")
            self.assertEqual(result.stderr.splitlines()[-1], "0 0", (arguments, result.stderr))
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_full_disk_and_closed_output(self):
        result = self.shell("./model --tokens 1 -n 3 > /dev/full")
        self.assertEqual((result.returncode, result.stderr),
                         (1, "error: cannot write standard output: No space left on device\n"))
        self.assertEqual(self.shell("./model --tokens 1 -n 3 >&-").returncode, 1)


class Processor(Case):
    @unittest.skipIf(os.environ.get("MCC_SANITIZED") == "1", "sanitizers and emulation do not go together")
    @unittest.skipUnless(shutil.which("qemu-x86_64"), "needs qemu-x86_64")
    def test_old_processor(self):
        def emulated(program, cpu):
            result = subprocess.run(["qemu-x86_64", "-cpu", cpu, os.path.join(FOLDER, program), "--weights",
                                     os.path.join(FOLDER, "model.weights"), "--tokens", "1,2", "-n", "4"],
                                    capture_output=True, text=True, timeout=120)
            # The emulator's own warnings are about features that nobody asked for.
            result.stderr = "".join(line for line in result.stderr.splitlines(True) if not line.startswith("qemu"))
            return result
        result = emulated("demanding", "Nehalem")
        self.assertRefused(result, "compiled for the CPU 'cooperlake'", "lacks: avx2 fma avx512f", "--target-cpu")
        self.assertRefused(emulated("demanding", "Haswell"), "lacks: avx512f;")
        # Without demands the runtime itself runs on the first x86-64.
        self.assertEqual(emulated("model", "qemu64").stdout, run("--tokens", "1,2", "-n", "4").stdout)

    def test_unknown_feature(self):
        self.assertRefused(run("--tokens", "1", "--weights", os.path.join(FOLDER, "model.weights"), program="puzzling"),
                           "cannot be tested for: warp9")


class Linkage(Case):
    @unittest.skipIf(os.environ.get("MCC_SANITIZED") == "1", "sanitized builds link more")
    def test_needs_libc_and_libm_only(self):
        listing = subprocess.run(["ldd", os.path.join(FOLDER, "model")], capture_output=True, text=True).stdout
        names = {line.split()[0].split("/")[-1] for line in listing.splitlines()}
        self.assertLessEqual(names, {"linux-vdso.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"})
        self.assertLess(os.path.getsize(os.path.join(FOLDER, "model")), 2 << 20)


if __name__ == "__main__":
    unittest.main()
