"""`tandem check` from outside, on SmolLM2 with n-gram drafts."""

import json
import signal
import unittest

from tandem import LONGEST_RUN_SECONDS, SMALL, TandemTest, settings, wait_until_interruptible

ROWS = [{"id": name, "prompt": f"Repeat this line three times: {name} two three four five six."}
        for name in ("one", "zero", "nine")]
HOT = settings(sampling__temperature=1, sampling__top_k=3, sampling__seed=3)


class Check(TandemTest):
    def setUp(self):
        super().setUp()
        self.prompts = self.write("prompts.jsonl", "\n".join(map(json.dumps, ROWS)))

    def arguments(self, *args, tokens: int = 24) -> list:
        return ["check", "--config", SMALL, "--prompts", self.prompts, "--max-tokens", str(tokens), *args]

    def test_greedy_texts_are_compared_for_every_prompt(self):
        out = self.json_of(*self.arguments())
        self.assertTrue(out["passed"])
        self.assertEqual([row["id"] for row in out["greedy"]], [row["id"] for row in ROWS])
        for row in out["greedy"]:
            self.assertEqual((row["passed"], row["difference"]), (True, None))
            self.assertTrue(0 < row["tokens"] <= 24)
            self.assertTrue(row["accepted"] <= row["tested"])
        self.assertGreater(sum(row["accepted"] for row in out["greedy"]), 0)
        self.assertNotIn("laws", out)
        self.assertEqual(out["settings"]["draft_kind"], "ngram")

    def test_laws_are_tested_above_temperature_0(self):
        for rule in ("rejection", "block"):
            with self.subTest(rule=rule):
                out = self.json_of(*self.arguments("--laws", "2", "--draws", "500", *HOT,
                                                   *settings(verify__rule=rule), tokens=8))
                self.assertTrue(out["passed"])
                self.assertEqual([row["id"] for row in out["laws"]], ["one", "zero"])
                self.assertEqual(len(out["greedy"]), 3)
                for row in out["laws"]:
                    self.assertEqual((row["draws"], row["level"], row["impossible"]), (500, 5e-5, 0))
                    self.assertTrue(row["level"] < row["p_value"] <= 1)
                    self.assertTrue(0 < row["covered"] <= 1 + 1e-9)
                self.assertTrue(any(row["cells"] > 1 and row["detectable_variation"] < 1 for row in out["laws"]))

    def test_coupled_compares_the_texts_of_the_seed(self):
        out = self.json_of(*self.arguments("--limit", "2", *HOT, *settings(verify__rule="coupled")))
        self.assertTrue(out["passed"])
        self.assertEqual([row["id"] for row in out["same_seed"]], ["one", "zero"])
        self.assertNotIn("laws", out)

    def test_people_get_a_line_a_check_and_a_verdict(self):
        done = self.succeed(*self.arguments("--limit", "1", tokens=8))
        lines = done.stdout.decode().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r"^greedy +one +\d+ tokens, \d+ steps, acceptance \d\.\d\d: equal$")
        self.assertEqual(lines[1], "check: passed: ngram drafts under rejection: 1 of 1 texts equal plain decoding's")
        self.assertEqual(done.stderr, b"")

    def test_what_cannot_be_checked_is_refused(self):
        self.refused(2, *self.arguments(*settings(draft__kind="none")), says=["draft.kind", "nothing to check"])
        self.refused(2, *self.arguments(*settings(verify__rule="typical", verify__lossy="true"), *HOT),
                     says=["verify.rule", "typical", "lossy"])
        self.refused(2, "check", "--config", SMALL, says=["--prompts"])
        self.refused(2, *self.arguments("--draws", "1"), says=["--draws"])
        self.refused(2, "check", "--config", SMALL, "--prompts", str(self.folder / "none.jsonl"), says=["none.jsonl"])

    def test_typical_is_checked_at_temperature_0(self):
        out = self.json_of(*self.arguments("--limit", "1", *settings(verify__rule="typical", verify__lossy="true"),
                                           tokens=8))
        self.assertTrue(out["passed"])

    def test_ctrl_c_ends_it(self):
        process = self.start(*self.arguments("--draws", "100000000", *HOT, tokens=2))
        wait_until_interruptible(process)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=LONGEST_RUN_SECONDS)
        self.assertEqual(process.returncode, 130, message)
        self.assertIn(b"cancelled", message)


if __name__ == "__main__":
    unittest.main()
