"""Wrong models: each is refused with one line that names the file, the field or tensor, and both values; exit 1.

No case may crash, hang or allocate beyond reason: mcc runs here with its address space capped.
"""
import json
import os
import shutil

import support
from support import FAMILIES, KJV, MCC, TestCase, run, variant

TINY = os.path.join(FAMILIES, "qwen2")     # one safetensors file
SHARDED = os.path.join(FAMILIES, "llama")  # four shards and an index
LIMIT = 4 << 30


class Refusal(TestCase):
    def refused(self, folder, *fragments, arguments=()):
        """Asserts that compiling `folder` (or a list of arguments) is diagnosed, and that nothing is left behind."""
        out = os.path.join(support.scratch("refused"), "out")
        inputs = [folder] if isinstance(folder, str) else folder
        done = run(MCC, *inputs, "-o", out, *arguments, preexec_fn=support.limit_memory(LIMIT))
        line = self.diagnosed(done, *fragments)
        left = os.listdir(out) if os.path.isdir(out) else []
        self.assertEqual(left, [], "a refused compile leaves nothing")
        return line


class Config(Refusal):
    def config(self, *fragments, **fields):
        """Refuses TINY with some fields of its config replaced (None as value: removed)."""
        def edit(config):
            for name, value in fields.items():
                if value is None:
                    del config[name]
                else:
                    config[name] = value
        return self.refused(variant(TINY, edit), r"config\.json", *fragments)

    def text(self, data, *fragments):
        folder = variant(TINY)
        with open(os.path.join(folder, "config.json"), "wb") as stream:
            stream.write(data)
        return self.refused(folder, *fragments)

    def test_unknown_family(self):
        self.config("model_type", "qwen22", "qwen2", model_type="qwen22")

    def test_no_family(self):
        self.config("model_type", model_type=None)

    def test_missing_field(self):
        # A family's default takes the place of a missing field; what the checkpoint holds then contradicts it.
        self.refused(variant(TINY, lambda config: config.pop("hidden_size")), "embed_tokens", r"\[192, 64\]", r"\[192, 4096\]")

    def test_wrong_types(self):
        self.config("hidden_size", "64", hidden_size="64")
        self.config("rms_norm_eps", rms_norm_eps=[1])
        self.config("num_hidden_layers", "2.5", num_hidden_layers=2.5)
        self.config("tie_word_embeddings", tie_word_embeddings="yes")

    def test_numbers_out_of_range(self):
        self.config("num_hidden_layers", "-1", num_hidden_layers=-1)
        self.config("hidden_size", r"\b0\b", hidden_size=0)
        self.config("vocab_size", vocab_size=10**30)
        self.config("num_hidden_layers|layers", "1000000000000", num_hidden_layers=10**12)
        self.config("num_attention_heads", "5", num_attention_heads=5)
        self.config("num_key_value_heads|head", r"\b3\b", num_key_value_heads=3)

    def test_unknown_values(self):
        self.config("hidden_act", "silly", "silu", hidden_act="silly")
        self.config("rope_type", "spiral", rope_parameters={"rope_type": "spiral", "rope_theta": 10000.0})
        self.config("dtype", "float17", dtype="float17")

    def test_shape_against_config(self):
        # What the config says and what the checkpoint holds, both in the line.
        self.refused(variant(TINY, lambda config: config.update(vocab_size=191)), "embed_tokens", "191", "192")
        self.refused(variant(TINY, lambda config: config.update(intermediate_size=97)), "mlp", "97", "96")

    def test_layers_against_config(self):
        def layers(count):
            return lambda config: config.update(num_hidden_layers=count, layer_types=["full_attention"] * count)
        self.refused(variant(TINY, layers(3)), r"layers\.2\.")
        self.refused(variant(TINY, layers(1)), r"layers\.1\.")
        self.config("layer_types", r"\b2\b", r"\b3\b", num_hidden_layers=3)

    def test_json_errors_have_a_place(self):
        self.text(b'{\n  "model_type": "qwen2",\n  "hidden_size" 64\n}\n', r"config\.json:3:\d+: error:")
        self.text(b"", r"config\.json")
        self.text(b"[1, 2", r"config\.json")
        self.text(b'"qwen2"', r"config\.json")
        self.text(b"\x00\xff\xfe garbage", r"config\.json")
        self.text(b'{"model_type": "qwen2"} trailing', r"config\.json:1:\d+")
        self.text(b"[" * 200000, r"config\.json")
        self.text(b'{"a":' * 200000, r"config\.json")

    def test_missing_paths(self):
        empty = support.scratch("empty")
        self.refused(empty, "no checkpoint", os.path.basename(empty))
        self.refused(os.path.join(empty, "nothing"), "nothing")
        self.refused([os.path.join(TINY, "config.json"), os.path.join(empty, "nothing.safetensors")], r"nothing\.safetensors")
        folder = variant(TINY)
        os.remove(os.path.join(folder, "model.safetensors"))
        self.refused(folder, "safetensors")

    def test_special_files(self):
        self.refused("/dev/null", "/dev/null")
        self.refused([os.path.join(TINY, "config.json"), "/dev/zero"], "/dev/zero")
        self.refused([os.path.join(TINY, "config.json"), TINY + "/golden.json"], r"golden\.json")

    def test_seed(self):
        self.refused([os.path.join(TINY, "config.json"), "random:many"], "'random:many' has no seed; write random:SEED")
        self.refused([os.path.join(TINY, "config.json"), "random:"], "'random:' has no seed; write random:SEED")
        self.refused([os.path.join(TINY, "config.json"), "random:1:f17"], "'random:1:f17' names unknown format 'f17'")

    def test_generation_config(self):
        folder = variant(KJV)
        support.write_json([], folder, "generation_config.json")
        self.refused(folder, r"generation_config\.json:1:1: error: a generation config is an object; found")

    def test_checkpoint_without_config(self):
        folder = variant(TINY)
        os.remove(os.path.join(folder, "config.json"))
        self.refused(folder, "has no config.json beside it, which says what model the tensors make")

    def test_unknown_kind_of_file(self):
        path = os.path.join(support.scratch("kind"), "model.bin")
        with open(path, "wb") as stream:
            stream.write(b"%PDF-1.7 something else")
        self.refused([os.path.join(TINY, "config.json"), path], r"model\.bin", "is neither safetensors nor GGUF")
        with open(path, "wb") as stream:
            stream.write(b"PK\3\4 something else")
        self.refused([os.path.join(TINY, "config.json"), path], r"model\.bin: error: looks like a PyTorch pickle")


