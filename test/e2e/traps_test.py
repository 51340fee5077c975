"""Traps that have caught other engines: what a config says that is easily overlooked. Each variant is compared with one that must
give the same, or must not. (Permuted q and k, Gemma's +1, and what else differs between files is in arch_pairs_test.py; routers,
windows and slopes position by position in test/unit/kernels.)
"""
import os

import support
from support import FAMILIES, TestCase, model_of, read_safetensors, run, variant

LLAMA = os.path.join(FAMILIES, "llama")
QWEN2 = os.path.join(FAMILIES, "qwen2")
MISTRAL = os.path.join(FAMILIES, "mistral-window")
PROMPT = "5,17,99,3,42,8,120,77,31,64,12,150,9,88,21,53,140,6,71,33,101,2,47,90"


def ids_of(model, *options, prompt=PROMPT, n=24):
    done = run(model, "--tokens", prompt, "-n", n, *options)
    assert done.code == 0, done
    return done.ids()


def logits_of(folder, *options, prompt=PROMPT):
    """Returns the logits after the prompt, bit by bit."""
    path = os.path.join(support.scratch("logits"), "l.safetensors")
    done = run(model_of(folder), "--tokens", prompt, "-n", 1, "--logits", path, *options)
    assert done.code == 0, done
    return read_safetensors(path)["logits"][2]


def rope(**parameters):
    def edit(config):
        config["rope_parameters"] = {"rope_theta": 10000.0, **parameters}
    return edit


class LongRope(TestCase):
    """Short factors hold while the sequence is within the original window, whatever the context that is allocated."""

    def folder(self, original, short=1.0, long=4.0):
        factors = {"short_factor": [short] * 8, "long_factor": [long] * 8}
        return variant(LLAMA, lambda config: (rope(rope_type="longrope", factor=4.0, attention_factor=1.0, original_max_position_embeddings=original, **factors)(config),
                                              config.update(original_max_position_embeddings=original)))

    def test_short_within_the_window(self):
        self.assertEqual(logits_of(self.folder(200)), logits_of(LLAMA))
        self.assertEqual(ids_of(model_of(self.folder(200))), ids_of(model_of(LLAMA)))

    def test_long_beyond_it(self):
        linear = variant(LLAMA, rope(rope_type="linear", factor=4.0))
        folder = self.folder(16)
        self.assertEqual(logits_of(folder), logits_of(linear))
        self.assertNotEqual(logits_of(folder), logits_of(LLAMA))
        # The whole prompt counts, also where it is taken token by token.
        self.assertEqual(logits_of(folder, "--chunk", "1"), logits_of(linear))

    def test_exactly_at_the_border(self):
        self.assertEqual(logits_of(self.folder(24)), logits_of(LLAMA))
        self.assertNotEqual(logits_of(self.folder(23)), logits_of(LLAMA))

    def test_a_sequence_grows_out_of_it(self):
        """Until the border the ids are those of short factors; the sequence after it still runs."""
        ids = ids_of(model_of(self.folder(30)))
        self.assertEqual(ids[:7], ids_of(model_of(LLAMA))[:7])
        self.assertEqual(len(ids), 24)

    def test_the_attention_factor_follows_from_the_lengths(self):
        plain = self.folder(64, long=1.0)
        scaled = variant(LLAMA, lambda config: (rope(rope_type="longrope", short_factor=[1.0] * 8, long_factor=[1.0] * 8, original_max_position_embeddings=64)(config),
                                                config.update(original_max_position_embeddings=64)))
        self.assertNotEqual(logits_of(plain), logits_of(scaled))


class Config(TestCase):
    def test_the_rope_base_counts(self):
        self.assertNotEqual(logits_of(variant(LLAMA, lambda c: c["rope_parameters"].update(rope_theta=500.0))), logits_of(LLAMA))

    def test_the_norm_epsilon_counts(self):
        self.assertNotEqual(logits_of(variant(LLAMA, lambda c: c.update(rms_norm_eps=1e-2))), logits_of(LLAMA))

    def test_erf_and_tanh_gelu_differ(self):
        erf, tanh, silu = (logits_of(variant(LLAMA, lambda c, name=name: c.update(hidden_act=name))) for name in ("gelu", "gelu_pytorch_tanh", "silu"))
        self.assertEqual(len({erf, tanh, silu}), 3)
        self.assertEqual(silu, logits_of(LLAMA))

    def test_an_unknown_activation_is_refused(self):
        done = run(support.MCC, variant(LLAMA, lambda c: c.update(hidden_act="wiggle")), "-o", support.scratch("none"))
        self.diagnosed(done, "hidden_act", "wiggle")

    def test_an_unknown_rope_is_refused(self):
        done = run(support.MCC, variant(LLAMA, rope(rope_type="spiral")), "-o", support.scratch("none"))
        self.diagnosed(done, "rope_type", "spiral")

    def test_an_unknown_quantisation_is_refused(self):
        done = run(support.MCC, variant(LLAMA, lambda c: c.update(quantization_config={"quant_method": "magic"})), "-o", support.scratch("none"))
        self.diagnosed(done, "quant_method", "magic")

    def test_keys_that_cannot_change_the_result_are_ignored(self):
        folder = variant(LLAMA, lambda c: c.update(use_cache=False, torchscript=True, attention_dropout=0.5, _name_or_path="elsewhere"))
        self.assertEqual(logits_of(folder), logits_of(LLAMA))


