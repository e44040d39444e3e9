"""`tandem accept` from outside, on SmolLM2 with n-gram drafts and with itself as the draft model."""

import json
import signal
import unittest

from tandem import LONGEST_RUN_SECONDS, SMALL, SMALL_MODEL, TandemTest, settings, strict_json, wait_until_interruptible

ROWS = [{"id": name, "task": task, "prompt": f"Repeat this line three times: {name} two three four five six."}
        for name, task in (("one", "copy"), ("zero", "chat"), ("nine", "copy"))]
SELF = settings(draft__kind="model", draft__model=SMALL_MODEL, draft__head_rows=4096)


class Accept(TandemTest):
    def setUp(self):
        super().setUp()
        self.prompts = self.write("prompts.jsonl", "\n".join(map(json.dumps, ROWS)))

    def arguments(self, *args, tokens: int = 24) -> list:
        return ["accept", "--config", SMALL, "--prompts", self.prompts, "--max-tokens", str(tokens), *args]

    def check_sums(self, found: dict):
        everything = found["all"]
        for group in (everything, *found["tasks"]):
            self.assertEqual(group["proposed"], group["tested"] + group["untested"])
            self.assertEqual(group["tested"], group["accepted"] + group["rejected"])
            self.assertEqual(group["generated_tokens"],
                             group["answers"] + group["accepted"] + group["steps"] - group["cut"])
            self.assertEqual(group["tested"], group["sampled"]["tested"] + group["deterministic"]["tested"])
        for key in ("answers", "steps", "proposed", "tested", "accepted", "cut"):
            self.assertEqual(sum(task[key] for task in found["tasks"]), everything[key])
        self.assertEqual(sum(place["accepted"] for place in found["positions"]), everything["accepted"])
        for key in ("proposed", "tested", "accepted"):
            self.assertEqual(sum(source[key] for source in found["sources"]), everything[key])
        for source in found["sources"]:
            for key in ("tested", "accepted"):
                self.assertEqual(sum(bin[key] for bin in source["bins"]), source[key])
            for bin in source["bins"]:
                self.assertTrue(bin["low"] <= bin["mean_confidence"] <= bin["high"])
        low, high = everything["acceptance_interval"]
        self.assertTrue(low <= everything["acceptance_rate"] <= high)

    def test_counts_add_up_by_task_position_source_and_bin(self):
        out = self.json_of(*self.arguments("--temperatures", "0,0.8", *settings(sampling__seed=3)))
        self.assertEqual([found["temperature"] for found in out["temperatures"]], [0, 0.8])
        for found in out["temperatures"]:
            self.assertEqual([task["task"] for task in found["tasks"]], ["copy", "chat"])
            self.check_sums(found)
        self.assertGreater(out["temperatures"][0]["all"]["accepted"], 0)
        greedy = out["temperatures"][0]["all"]["deterministic"]
        self.assertEqual(greedy["expected_rate"], greedy["acceptance_rate"])
        self.assertEqual((out["failed"], out["interrupted"], out["vocabulary"]), (0, False, None))

    def test_answers_are_those_of_generate(self):
        hot = settings(sampling__temperature=0.8, sampling__seed=3, stop__max_tokens=24)
        rows = [row for row in self.json_of(*self.arguments(*hot))["results"]]
        answers = self.json_of("generate", "--config", SMALL, "--prompts", self.prompts, *hot)["results"]
        for key in ("id", "stop_reason", "generated_tokens", "steps", "proposed", "tested", "accepted"):
            self.assertEqual([row[key] for row in rows], [answer[key] for answer in answers])

    def test_rejection_accepts_the_sum_of_minima_of_a_model_draft(self):
        out = self.json_of(*self.arguments("--temperatures", "1", "--length", "3", *SELF,
                                           *settings(sampling__seed=5, sampling__top_k=0), tokens=48))
        found = out["temperatures"][0]
        self.check_sums(found)
        drawn = found["all"]["sampled"]
        self.assertGreater(drawn["tested"], 40)
        self.assertLess(abs(drawn["acceptance_rate"] - drawn["expected_rate"]), 4.5 * drawn["standard_error"])
        self.assertEqual(out["vocabulary"]["match"], "same")
        self.assertEqual([place["position"] for place in found["positions"]], [1, 2, 3])

    def test_the_forecast_begins_with_plain_decoding_and_names_the_best(self):
        out = self.json_of(*self.arguments("--length", "4"))
        forecast = out["temperatures"][0]["forecast"]
        lengths = forecast["lengths"]
        self.assertEqual((lengths[0]["length"], lengths[0]["tokens_a_step"], lengths[0]["speed"]), (0, 1, 1))
        self.assertEqual(forecast["best_speed"], max(length["speed"] for length in lengths))
        self.assertIn(forecast["best_length"], [length["length"] for length in lengths])
        self.assertEqual(out["settings"]["draft_length"], 4)
        self.assertIsNotNone(out["settings"]["cost_table"])

    def test_an_automatic_length_is_measured_at_a_fixed_one_unless_asked_for(self):
        auto = settings(draft__length="auto")
        self.assertEqual(self.json_of(*self.arguments(*auto, tokens=4))["settings"]["draft_length"], 8)
        self.assertEqual(self.json_of(*self.arguments(*auto, *settings(draft__max_nodes=5), tokens=4))
                         ["settings"]["draft_length"], 4)
        self.assertEqual(self.json_of(*self.arguments("--length", "auto", tokens=4))["settings"]["draft_length"],
                         "auto")

    def test_people_get_tables(self):
        text = self.succeed(*self.arguments()).stdout.decode()
        for word in ("drafts: ngram of length 4", "temperature 0, rule rejection", "acceptance", "95 % interval", "copy",
                     "all", "position", "of tested", "mean confidence", "speed / plain", "break-even", "<- best"):
            self.assertIn(word, text)
        self.assertTrue(all(len(line) <= 132 for line in text.splitlines()))

    def test_vocabularies_are_compared_without_prompts(self):
        out = self.json_of("accept", "--config", SMALL, "--vocabulary-only", *SELF)
        self.assertEqual((out["vocabulary"]["match"], out["vocabulary"]["target_size"]), ("same", 49152))
        text = self.succeed("accept", "--config", SMALL, "--vocabulary-only", *SELF).stdout.decode()
        self.assertEqual(text, f"vocabulary: target {SMALL_MODEL}, 49152 ids; draft {SMALL_MODEL}, 49152 ids: the same\n")
        self.refused(2, "accept", "--config", SMALL, "--vocabulary-only", says=["draft.kind", "no draft model"])

    def test_what_cannot_be_measured_is_refused(self):
        self.refused(2, "accept", "--config", SMALL, says=["--prompts", "--vocabulary-only"])
        self.refused(2, *self.arguments(*settings(draft__kind="none")), says=["draft.kind", "nothing to measure"])
        self.refused(2, *self.arguments("--length", "64"), says=["--length", "0..63"])
        self.refused(2, *self.arguments("--temperatures", "0,-1"), says=["--temperatures"])
        self.refused(2, *self.arguments("--temperatures", "0,x"), says=["--temperatures"])

    def test_ctrl_c_keeps_what_is_done(self):
        process = self.start("accept", "--config", SMALL, "--prompts", self.prompts, "--json",
                             *settings(stop__max_tokens=100000, target__context=8192, prompt__chat="false"))
        wait_until_interruptible(process)
        process.send_signal(signal.SIGINT)
        out, message = process.communicate(timeout=LONGEST_RUN_SECONDS)
        self.assertEqual(process.returncode, 130, message)
        found = strict_json(out)
        self.assertTrue(found["interrupted"])
        self.assertLess(found["temperatures"][0]["all"]["answers"], 4)
        self.assertIn(b"cancelled", message)


if __name__ == "__main__":
    unittest.main()