class Spec(Refusal):
    """mcc's own form: errors at file:line:column with a suggestion."""

    def spec(self, edit, *fragments):
        folder = variant(TINY)
        printed = json.loads(self.ran(MCC, "inspect", os.path.join(TINY, "config.json")).out)
        edit(printed)
        path = support.write_json(printed, folder, "spec.json")
        return self.refused([path, os.path.join(folder, "model.safetensors")], r"spec\.json:\d+:\d+: error:", *fragments)

    def test_unknown_field(self):
        def edit(spec):
            spec["vocabularry"] = spec.pop("vocabulary")
        self.spec(edit, "vocabularry", "vocabulary")

    def test_unknown_kind(self):
        self.spec(lambda spec: spec.update(kind="encoder"), "encoder", "decoder")

    def test_wrong_type(self):
        self.spec(lambda spec: spec.update(hidden="64"), "hidden")

    def test_negative(self):
        self.spec(lambda spec: spec.update(hidden=-64), "hidden", "-64")


class Tensors(Refusal):
    def tensors(self, edit, *fragments):
        return self.refused(variant(TINY, edit_tensors=edit), r"model\.safetensors", *fragments)

    def test_missing(self):
        self.tensors(lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"), r"model\.layers\.1\.mlp\.up_proj\.weight")

    def test_surplus(self):
        self.tensors(lambda tensors: tensors.update({"model.layers.0.extra.weight": ("F32", [2], b"\0" * 8)}),
                     r"model\.layers\.0\.extra\.weight")

    def test_wrong_shape(self):
        def edit(tensors):
            dtype, (rows, cols), data = tensors["model.layers.0.mlp.down_proj.weight"]
            tensors["model.layers.0.mlp.down_proj.weight"] = (dtype, [cols, rows], data)
        self.tensors(edit, r"model\.layers\.0\.mlp\.down_proj\.weight", r"64.*96.*96.*64|96.*64.*64.*96")

    def test_unsupported_type(self):
        def edit(tensors):
            _, shape, _ = tensors["model.norm.weight"]
            tensors["model.norm.weight"] = ("I64", shape, b"\0" * 8 * shape[0])
        self.tensors(edit, r"model\.norm\.weight", "I64")

    def test_truncated(self):
        folder = variant(TINY)
        path = os.path.join(folder, "model.safetensors")
        size = os.path.getsize(path)
        for keep in (0, 7, 8, 100, size // 2, size - 1):
            os.truncate(path, keep)
            self.refused(folder, r"model\.safetensors")
            shutil.copy(os.path.join(TINY, "model.safetensors"), path)
            os.chmod(path, 0o644)
        os.truncate(path, size - 1)
        self.refused(folder, r"model\.norm\.weight", r"\b148608\b", r"\b148607\b")

    def header(self, edit, *fragments):
        folder = variant(TINY)
        path = os.path.join(folder, "model.safetensors")
        data = support.read_bytes(path)
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        edit(header)
        text = json.dumps(header).encode()
        with open(path, "wb") as stream:
            stream.write(len(text).to_bytes(8, "little") + text + data[8 + size:])
        return self.refused(folder, r"model\.safetensors", *fragments)

    def test_overlapping(self):
        def edit(header):
            first, second = [name for name in header if name != "__metadata__"][:2]
            header[second]["data_offsets"] = header[first]["data_offsets"]
        self.header(edit)

    def test_offsets_against_shape(self):
        def edit(header):
            header["model.norm.weight"]["shape"] = [10**15]
        self.header(edit, r"model\.norm\.weight")

    def test_shape_beyond_all_sizes(self):
        def edit(header):
            header["model.norm.weight"]["shape"] = [2**62, 4]
        self.header(edit, r"model\.norm\.weight", "takes more than 2\\^63-1 bytes")

    def test_header_length_beyond_the_file(self):
        folder = variant(TINY)
        with open(os.path.join(folder, "model.safetensors"), "r+b") as stream:
            stream.write((2**63 - 1).to_bytes(8, "little"))
        self.refused(folder, r"model\.safetensors", "9223372036854775807")


class Shards(Refusal):
    def test_missing_shard(self):
        folder = variant(SHARDED)
        os.remove(os.path.join(folder, "model-00003-of-00004.safetensors"))
        self.refused(folder, "model-00003-of-00004")

    def index(self, edit, *fragments):
        folder = variant(SHARDED)
        index = support.read_json(folder, "model.safetensors.index.json")
        edit(index["weight_map"])
        support.write_json(index, folder, "model.safetensors.index.json")
        return self.refused(folder, *fragments)

    def test_tensor_in_another_shard(self):
        name = "model.norm.weight"

        def edit(weights):
            weights[name] = next(shard for shard in sorted(set(weights.values())) if shard != weights[name])
        self.index(edit, r"model\.norm\.weight", r"model-0000\d-of-00004")

    def test_shard_outside_the_folder(self):
        self.index(lambda weights: weights.update({"model.norm.weight": "../../etc/passwd"}), "passwd")

    def test_index_without_map(self):
        folder = variant(SHARDED)
        support.write_json({"metadata": {}}, folder, "model.safetensors.index.json")
        self.refused(folder, r"index\.json", "weight_map")


class Tokenizer(Refusal):
    def tokenizer(self, data, *fragments):
        folder = variant(KJV)
        with open(os.path.join(folder, "tokenizer.json"), "wb") as stream:
            stream.write(data)
        return self.refused(folder, r"tokenizer\.json", *fragments)

    def test_not_json(self):
        self.tokenizer(b'{"model": ')

    def test_unknown_model(self):
        tokenizer = support.read_json(KJV, "tokenizer.json")
        tokenizer["model"]["type"] = "Magic"
        self.tokenizer(json.dumps(tokenizer).encode(), "Magic")

    def test_merge_of_unknown_token(self):
        tokenizer = support.read_json(KJV, "tokenizer.json")
        tokenizer["model"]["merges"][0] = ["\u2603\u2603", "\u2603"]
        self.tokenizer(json.dumps(tokenizer).encode())


class Usage(TestCase):
    """Misuse of mcc exits 2 and points at --help or the argument."""

    def usage(self, *arguments, fragments=()):
        done = run(MCC, *arguments)
        self.assertEqual(done.code, 2, f"\n{done}")
        for fragment in fragments:
            self.assertRegex(done.err, fragment)

    def test_usage(self):
        self.usage()
        self.usage(TINY, "--no-such-option", "-o", "out", fragments=["--no-such-option"])
        self.usage(TINY, "-o")
        self.usage(TINY, "-o", support.scratch("ctx"), "--ctx", "many", fragments=["many"])
        self.usage(TINY, "-o", support.scratch("ctx"), "--ctx", "-5", fragments=["-5"])
        self.usage("a", "b", "c", "d", "-o", "out")
        self.usage("inspect")

    def test_help_and_version(self):
        self.assertIn("-o", self.ran(MCC, "--help").out)
        self.assertRegex(self.ran(MCC, "--version").out, r"\d+\.\d+")

    def test_output_in_the_way(self):
        folder = support.scratch("way")
        with open(os.path.join(folder, "file"), "w") as stream:
            stream.write("mine")
        done = run(MCC, TINY, "-o", os.path.join(folder, "file"))
        self.diagnosed(done, "/file.*error: .*not a directory")
        self.assertEqual(support.read_bytes(os.path.join(folder, "file")), b"mine")
        done = run(MCC, TINY, "-o", os.path.join(folder, "file", "deeper"))
        self.diagnosed(done, "file/deeper: error: cannot make the output folder: not a directory")


class Environment(TestCase):
    """The final link needs a C compiler."""

    def linked(self, environment, *fragments):
        out = os.path.join(support.scratch("link"), "out")
        done = run(MCC, TINY, "-o", out, env={**os.environ, **environment})
        self.diagnosed(done, *fragments)
        self.assertEqual(os.listdir(out) if os.path.isdir(out) else [], [])

    def test_no_compiler(self):
        self.linked({"PATH": "/nowhere", "CC": ""}, "no C compiler 'cc' on PATH for the final link; install one")

    def test_failing_compiler(self):
        self.linked({"CC": "false"}, r"'\S*false' could not link the executable \(exit 1\)")
        self.linked({"TMPDIR": "/no/such"}, r"cannot make a temporary file for what '\S*cc' prints: no such file or directory")


if __name__ == "__main__":
    support.main()
