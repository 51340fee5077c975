"""The example model, used in every way that its README and --help promise."""
import json
import os
import struct
import tempfile

import support
from support import KJV, TestCase, model_of, read_json, read_safetensors, floats

GOLDEN = os.path.join(KJV, "golden.json")
SEQUENCES = read_json(GOLDEN)["sequences"]


def model():
    return model_of(os.path.join(KJV, "config.json"), os.path.join(KJV, "model.safetensors"))


def joined(ids):
    return ",".join(str(token) for token in ids)


class Generation(TestCase):
    def test_check(self):
        done = self.ran(model(), "--check", GOLDEN)
        self.assertIn("5", done.out + done.err)

    def test_text(self):
        for sequence in SEQUENCES:
            done = self.ran(model(), sequence["text"], "-n", len(sequence["expect"]))
            self.assertIn(sequence["expect_text"].strip(), done.out)

    def test_tokens(self):
        for sequence in SEQUENCES:
            done = self.ran(model(), "--tokens", joined(sequence["prompt"]), "-n", len(sequence["expect"]))
            self.assertEqual(done.ids(), sequence["expect"])

    def test_tokens_of_the_issue(self):
        done = self.ran(model(), "--tokens", "0,517,62", "-n", "16")
        self.assertEqual(len(done.ids()), 16)
        self.assertTrue(all(0 <= token < 2048 for token in done.ids()))

    def test_count(self):
        for count in (0, 1, 2, 17):
            done = self.ran(model(), "--tokens", joined(SEQUENCES[0]["prompt"]), "-n", count)
            self.assertEqual(done.ids(), SEQUENCES[0]["expect"][:count])

    def test_a_folder_is_enough(self):
        done = self.ran(model_of(KJV), "--check", GOLDEN)
        self.assertEqual(done.code, 0)

    def test_output_is_utf8_for_any_prompt(self):
        for prompt in ("é", "日本語の", "🙂 and", "\u200d\u0301"):
            done = self.ran(model(), prompt, "-n", "40")
            done.raw_out.decode("utf-8")  # raises on half a character

    def test_json(self):
        done = self.ran(model(), "In the beginning", "-n", "8", "--json")
        records = [json.loads(line) for line in done.out.splitlines()]
        self.assertTrue(records)
        text = json.dumps(records)
        for token in SEQUENCES[0]["expect"][:8]:
            self.assertIn(str(token), text)

    def test_prompts_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            for sequence in SEQUENCES:
                file.write(json.dumps({"prompt": sequence["text"]}) + "\n")
            file.flush()
            done = self.ran(model(), "--prompts", file.name, "-n", "16", "--json")
        records = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(len(records), len(SEQUENCES))
        for record, sequence in zip(records, SEQUENCES):
            self.assertIn(sequence["expect"][:16], list(record.values()))


class Determinism(TestCase):
    """D5: bit-equal logits for every thread count and every chunking of the prompt."""

    def logits(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "logits.safetensors")
            prompt = SEQUENCES[1]["prompt"] + SEQUENCES[1]["expect"]
            self.ran(model(), "--tokens", joined(prompt), "-n", "12", "--logits", path, *options)
            return read_safetensors(path)

    def test_threads_and_chunks(self):
        reference = self.logits("--threads", "1")
        self.assertEqual(reference["logits"][:2], ("F32", [12, 2048]))
        for options in (["--threads", "2"], ["--threads", "3"], ["--threads", "1", "--chunk", "1"],
                        ["--threads", "2", "--chunk", "7"], ["--chunk", "16"]):
            self.assertTrue(self.logits(*options) == reference, f"logits differ with {options}")

    def test_check_with_threads_and_chunks(self):
        for options in (["--chunk", "1"], ["--threads", "1"], ["--threads", "2", "--chunk", "3"], ["--threads", "5"]):
            self.ran(model(), "--check", GOLDEN, *options)

    def test_logits_choose_the_tokens(self):
        written = self.logits()
        prompt = SEQUENCES[1]["prompt"] + SEQUENCES[1]["expect"]
        ids = self.ran(model(), "--tokens", joined(prompt), "-n", "12").ids()
        values = floats(written["logits"])
        best = [max(range(2048), key=values[start:start + 2048].__getitem__) for start in range(0, len(values), 2048)]
        self.assertEqual(best, ids)
        self.assertEqual(list(struct.unpack("<12i", written["tokens"][2])), ids)
        self.assertEqual(len(written["prompt"][2]), 4 * len(prompt))


