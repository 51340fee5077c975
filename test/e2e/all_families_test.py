"""Every pack of the oracle: it passes, as one chunk and token by token, or is refused by the field that no op implements yet.

A pack that begins to compile must leave REFUSED, and then has to pass; one that is missing from both fails here.
"""
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


if __name__ == "__main__":
    support.main(needs_oracle=True)
