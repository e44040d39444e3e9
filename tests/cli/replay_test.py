"""`tandem replay` from outside, on SmolLM2 with n-gram drafts."""

import json
import pathlib
import signal
import unittest

from tandem import LONGEST_RUN_SECONDS, SMALL, TandemTest, settings, tandem, wait_until_interruptible

ROWS = [{"id": name, "task": "repeat", "prompt": f"Repeat this line three times: {name} two three four five six."}
        for name in ("one", "zero", "nine")]


class Replay(TandemTest):
    def setUp(self):
        super().setUp()
        self.prompts = self.write("prompts.jsonl", "\n".join(map(json.dumps, ROWS)))
        self.record = str(self.folder / "a.rec")

    def recording(self, *args, tokens: int = 32) -> list:
        return ["replay", "--record", self.record, "--config", SMALL, "--prompts", self.prompts,
                "--max-tokens", str(tokens), *args]

    def predictions(self, *args) -> list:
        return self.json_of("replay", "--record", self.record, *args)["predictions"]

    def test_counts_are_those_of_generate(self):
        made = self.json_of(*self.recording("--lengths", "2,5"))
        again = self.json_of("replay", "--record", self.record, "--lengths", "2,5")
        self.assertEqual(made, again)
        self.assertEqual([p["length"] for p in made["predictions"]], [2, 5])
        for prediction in made["predictions"]:
            real = self.json_of("generate", "--config", SMALL, "--prompts", self.prompts, "--quiet",
                                *settings(draft__length=prediction["length"], stop__max_tokens=32))["results"]
            self.assertEqual([answer["id"] for answer in prediction["answers"]], [row["id"] for row in ROWS])
            for replayed, row in zip(prediction["answers"], real):
                for figure in ("steps", "tested", "accepted"):
                    self.assertEqual(replayed[figure], row[figure], (row["id"], figure))
            self.assertGreater(prediction["accepted"], 0)
            self.assertAlmostEqual(sum(prediction["shares"].values()), 1)

    def test_people_get_a_table_with_the_best_setting_and_a_file_of_it(self):
        best = str(self.folder / "best.yaml")
        done = self.succeed(*self.recording("--limit", "2", "--best", best))
        lines = done.stdout.decode().splitlines()
        self.assertRegex(lines[0], r"^2 answers, \d+ prompt tokens and \d+ generated, temperature 0; plain decoding")
        self.assertEqual(len(lines), 2 + 9, "auto and 1 to 8")
        self.assertEqual(sum("<- best" in line for line in lines), 1)
        self.assertIn("recorded 2 of 2 answers", done.stderr.decode())
        chosen = next(line for line in lines if "<- best" in line).split()
        out = self.json_of("generate", "--config", best, "--prompt", "Say hello.", *settings(stop__max_tokens=4))
        self.assertEqual(str(out["settings"]["draft_length"]), chosen[1])
        self.assertEqual(out["settings"]["draft_kind"], chosen[0])

    def test_thresholds_and_kinds_are_combined_once(self):
        self.succeed(*self.recording("--limit", "1", "--lengths", "1"))
        rows = self.predictions("--kinds", "none,ngram", "--lengths", "auto,0,3", "--min-probabilities", "0,0.9",
                                "--rules", "rejection,block")
        self.assertEqual([(p["kind"], p["length"], p["min_probability"]) for p in rows],
                         [("none", 0, 0), ("ngram", "auto", 0), ("ngram", 3, 0), ("ngram", "auto", 0.9),
                          ("ngram", 3, 0.9)])
        self.assertAlmostEqual(rows[0]["over_plain"], 1, places=12)  # the same seconds, added up in another order
        self.assertIsNone(rows[0]["acceptance_rate"])

    def test_bad_input_is_named(self):
        self.succeed(*self.recording("--limit", "1", "--lengths", "1", tokens=8))
        self.refused(2, *self.recording(), says=[self.record, "exists already"])
        self.refused(2, "replay", "--record", self.record, "--kinds", "model", says=["has no draft model"])
        self.refused(2, "replay", "--record", self.record, "--lengths", "three", says=["--lengths three"])
        self.refused(2, "replay", "--record", self.record, "--config", SMALL, says=["--config and --prompts"])
        whole = pathlib.Path(self.record).read_bytes()
        cut = self.write("cut.rec", whole[:-5])
        self.refused(1, "replay", "--record", cut, says=[cut, "cut: expected"])
        foreign = self.write("foreign.rec", b"GGUF....")
        self.refused(1, "replay", "--record", foreign, says=[foreign, "expected a recording of tandem replay"])
        self.refused(1, "replay", "--record", str(self.folder / "none"), says=["none: cannot be read"])

    def test_one_bad_prompt_does_not_lose_the_others(self):
        rows = [ROWS[0], {"id": "long", "prompt": "word " * 9000}, ROWS[1]]
        self.prompts = self.write("prompts.jsonl", "\n".join(map(json.dumps, rows)))
        done = tandem(*self.recording("--lengths", "2", tokens=8))
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        self.assertIn("1 of 3 prompts failed: long", done.stderr.decode())
        self.assertIn("2 answers", done.stdout.decode())

    def test_ctrl_c_keeps_whole_answers(self):
        rows = [dict(ROWS[0], id=str(i), max_tokens=24) for i in range(400)]
        self.prompts = self.write("many.jsonl", "\n".join(map(json.dumps, rows)))
        process = self.start(*self.recording(tokens=24))
        wait_until_interruptible(process)
        while process.poll() is None and not pathlib.Path(self.record).exists():
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LONGEST_RUN_SECONDS)
        self.assertEqual((process.returncode, out), (130, b""), err.decode())
        answers = self.predictions("--lengths", "2")[0]["answers"]
        self.assertTrue(1 <= len(answers) < 400)
        self.assertIn(f"recorded {len(answers)} of 400 answers", err.decode())
        self.assertEqual([answer["id"] for answer in answers], [str(i) for i in range(len(answers))])


if __name__ == "__main__":
    unittest.main()
