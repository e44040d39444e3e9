"""Draft models where their context ends, and a model that drafts for itself. On SmolLM2."""

import json
import unittest

from tandem import SMALL, SMALL_MODEL, TandemTest, settings

PROMPT = "Tell me how bread is made, step by step, from the field to the table."
SELF = settings(draft__kind="model", draft__model=SMALL_MODEL)


class DraftContext(TandemTest):
    def answers(self, tokens: int, *args, **values):
        """Plain and drafted, the drafted with its stderr."""
        report = self.folder / "report.json"
        plain = self.generate("--prompt", PROMPT, *settings(draft__kind="none"), *args, tokens=tokens)
        done = self.succeed("generate", "--config", SMALL, "--prompt", PROMPT, "--report", str(report),
                            *settings(draft__model=SMALL_MODEL, stop__max_tokens=tokens, **values), *args)
        return plain, json.loads(report.read_bytes()), done.stderr.decode()

    def test_a_small_draft_context_stops_drafting_with_one_warning(self):  # B29
        for kind in ("model", "hybrid"):
            plain, drafted, figures = self.answers(120, *settings(target__context=512), draft__kind=kind,
                                                   draft__context=128, draft__length=4)
            self.assertGreater(plain["prompt_tokens"] + plain["generated_tokens"], 140)
            self.assertEqual(drafted["ids"], plain["ids"])
            self.assertEqual(figures.count("draft context of 128 tokens is full"), 1, figures)
            self.assertGreater(drafted["accepted"], 0)

    def test_drafts_end_where_the_context_does(self):  # B29
        for kind in ("model", "hybrid"):
            plain, drafted, figures = self.answers(100, *settings(target__context=64), draft__kind=kind,
                                                   draft__length=16)
            self.assertGreaterEqual(plain["prompt_tokens"], 40)
            self.assertEqual(plain["stop_reason"], "context")
            self.assertEqual(drafted["ids"], plain["ids"])
            self.assertEqual(drafted["stop_reason"], "context")
            self.assertNotIn("draft context", figures)


class SelfDraft(TandemTest):
    def test_a_draft_that_is_the_target_is_always_right(self):  # B28
        for values in ({"draft__length": 1}, {"draft__length": 4}, {"draft__length": 8},
                       {"draft__length": 4, "runtime__kv_cache": "q8_0"},
                       {"draft__length": 4, "prompt__chat": "false"}):
            out = self.generate("--prompt", PROMPT, *SELF, *settings(**values), tokens=64)
            self.assertEqual(out["accepted"], out["tested"], values)
            self.assertGreater(out["accepted"], 30)
        rows = [{"id": str(i), "prompt": PROMPT + end} for i, end in enumerate(("", " Be brief.", " Be very brief."))]
        path = self.write("prompts.jsonl", "\n".join(map(json.dumps, rows)))
        out = self.generate("--prompts", path, *SELF, *settings(draft__length=5), tokens=40)
        self.assertEqual([answer["accepted"] for answer in out["results"]],
                         [answer["tested"] for answer in out["results"]])


if __name__ == "__main__":
    unittest.main()