class Windows(TestCase):
    def test_a_window_that_is_switched_off(self):
        """Qwen writes a window and says beside it that it does not count."""
        off = variant(QWEN2, lambda c: c.update(sliding_window=8, use_sliding_window=False, layer_types=None))
        self.assertEqual(logits_of(off), logits_of(QWEN2))
        on = variant(QWEN2, lambda c: c.update(sliding_window=8, use_sliding_window=True, max_window_layers=0, layer_types=["sliding_attention"] * 2))
        self.assertNotEqual(logits_of(on), logits_of(QWEN2))

    def test_which_layers_slide(self):
        """`max_window_layers` layers see everything, those after them slide; the newer list of types says the same."""
        older = variant(QWEN2, lambda c: (c.pop("layer_types"), c.update(sliding_window=8, use_sliding_window=True, max_window_layers=1)))
        newer = variant(QWEN2, lambda c: c.update(sliding_window=8, use_sliding_window=True, layer_types=["full_attention", "sliding_attention"]))
        swapped = variant(QWEN2, lambda c: c.update(sliding_window=8, use_sliding_window=True, layer_types=["sliding_attention", "full_attention"]))
        self.assertEqual(logits_of(older), logits_of(newer))
        self.assertNotEqual(logits_of(newer), logits_of(swapped))

    def test_windows_are_exact_to_one_position(self):
        """24 tokens: a window of 24 sees all, one of 23 does not."""
        of = {window: logits_of(variant(MISTRAL, lambda c, w=window: c.update(sliding_window=w))) for window in (None, 25, 24, 23)}
        self.assertEqual(of[24], of[None])
        self.assertEqual(of[25], of[None])
        self.assertNotEqual(of[23], of[None])


class Heads(TestCase):
    """Tied or not, stored or not: what the config says counts; a head that it needs must be there."""

    def edited(self, tied, stored):
        return variant(MISTRAL, lambda c: c.update(tie_word_embeddings=tied), None if stored else lambda tensors: tensors.pop("lm_head.weight"))

    def test_four_combinations(self):
        self.assertEqual(logits_of(self.edited(False, True)), logits_of(MISTRAL))
        tied = logits_of(self.edited(True, False))
        self.assertNotEqual(tied, logits_of(MISTRAL))
        self.assertEqual(logits_of(self.edited(True, True)), tied)
        done = run(support.MCC, self.edited(False, False), "-o", support.scratch("none"))
        self.diagnosed(done, "lm_head.weight")


class Experts(TestCase):
    """What the routers' and experts' kernels cannot hold is refused by field, not run over."""

    def refused(self, pack, field, **changes):
        folder = variant(os.path.join(FAMILIES, pack), lambda c: c.update(changes))
        done = run(support.MCC, os.path.join(folder, "config.json"), "random:1", "-o", support.scratch("none"))
        self.diagnosed(done, f"sets '{field}'")

    def test_too_many(self):
        self.refused("deepseek-v3", r"blocks\[1\].moe.experts", n_routed_experts=4096, n_group=2048, topk_group=2)

    def test_a_hidden_size_that_is_no_whole_number_of_panels(self):
        self.refused("granitemoe", "hidden", hidden_size=72, num_attention_heads=2, num_key_value_heads=2)


class Ends(TestCase):
    def test_several_end_tokens(self):
        plain = ids_of(model_of(LLAMA))
        # An id whose first place is neither the first nor the last.
        place = next(i for i in range(3, 20) if plain[i] not in plain[:i])
        folder = variant(LLAMA, lambda c: c.update(eos_token_id=[191, plain[place], 190]))
        self.assertEqual(ids_of(model_of(folder)), plain[:place])
        self.assertEqual(ids_of(model_of(folder), "--ignore-eos"), plain)


if __name__ == "__main__":
    support.main()
