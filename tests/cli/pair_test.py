"""A target and its draft model: the Qwen pair, and a pair that does not fit."""

import json
import os
import unittest

from tandem import ROOT, SMALL_MODEL, TandemTest, settings, strict_json, tandem

RETOKENIZE = str(ROOT / "configs" / "retokenize.yaml")
QUICKSTART = str(ROOT / "configs" / "quickstart.yaml")


@unittest.skipIf(os.environ.get("TANDEM_TEST_MODELS") == "small", "TANDEM_TEST_MODELS=small leaves the Qwen pair out")
class Pair(TandemTest):
    def test_a_draft_with_another_vocabulary_is_refused_before_the_first_token(self):
        self.refused(1, "generate", "--config", QUICKSTART, "--prompt", "Hi", *settings(draft__model=SMALL_MODEL),
                     says=["151936", "49152", SMALL_MODEL, "id 0", "draft.retokenize: true"])

    def test_a_draft_with_another_vocabulary_drafts_through_text(self):
        prompts = ["Reverse a list in Python.", "Erkl\u00e4re in einem Satz, was ein B\u00e4cker tut.",
                   "\u7528\u4e2d\u6587\u5199\u4e00\u53e5\u8bdd\uff0c\u52a0\u4e00\u4e2a\u8868\u60c5\u7b26\u53f7 \U0001f600"]
        path = self.write("prompts.jsonl", "\n".join(json.dumps({"id": str(i), "prompt": prompt})
                                                     for i, prompt in enumerate(prompts)))
        for values in ({"draft__length": 4}, {"draft__length": "auto"}, {"draft__length": 7, "verify__rule": "block"},
                       {"draft__length": 3, "verify__rule": "coupled", "sampling__temperature": 0.8,
                        "sampling__seed": 3, "draft__quantize": "q4_0", "draft__head_rows": 16384}):
            runs = [self.json_of("generate", "--config", RETOKENIZE, "--prompts", path,
                                 *settings(**values, stop__max_tokens=24, draft__kind=kind))
                    for kind in ("model", "none")]
            self.assertEqual([result["ids"] for result in runs[0]["results"]],
                             [result["ids"] for result in runs[1]["results"]], values)
            self.assertGreater(runs[0]["totals"]["accepted"], 0)

    def test_a_full_draft_context_ends_drafting_through_text_with_one_warning(self):  # B29
        report = self.folder / "report.json"
        prompt = "Name the months of the year."
        done = self.succeed("generate", "--config", RETOKENIZE, "--prompt", prompt, "--report", str(report),
                            *settings(stop__max_tokens=48, draft__kind="model", draft__length=4, draft__context=56))
        drafted = json.loads(report.read_bytes())
        plain = self.json_of("generate", "--config", RETOKENIZE, "--prompt", prompt,
                             *settings(stop__max_tokens=48, draft__kind="none"))
        self.assertGreater(plain["prompt_tokens"] + plain["generated_tokens"], 60)
        self.assertEqual(drafted["ids"], plain["ids"])
        self.assertGreater(drafted["proposed"], 0)
        self.assertEqual(done.stderr.decode().count("draft context of 56 tokens is full"), 1)

    def test_vocabularies_are_compared_before_anyone_commits_to_the_pair(self):
        look = ["accept", "--config", QUICKSTART, "--vocabulary-only"]
        found = self.json_of(*look)["vocabulary"]
        self.assertEqual((found["match"], found["differing"], found["target_size"]), ("same", 0, 151936))
        foreign = settings(draft__model=SMALL_MODEL)
        done = tandem(*look, *foreign, "--json")
        found = strict_json(done.stdout)["vocabulary"]
        self.assertEqual((done.returncode, found["match"], found["refused"]), (1, "different", True))
        self.assertEqual((found["target_size"], found["draft_size"]), (151936, 49152))
        self.assertEqual(found["first_differences"][0], {"id": 0, "target": '"!"', "draft": '"<|endoftext|>"'})
        self.assertEqual(len(found["first_differences"]), 8)
        self.assertTrue(1000 < found["shared_pieces"] < 49152 < found["differing"] < 151936)
        text = tandem(*look, *foreign).stdout.decode()
        self.assertIn(f"{found['differing']} ids DIFFER, the pair is refused", text)
        through_text = self.succeed(*look, *foreign, *settings(draft__retokenize="true")).stdout.decode()
        self.assertIn("so that it drafts through text", through_text)
        needless = tandem(*look, *settings(draft__retokenize="true"))
        self.assertEqual(needless.returncode, 1)
        self.assertIn("the same, so that draft.retokenize is refused", needless.stdout.decode())
        self.assertIn('  id 0: "!" / "<|endoftext|>"\n', text)

    def test_a_refused_pair_is_shown_with_its_differences_before_the_refusal(self):
        prompts = self.write("prompts.jsonl", '{"id": "a", "prompt": "Hi"}\n')
        message = self.refused(1, "accept", "--config", QUICKSTART, "--prompts", prompts,
                               *settings(draft__model=SMALL_MODEL), says=["ids DIFFER", "the first difference is id 0"])
        self.assertLess(message.index("DIFFER"), message.index("first difference"))

    def test_the_quickstart_answers_as_the_target_alone(self):
        runs = [self.json_of("generate", "--config", QUICKSTART, "--prompt", "Reverse a list in Python.",
                             *settings(stop__max_tokens=24, draft__kind=kind)) for kind in ("model", "none")]
        self.assertEqual(runs[0]["ids"], runs[1]["ids"])
        self.assertGreater(runs[0]["accepted"], 0)
        self.assertEqual(runs[0]["settings"]["draft"]["kv_cache"], "f16")
        self.assertIsNone(runs[1]["settings"]["draft"])


if __name__ == "__main__":
    unittest.main()
