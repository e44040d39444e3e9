"""Answers held to a form, with and without drafts. On SmolLM2."""

import json
import re
import unittest

from tandem import ROOT, SMALL, SMALL_MODEL, TandemTest, settings, tandem

EVENT = str(ROOT / "configs" / "constraints" / "event.json")
CONTACT = str(ROOT / "configs" / "constraints" / "contact.gbnf")
PROMPT = "On 3 May 2027 Ada and Grace open the new library in Leeds; everyone is welcome. Extract the event as JSON."
DRAFTS = (settings(draft__kind="none"), settings(draft__kind="ngram"), settings(draft__kind="recycle"),
          settings(draft__kind="model", draft__model=SMALL_MODEL, draft__length="4"),
          settings(draft__model=SMALL_MODEL, draft__kind="hybrid", draft__length="auto"))


class Constraint(TandemTest):
    def same_with_all_drafts(self, *args, **options) -> dict:
        """The plain answer, which every drafter repeats, and how many tokens were forced at most."""
        answers = [self.generate(*args, *drafts, **options) for drafts in DRAFTS]
        for answer in answers[1:]:
            self.assertEqual(answer["ids"], answers[0]["ids"])
            self.assertEqual(answer["stop_reason"], answers[0]["stop_reason"])
        self.assertEqual(answers[0]["forced_tokens"], 0)
        return {**answers[0], "forced_tokens": max(answer["forced_tokens"] for answer in answers)}

    def test_an_answer_is_one_of_the_choices(self):
        out = self.same_with_all_drafts("--prompt", "Is water wet?", *settings(constraint__choices="[yes, no, perhaps so]"))
        self.assertIn(out["text"], ("yes", "no", "perhaps so"))
        self.assertEqual(out["stop_reason"], "grammar")
        self.assertEqual(out["settings"]["constraint"], "choices yes, no, perhaps so")

    def test_an_answer_is_valid_by_its_schema(self):
        out = self.same_with_all_drafts("--prompt", PROMPT, *settings(constraint__json_schema=EVENT), tokens=200)
        self.assertEqual(out["stop_reason"], "grammar")
        self.assertGreater(out["forced_tokens"], 10)
        event = json.loads(out["text"])
        self.assertEqual(list(event), ["title", "date", "place", "people", "public"])
        self.assertRegex(event["date"], r"^\d{4}-\d\d-\d\d$")
        self.assertIsInstance(event["public"], bool)

    def test_an_answer_follows_its_grammar(self):
        out = self.same_with_all_drafts("--prompt", "Write a contact.", *settings(constraint__grammar=CONTACT), tokens=150)
        self.assertRegex(out["text"], r"^name: [A-Z]")
        if out["stop_reason"] == "grammar":
            self.assertRegex(out["text"], r"^name: .*\nemail: .*@.*\nphone: .*\n$")

    def test_an_answer_matches_its_regular_expression_whatever_is_drawn(self):
        for seed in range(4):
            for rule in ("rejection", "block", "coupled"):
                out = self.generate("--prompt", "When?", *settings(
                    constraint__regex='"(1[0-9]|20)[0-9]{2}-(0[1-9]|1[0-2])( [a-z]{3,5})?"', sampling__temperature=1.5,
                    sampling__seed=seed, verify__rule=rule, draft__kind="model", draft__model=SMALL_MODEL), tokens=40)
                self.assertTrue(re.fullmatch(r"(1[0-9]|20)[0-9]{2}-(0[1-9]|1[0-2])( [a-z]{3,5})?", out["text"]), out["text"])
                self.assertIn(out["stop_reason"], ("grammar", "stop"))

    def test_any_json_parses(self):
        out = self.generate("--prompt", "Give me an empty JSON list.", *settings(constraint__json="true"), tokens=60)
        if out["stop_reason"] != "length":
            json.loads(out["text"])
        self.assertTrue(out["text"])

    def test_each_turn_of_a_chat_begins_anew(self):
        done = self.succeed("chat", "--config", SMALL, *settings(constraint__choices="[yes, no]"),
                            stdin=b"Is water wet?\nIs fire cold?\n")
        self.assertEqual(len(done.stdout.split()), 2)
        self.assertTrue(set(done.stdout.split()) <= {b"yes", b"no"}, done.stdout)

    def test_the_check_of_losslessness_holds(self):
        path = self.write("prompts.jsonl", json.dumps({"id": "one", "prompt": PROMPT}))
        for values in ({"sampling__temperature": 0}, {"sampling__temperature": 1, "sampling__top_k": 3}):
            self.succeed("check", "--config", SMALL, "--prompts", path, "--max-tokens", "24", "--draws", "300", *settings(
                constraint__json_schema=EVENT, draft__kind="model", draft__model=SMALL_MODEL, sampling__seed=1, **values))

    def test_mistakes_are_named(self):
        bad = self.write("bad.gbnf", 'root ::= "a" word\n')
        schema = self.write("bad.json", '{"type": "object", "properties": {"a": {"type": "string", "uniqueItems": true}}}')
        for values, says in (({"constraint__grammar": bad}, ["bad.gbnf:1:14: rule word does not exist"]),
                             ({"constraint__json_schema": schema}, ["bad.json", "/properties/a", "uniqueItems"]),
                             ({"constraint__regex": "'a(b'"}, ["constraint.regex"]),
                             ({"constraint__regex": "a", "constraint__json": "true"}, ["at most one constraint"])):
            self.refused(2, "generate", "--config", SMALL, "--prompt", "x", *settings(**values), says=says)
        self.assertEqual(tandem("replay", "--record", str(self.folder / "a"), "--config", SMALL, "--prompts", self.write(
            "p.jsonl", json.dumps({"id": "a", "prompt": "x"})), *settings(constraint__json="true")).returncode, 2)


if __name__ == "__main__":
    unittest.main()
