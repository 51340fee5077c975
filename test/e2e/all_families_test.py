"""Every pack of the oracle: it passes, as one chunk and token by token, or is refused by the field that no op implements yet.

A pack that begins to compile must leave REFUSED, and then has to pass; one that is missing from both fails here.
"""
import json
import os
import re

import support
from support import MCC, ORACLE, TestCase, model_of, run

# What the builder cannot build yet, by the field it names: nothing.
REFUSED = {}


class AllFamilies(TestCase):
    def test_packs(self):
        packs = sorted(os.listdir(os.path.join(ORACLE, "families")))
        self.assertGreater(len(packs), 50)
        self.assertLessEqual(set(REFUSED), set(packs))
        for pack in packs:
            folder = os.path.join(ORACLE, "families", pack)
            with self.subTest(pack=pack):
                if pack in REFUSED:
                    self.diagnosed(run(MCC, folder, "-o", support.scratch("refused")), re.escape(f"'{REFUSED[pack]}'"))
                    continue
                for options in ([], ["--chunk", "1", "--threads", "1"]):
                    self.ran(model_of(folder), "--check", os.path.join(folder, "golden.json"), *options)

    def test_norms_of_heads_in_one_tensor(self):
        """Norms of q and k with weights of every head's own, [heads, head_dim] in one tensor, are those in a tensor a head."""
        pack = os.path.join(ORACLE, "families", "stablelm-qknorm")
        spec = json.loads(self.ran(MCC, pack, "--emit=spec").out)
        roles = {"q_norm": 4, "k_norm": 2}

        def stack(tensors):
            for role, heads in roles.items():
                for layer in range(2):
                    names = [spec["tensors"][role].format(layer=layer, head=head) for head in range(heads)]
                    parts = [tensors.pop(name) for name in names]
                    whole = b"".join(data for _, _, data in parts)
                    tensors[f"stacked.{layer}.{role}"] = (parts[0][0], [heads, *parts[0][1]], whole)

        folder = support.variant(pack, None, stack)
        for block in spec["blocks"]:
            block["attention"]["qk_norm_scope"] = "head_own_weights"
        for role in roles:
            spec["tensors"][role] = "stacked.{layer}." + role
        model = model_of(support.write_json(spec, folder, "spec.json"), os.path.join(folder, "model.safetensors"))
        self.ran(model, "--check", os.path.join(pack, "golden.json"))


if __name__ == "__main__":
    support.main(needs_oracle=True)
