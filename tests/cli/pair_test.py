"""A target and its draft model: the Qwen pair, and a pair that does not fit."""

import os
import unittest

from tandem import ROOT, SMALL_MODEL, TandemTest, settings

QUICKSTART = str(ROOT / "configs" / "quickstart.yaml")


@unittest.skipIf(os.environ.get("TANDEM_TEST_MODELS") == "small", "TANDEM_TEST_MODELS=small leaves the Qwen pair out")
class Pair(TandemTest):
    def test_a_draft_with_another_vocabulary_is_refused_before_the_first_token(self):
        self.refused(1, "generate", "--config", QUICKSTART, "--prompt", "Hi", *settings(draft__model=SMALL_MODEL),
                     says=["151936", "49152", SMALL_MODEL, "id 0"])

    def test_the_quickstart_answers_as_the_target_alone(self):
        runs = [self.json_of("generate", "--config", QUICKSTART, "--prompt", "Reverse a list in Python.",
                             *settings(stop__max_tokens=24, draft__kind=kind)) for kind in ("model", "none")]
        self.assertEqual(runs[0]["ids"], runs[1]["ids"])
        self.assertGreater(runs[0]["accepted"], 0)
        self.assertEqual(runs[0]["settings"]["draft"]["kv_cache"], "f16")
        self.assertIsNone(runs[1]["settings"]["draft"])


if __name__ == "__main__":
    unittest.main()
