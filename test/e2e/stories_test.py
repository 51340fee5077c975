"""A trained model in every published form: GGUF and Hugging Face folders give the recorded ids; quantised GGUFs
give what their exactly dequantised weights give."""
import os
import struct

import gguf_reader
import support
from support import ORACLE, TestCase, model_of, read_json

STORIES = os.path.join(ORACLE or "", "stories260K")
QUANTISED = os.path.join(ORACLE or "", "gguf", "quantised")
FORMS = ("stories260K.gguf", "hf-f32", "hf-bf16-sharded3", "hf-f16-untied")
TYPES = ("f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
# llama.cpp quantises activations, we do not: a trained model's text parts ways late.
SHORTEST_COMMON_PREFIX = 8


def generated(test, model, prompt, count, *options):
    tokens = ",".join(str(token) for token in prompt)
    return test.ran(model, "--tokens", tokens, "-n", count, *options).ids()


def common_prefix(first, second):
    return next((step for step, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))


class Forms(TestCase):
    def test_recorded_ids(self):
        golden = read_json(STORIES, "greedy_f64_python.json")
        for form in FORMS:
            for options in ([], ["--chunk", "1", "--threads", "1"]):
                with self.subTest(form=form, options=options):
                    ids = generated(self, model_of(os.path.join(STORIES, form)), golden["input_ids"], 200, *options)
                    self.assertEqual(ids, golden["output_ids"])

    def test_text(self):
        golden = read_json(STORIES, "greedy_f64_python.json")
        for form in FORMS:
            with self.subTest(form=form):
                done = self.ran(model_of(os.path.join(STORIES, form)), "Once upon a time", "-n", "190")
                self.assertIn(golden["text"][len("Once upon a time"):500], done.out)

    def test_gguf_and_folder_tokenise_alike(self):
        prompts = ["Lily and Tom", "  two spaces", "naïve café 日本", "One\ntwo\n\nthree", "tab\there", "🙂"]
        for prompt in prompts:
            with self.subTest(prompt=prompt):
                texts = {form: self.ran(model_of(os.path.join(STORIES, form)), prompt, "-n", "24").out
                         for form in ("stories260K.gguf", "hf-f32")}
                self.assertEqual(texts["stories260K.gguf"], texts["hf-f32"])


class Quantised(TestCase):
    def compiled_exactly(self, name):
        """Compiles the exactly dequantised weights of a GGUF, as a Hugging Face folder in float32."""
        tensors = gguf_reader.hugging_face_tensors(os.path.join(QUANTISED, name))

        def edit(stored):
            for key, (_, shape, _) in list(stored.items()):
                values = tensors[key]
                stored[key] = ("F32", shape, struct.pack(f"<{len(values)}f", *values))
        return model_of(support.variant(os.path.join(STORIES, "hf-f32"), edit_tensors=edit))

    def test_equal_to_exact_dequantisation(self):
        for kind in TYPES:
            name = f"stories260K.{kind}.gguf"
            with self.subTest(type=kind):
                exact = self.compiled_exactly(name)
                for prompt in ([1], [1, 403, 407, 261]):
                    ids = generated(self, model_of(os.path.join(QUANTISED, name)), prompt, 100)
                    self.assertEqual(ids, generated(self, exact, prompt, 100))

    def test_close_to_llama_cpp(self):
        results = read_json(QUANTISED, "llama_cpp_greedy.json")["results"]
        for kind in TYPES:
            name = f"stories260K.{kind}.gguf"
            for case in results[name]:
                with self.subTest(type=kind, prompt=case["prompt"]):
                    expected = case["output_ids"]
                    ids = generated(self, model_of(os.path.join(QUANTISED, name)), case["input_ids"], len(expected))
                    common = common_prefix(ids, expected)
                    if kind == "f16":
                        self.assertEqual(common, len(expected))
                    else:
                        self.assertGreaterEqual(common, min(SHORTEST_COMMON_PREFIX, len(expected)))


if __name__ == "__main__":
    support.main(needs_oracle=True)
