"""tandem trace: what it prints for people and for scripts, on SmolLM2 with n-gram drafts."""

import unittest

from tandem import SMALL, TandemTest, settings, strict_json

REPEAT = "one two three four one two three four one two three"
TRACE = ["trace", "--config", SMALL, "--prompt", REPEAT, *settings(prompt__chat="false")]


class Trace(TandemTest):
    def events(self, *args) -> list:
        return [strict_json(line) for line in self.succeed(*TRACE, "--json", *args).stdout.splitlines()]

    def test_json_lines_tell_the_run_from_prompt_to_end(self):
        events = self.events("--steps", "3", "--top", "4")
        self.assertEqual([event["event"] for event in events], ["prompt", "prefill", *["step"] * 4, "end"])
        prompt, prefill, first, *steps, end = events
        self.assertEqual("".join(token["text"] for token in prompt["tokens"]), REPEAT)
        self.assertEqual((prefill["rows"], first["cached"]), (len(prompt["tokens"]), len(prompt["tokens"])))
        self.assertEqual([stage["stage"] for stage in prefill["stages"]],
                         ["embedding", *(f"block {i}" for i in range(30)), "final norm", "logits"])
        self.assertEqual(prefill["stages"][0]["shape"], [prefill["rows"], 576])
        self.assertEqual(prefill["stages"][-1]["shape"], [1, 49152])
        self.assertTrue(any(len(step["tree"]) > 1 for step in steps))
        committed = []
        for step in (first, *steps):
            for node in step["tree"]:
                self.assertEqual(len(node["next"]["logits"]), 4)
                self.assertEqual(node["next"]["probabilities"][0]["p"], 1)  # temperature 0
            statuses = [node["status"] for node in step["tree"]]
            self.assertEqual([i for i, status in enumerate(statuses) if status == "accepted"], step["path"][1:])
            committed += [token["id"] for token in step["committed"]]
        self.assertEqual(committed, end["ids"])
        self.assertIsNone(end["stop_reason"])

    def test_the_answer_is_generates(self):
        for seed, temperature in ((1, 0), (5, 1)):
            run = settings(stop__max_tokens=9, sampling__seed=seed, sampling__temperature=temperature)
            end = self.events("--steps", "20", *run)[-1]
            answer = self.json_of("generate", "--config", SMALL, "--prompt", REPEAT, *settings(prompt__chat="false"),
                                  *run)
            for key in ("ids", "text", "stop_reason"):
                self.assertEqual(end[key], answer[key])

    def test_text_draws_the_tree_and_stays_within_its_columns(self):
        out = self.succeed(*TRACE, "--steps", "2", "--top", "3").stdout.decode()
        for part in ("prompt: ", "prefill: ", "first token\n", "step 1: ", "step 2: ", "pending\n", "└ 1 ", "one-hot",
                     "drawn: ", "committed:", "answer so far: "):
            self.assertIn(part, out)
        self.assertRegex(out, r"blocks 0-7 +\[\d+, 576\]( +[\d.]+){8}\n")
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_reference_is_a_backend_too(self):
        events = self.events("--steps", "0", "--reference")
        self.assertEqual(events[0]["backend"], "reference")
        self.assertEqual([event["event"] for event in events], ["prompt", "prefill", "step", "end"])

    def test_mistakes_on_the_command_line_exit_with_2(self):
        self.refused(2, "trace", "--config", SMALL, says=["--prompt is required; see tandem trace --help"])
        self.refused(2, "trace", "--prompt", "a", says=["--config is required"])
        for option, value in (("--top", "0"), ("--steps", "-1"), ("--steps", "x"), ("--nonsense", "1")):
            self.refused(2, *TRACE, option, value, says=[option])
        self.refused(2, *TRACE, "--set", "draft.lenght=4", says=["draft.lenght"])
        self.refused(1, "trace", "--config", SMALL, "--prompt", "", *settings(prompt__chat="false"),
                     says=["prompt: expected at least 1 token, got none"])


if __name__ == "__main__":
    unittest.main()