class Check(TestCase):
    """--check tells pass, tie and wrong apart."""

    def checked(self, edit, *options, code):
        golden = read_json(GOLDEN)
        edit(golden["sequences"])
        for sequence in golden["sequences"]:
            del sequence["expect_text"]  # no longer what the edited ids decode to
        with tempfile.TemporaryDirectory() as folder:
            return self.ran(model(), "--check", support.write_json(golden, folder, "golden.json"), *options, code=code)

    def test_a_wrong_token(self):
        def edit(sequences):
            sequences[2]["expect"][7] = (sequences[2]["expect"][7] + 1) % 2048
        done = self.checked(edit, code=1)
        report = done.out + done.err
        self.assertRegex(report, "(?i)wrong")
        self.assertIn("7", report)
        self.assertIn(str(SEQUENCES[2]["expect"][7]), report)

    def test_a_tie(self):
        def edit(sequences):
            sequences[2]["expect"][7] = (sequences[2]["expect"][7] + 1) % 2048
            sequences[2]["margin"][7] = 0.0001
        done = self.checked(edit, code=0)
        self.assertRegex(done.out + done.err, "(?i)tie")

    def test_tolerance_makes_a_tie(self):
        def edit(sequences):
            sequences[2]["expect"][7] = (sequences[2]["expect"][7] + 1) % 2048
            sequences[2]["margin"][7] = 0.01
        self.checked(edit, code=1)
        self.checked(edit, "--margin-tolerance", "0.02", code=0)

    def test_a_wrong_text(self):
        golden = read_json(GOLDEN)
        golden["sequences"][0]["expect_text"] += "!"
        with tempfile.TemporaryDirectory() as folder:
            done = self.ran(model(), "--check", support.write_json(golden, folder, "golden.json"), code=1)
        self.assertIn("wrong text", done.out + done.err)

    def test_a_wrong_logit(self):
        with tempfile.TemporaryDirectory() as folder:
            family = os.path.join(support.FAMILIES, "qwen2")
            golden = read_json(family, "golden.json")
            golden["logits"][5] += 0.05
            path = support.write_json(golden, folder, "golden.json")
            done = self.ran(model_of(family), "--check", path, code=1)
            self.assertRegex(done.out + done.err, "logit")
            self.ran(model_of(family), "--check", path, "--tolerance", "0.06")


class Options(TestCase):
    def test_help(self):
        done = self.ran(model(), "--help")
        for option in ("-n", "--tokens", "--threads", "--json", "--prompts", "--info", "--check", "--logits", "--version"):
            self.assertIn(option, done.out)

    def test_version(self):
        self.assertRegex(self.ran(model(), "--version").out, r"\d+\.\d+")

    def test_info(self):
        info = json.loads(self.ran(model(), "--info").out)
        self.assertEqual(info["family"], "llama")

    def test_context_is_chosen_at_compile_time(self):
        small = model_of(KJV, "--ctx", "32")
        done = self.ran(small, "--tokens", joined(SEQUENCES[0]["prompt"]), "-n", "100")
        self.assertLessEqual(len(done.ids()), 32)
        self.assertGreaterEqual(len(done.ids()), 32 - len(SEQUENCES[0]["prompt"]))
        self.assertRegex(done.err, "32")
        self.assertEqual(done.ids()[:20], SEQUENCES[0]["expect"][:20])


class EndOfSequence(TestCase):
    """Generation stops at every id that the config or generation_config.json names, and prints none of them."""

    def stopped_by(self, edit):
        folder = support.variant(KJV)
        edit(folder)
        return self.ran(model_of(folder), "--tokens", joined(SEQUENCES[0]["prompt"]), "-n", "48").ids()

    def test_config(self):
        token = SEQUENCES[0]["expect"][12]
        first = SEQUENCES[0]["expect"].index(token)

        def edit(folder):
            os.remove(os.path.join(folder, "generation_config.json"))
            config = read_json(folder, "config.json")
            config["eos_token_id"] = token
            support.write_json(config, folder, "config.json")
        self.assertEqual(self.stopped_by(edit), SEQUENCES[0]["expect"][:first])

    def test_generation_config_list(self):
        tokens = [2047, SEQUENCES[0]["expect"][20]]
        first = SEQUENCES[0]["expect"].index(tokens[1])

        def edit(folder):
            config = read_json(folder, "generation_config.json")
            config["eos_token_id"] = tokens
            support.write_json(config, folder, "generation_config.json")
        self.assertEqual(self.stopped_by(edit), SEQUENCES[0]["expect"][:first])


if __name__ == "__main__":
    support.main()
