"""A trained model in every published form: GGUF and Hugging Face folders give the recorded ids; quantised GGUFs
give what their exactly dequantised weights give."""
import os
import struct
import tempfile

import gguf_reader
import support
from support import ORACLE, TestCase, floats, model_of, read_json, read_safetensors

STORIES = os.path.join(ORACLE or "", "stories260K")
QUANTISED = os.path.join(ORACLE or "", "gguf", "quantised")
FORMS = ("stories260K.gguf", "hf-f32", "hf-bf16-sharded3", "hf-f16-untied")
TYPES = ("f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
# A difference is a near tie where our own logit of the other token is less than this below the largest.
# The recorded ids are those of the float32 weights; rounded to bfloat16 they have one step whose two best logits lie
# 0.0009 apart in double precision, the other way round.
ROUNDED_WEIGHTS = 1e-3
# llama.cpp rounds activations to 8 bits, which moves this small model's logits by up to 0.09.
ROUNDED_ACTIVATIONS = 0.1


def generated(test, model, prompt, count, *options):
    """Returns (ids, logits of each step)."""
    tokens = ",".join(str(token) for token in prompt)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "logits.safetensors")
        ids = test.ran(model, "--tokens", tokens, "-n", count, "--logits", path, *options).ids()
        values = floats(read_safetensors(path)["logits"])
    width = len(values) // max(len(ids), 1)
    return ids, [values[start:start + width] for start in range(0, len(values), width)]


class StoriesCase(TestCase):
    def agree(self, model, prompt, expected, tolerance, *options):
        """Asserts that the first id that is not the expected one, if any, is a near tie."""
        ids, logits = generated(self, model, prompt, len(expected), *options)
        for step, (got, wanted) in enumerate(zip(ids, expected)):
            if got != wanted:
                margin = logits[step][got] - logits[step][wanted]
                self.assertLess(margin, tolerance, f"step {step}: {got} instead of {wanted}")
                return
        self.assertEqual(len(ids), len(expected))


class Forms(StoriesCase):
    def test_recorded_ids(self):
        golden = read_json(STORIES, "greedy_f64_python.json")
        for form in FORMS:
            for options in ([], ["--chunk", "1", "--threads", "1"]):
                with self.subTest(form=form, options=options):
                    tolerance = ROUNDED_WEIGHTS if "bf16" in form else 0
                    model = model_of(os.path.join(STORIES, form))
                    self.agree(model, golden["input_ids"], golden["output_ids"], tolerance, *options)

    def test_text(self):
        golden = read_json(STORIES, "greedy_f64_python.json")
        for form in FORMS:
            with self.subTest(form=form):
                done = self.ran(model_of(os.path.join(STORIES, form)), "Once upon a time", "-n", "196")
                self.assertIn(golden["text"][len("Once upon a time"):400], done.out)

    def test_gguf_and_folder_tokenise_alike(self):
        prompts = ["Lily and Tom", "  two spaces", "naïve café 日本", "One\ntwo\n\nthree", "tab\there", "🙂"]
        for prompt in prompts:
            with self.subTest(prompt=prompt):
                texts = {form: self.ran(model_of(os.path.join(STORIES, form)), prompt, "-n", "24").out
                         for form in ("stories260K.gguf", "hf-f32")}
                self.assertEqual(texts["stories260K.gguf"], texts["hf-f32"])


class Quantised(StoriesCase):
    def compiled_exactly(self, name):
        """Compiles the exactly dequantised weights of a GGUF, as a Hugging Face folder in float32."""
        tensors = gguf_reader.hugging_face_tensors(os.path.join(QUANTISED, name))

        def edit(stored):
            stored["lm_head.weight"] = stored["model.embed_tokens.weight"]
            for key, (_, shape, _) in list(stored.items()):
                stored[key] = ("F32", shape, struct.pack(f"<{len(tensors[key])}f", *tensors[key]))
        untied = lambda config: config.update(tie_word_embeddings=False)
        return model_of(support.variant(os.path.join(STORIES, "hf-f32"), untied, edit))

    def test_equal_to_exact_dequantisation(self):
        for kind in TYPES:
            name = f"stories260K.{kind}.gguf"
            with self.subTest(type=kind):
                exact = self.compiled_exactly(name)
                for prompt in ([1], [1, 403, 407, 261]):
                    ids, logits = generated(self, model_of(os.path.join(QUANTISED, name)), prompt, 100)
                    exact_ids, exact_logits = generated(self, exact, prompt, 100)
                    self.assertEqual(ids, exact_ids)
                    greatest = max(abs(a - b) for row, other in zip(logits, exact_logits) for a, b in zip(row, other))
                    self.assertLess(greatest, 1e-3)

    def test_close_to_llama_cpp(self):
        results = read_json(QUANTISED, "llama_cpp_greedy.json")["results"]
        for kind in TYPES:
            name = f"stories260K.{kind}.gguf"
            for case in results[name]:
                with self.subTest(type=kind, prompt=case["prompt"]):
                    self.agree(model_of(os.path.join(QUANTISED, name)), case["input_ids"], case["output_ids"], ROUNDED_ACTIVATIONS)


if __name__ == "__main__":
    support.main(needs_oracle=True)
