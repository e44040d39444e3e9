"""The machine-readable contract: what scripts read from every command, on SmolLM2."""

import json
import math
import os
import unittest

from tandem import MODELS, SMALL, SMALL_MODEL, TandemTest, golden, settings

ANSWER_KEYS = {
    "ids", "text", "stop_reason", "prompt_tokens", "generated_tokens", "ttft_seconds", "tpot_seconds",
    "decode_tokens_per_second", "steps", "proposed", "tested", "accepted", "cut", "accepted_by_position", "seconds",
}
STAGES = {"load", "prefill", "draft", "verify", "sample", "rollback", "other"}
REPETITIVE = "Repeat this line three times: one two three four five six seven eight."


class Tokenize(TandemTest):
    def test_ids_are_the_golden_ones_and_pieces_are_the_vocabularys_strings(self):
        out = self.json_of("tokenize", "--model", SMALL_MODEL, stdin=b"Hello world\n")
        self.assertEqual(set(out), {"ids", "pieces"})
        self.assertEqual(out["pieces"], ["Hello", "\u0120world", "\u010a"])
        marked = [row for row in golden("tokenize.jsonl") if "<|im_start|>" in row.get("text", "")]
        self.assertGreaterEqual(len(marked), 2)
        for row in marked:
            with self.subTest(row=row):
                flags = ["--special"] if row["special"] else []
                out = self.json_of("tokenize", "--model", SMALL_MODEL, *flags, stdin=row["text"].encode())
                self.assertEqual(out["ids"], row["ids"])

    def test_bos_is_added_only_where_the_model_asks(self):
        plain = self.json_of("tokenize", "--model", SMALL_MODEL, stdin=b"Hello")
        self.assertEqual(self.json_of("tokenize", "--model", SMALL_MODEL, "--bos", stdin=b"Hello"), plain)

    def test_bytes_that_are_not_utf8_and_empty_input_have_ids_too(self):
        self.assertGreater(len(self.json_of("tokenize", "--model", SMALL_MODEL, stdin=b"ok\xe6\xad")["ids"]), 1)
        self.assertEqual(self.json_of("tokenize", "--model", SMALL_MODEL), {"ids": [], "pieces": []})

    def test_the_table_for_people_holds_the_same_ids(self):
        out = self.succeed("tokenize", "--model", SMALL_MODEL, stdin=b"Hello world").stdout.decode()
        ids = self.json_of("tokenize", "--model", SMALL_MODEL, stdin=b"Hello world")["ids"]
        self.assertEqual([int(line.split()[0]) for line in out.splitlines()], ids)


class Score(TandemTest):
    def test_reference_scores_are_the_golden_ones(self):
        row = min((row for row in golden("logits.jsonl") if "text" in row), key=lambda row: len(row["ids"]))
        out = self.json_of("score", "--model", SMALL_MODEL, "--reference", stdin=row["text"].encode())
        self.assertLessEqual({"ids", "logprobs", "argmax", "perplexity"}, set(out))
        self.assertEqual(out["ids"], row["ids"])
        self.assertIsNone(out["logprobs"][0])
        self.assertEqual(len(out["logprobs"]), len(row["ids"]))
        for value, nll in zip(out["logprobs"][1:], row["nll"]):
            self.assertAlmostEqual(-value, nll, delta=1e-3)
        self.assertEqual(len(out["argmax"]), len(row["ids"]))
        self.assertEqual(out["argmax"][-1], row["last_top20"][0][0])
        mean = sum(out["logprobs"][1:]) / len(row["nll"])
        self.assertAlmostEqual(out["perplexity"], math.exp(-mean), delta=1e-9 * out["perplexity"])

    def test_specials_are_parsed_and_one_token_has_no_perplexity(self):
        out = self.json_of("score", "--model", SMALL_MODEL, stdin=b"<|im_start|>")
        self.assertEqual((out["ids"], out["logprobs"], out["perplexity"]), ([1], [None], None))

    def test_no_text_is_refused(self):
        self.refused(1, "score", "--model", SMALL_MODEL, "--json", says=["expected 1.."])


class Rows(TandemTest):
    def test_every_count_asked_for_is_timed(self):
        out = self.json_of("rows", "--model", SMALL_MODEL, "--rows", "1,2,4,8", "--context", "64", "--repeats", "2")
        self.assertEqual([row["rows"] for row in out["rows"]], [1, 2, 4, 8])
        for row in out["rows"]:
            self.assertGreaterEqual(row["seconds_median"], row["seconds_min"])
            self.assertGreater(row["seconds_min"], 0)
            self.assertAlmostEqual(row["weight_bytes_per_second"] * row["seconds_median"] / out["weight_bytes_per_pass"], 1)
        self.assertGreater(out["read_bandwidth_bytes_per_second"], 0)
        self.assertEqual((out["device"], out["device_peak_bytes_per_second"]), (None, None))
        size = (MODELS / SMALL_MODEL).stat().st_size
        self.assertTrue(0.8 * size < out["weight_bytes_per_pass"] < size)

    def test_reference_is_a_backend_too(self):
        out = self.json_of("rows", "--model", SMALL_MODEL, "--rows", "1", "--context", "0", "--repeats", "1",
                           "--reference")
        self.assertEqual(out["backend"], "reference")

    def test_a_backend_can_be_named(self):
        few = ["rows", "--model", SMALL_MODEL, "--rows", "1", "--context", "0", "--repeats", "1"]
        self.assertTrue(self.json_of(*few, "--backend", "cpu")["backend"].startswith("cpu-"))
        self.refused(2, *few, "--backend", "gpu", says=["this build has auto, cpu", "got 'gpu'"])

    def test_saved_cost_tables_take_the_curve(self):
        env = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        automatic = ["--set", "draft.length=auto", "--prompt", REPETITIVE]
        curve = ["rows", "--model", SMALL_MODEL, "--rows", "1,4", "--repeats", "1"]
        self.assertEqual(self.json_of(*curve, env=env)["refreshed_cost_tables"], 0)
        first = self.generate(*automatic, env=env)["settings"]["cost_table"]
        self.assertEqual(first["origin"], "measured at load")
        out = self.json_of(*curve, env=env)
        self.assertEqual(out["refreshed_cost_tables"], 1)
        self.assertEqual(self.json_of(*curve, "--context", "600", env=env)["refreshed_cost_tables"], 0)
        second = self.generate(*automatic, env=env)["settings"]["cost_table"]
        self.assertEqual(second["origin"], "saved")
        self.assertGreaterEqual(second["measured_at"], first["measured_at"])
        saved = {point["rows"]: point["seconds"] for point in second["target"]}
        self.assertEqual(set(saved), {point["rows"] for point in first["target"]})
        for row in out["rows"]:
            self.assertAlmostEqual(saved[row["rows"]], row["seconds_median"], delta=1e-9 * row["seconds_median"])

    def test_damaged_cost_tables_are_no_hindrance(self):
        env = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        self.write("tandem/costs.json", b"{\"a\": [")
        out = self.generate("--set", "draft.length=auto", "--prompt", REPETITIVE, env=env)
        self.assertEqual(out["settings"]["cost_table"]["origin"], "measured at load")

    def test_more_than_the_context_is_refused(self):
        self.refused(1, "rows", "--model", SMALL_MODEL, "--rows", "8", "--context", "1000000", says=["1000000"])


class Generate(TandemTest):
    def check_figures(self, out: dict):
        self.assertLessEqual(ANSWER_KEYS, set(out))
        self.assertLessEqual(STAGES, set(out["seconds"]))
        self.assertEqual(out["generated_tokens"], len(out["ids"]))
        self.assertEqual(out["generated_tokens"], 1 + out["accepted"] + out["steps"] - out["cut"])
        self.assertEqual(sum(out["accepted_by_position"]), out["accepted"])
        self.assertTrue(out["accepted"] <= out["tested"] <= out["proposed"])
        self.assertTrue(all(value >= 0 for value in out["seconds"].values()))
        stages = sum(out["seconds"][stage] for stage in STAGES - {"load"})
        self.assertAlmostEqual(stages, out["seconds"]["wall"], delta=1e-6)
        self.assertTrue(out["seconds"]["prefill"] <= out["ttft_seconds"] <= out["seconds"]["wall"])

    def test_the_report_adds_up_and_every_source_of_the_prompt_gives_the_same(self):
        path = self.write("prompt.txt", REPETITIVE)
        outs = [self.generate("--prompt", REPETITIVE, tokens=64), self.generate("--prompt-file", path, tokens=64),
                self.generate(stdin=REPETITIVE.encode(), tokens=64)]
        for out in outs:
            self.check_figures(out)
            self.assertEqual(out["ids"], outs[0]["ids"])
            self.assertAlmostEqual(out["tpot_seconds"] * out["decode_tokens_per_second"], 1)
        self.assertGreater(outs[0]["accepted"], 0)
        self.assertEqual(outs[0]["settings"]["draft_kind"], "ngram")
        self.assertTrue(outs[0]["settings"]["lossless"])
        self.assertRegex(outs[0]["settings"]["target"]["sha256"], "^[0-9a-f]{64}$")

    def test_greedy_ids_are_the_golden_ones_with_and_without_drafts(self):
        for row in (row for row in golden("logits.jsonl") if "greedy_ids" in row):
            with self.subTest(prompt=row["prompt"]):
                count = len(row["greedy_ids"])
                raw = ["--prompt", row["prompt"], *settings(prompt__chat="false")]
                plain = self.generate(*raw, *settings(draft__kind="none"), tokens=count)
                certain = next((i for i, margin in enumerate(row["greedy_margin"]) if margin < 0.3), count)
                self.assertEqual(plain["ids"][:certain], row["greedy_ids"][:certain])
                self.assertEqual(plain["prompt_tokens"], len(row["prompt_ids"]))
                self.assertEqual((plain["proposed"], plain["accepted_by_position"]), (0, []))
                self.assertEqual(self.generate(*raw, tokens=count)["ids"], plain["ids"])

    def test_reference_runs_on_the_reference_backend(self):
        out = self.generate("--reference", "--prompt", "Hi", tokens=3)
        self.check_figures(out)
        self.assertEqual(out["settings"]["backend"], "reference")
        self.assertEqual(out["settings"]["target"]["kv_cache"], "f32")

    def test_one_token_has_no_rate_and_ends_for_its_length(self):
        out = self.generate("--prompt", "Hi", tokens=1)
        self.assertEqual((len(out["ids"]), out["steps"], out["stop_reason"]), (1, 0, "length"))
        self.assertIsNone(out["tpot_seconds"])
        self.assertIsNone(out["decode_tokens_per_second"])
        self.assertGreater(out["ttft_seconds"], 0)

    def test_a_full_context_ends_the_answer(self):
        out = self.generate("--prompt", "Tell me a long story.", *settings(target__context=64), tokens=1000)
        self.assertEqual((out["stop_reason"], out["prompt_tokens"] + out["generated_tokens"]), ("context", 64))

    def test_a_seed_repeats_sampled_text_and_the_random_one_is_reported(self):
        hot = settings(sampling__temperature=1)
        first = self.generate("--prompt", "Name a colour.", *hot)
        repeat = self.generate("--prompt", "Name a colour.", *hot,
                               *settings(sampling__seed=first["settings"]["seed"]))
        self.assertEqual(repeat["ids"], first["ids"])
        others = {tuple(self.generate("--prompt", "Name a colour.", *hot, *settings(sampling__seed=seed))["ids"])
                  for seed in (1, 2, 3)}
        self.assertGreater(len(others), 1)

    def test_a_stop_string_is_left_out_of_the_text(self):
        prompt = "Count from one to ten in words."
        whole = self.generate("--prompt", prompt, tokens=40)["text"]
        stop = whole[len(whole) // 2:][:5]
        out = self.generate("--prompt", prompt, *settings(stop__strings=json.dumps([stop])), tokens=40)
        self.assertEqual((out["text"], out["stop_reason"]), (whole[:whole.index(stop)], "stop"))

    def test_logprobs_are_those_of_score_with_and_without_drafts(self):
        asked = [*settings(sampling__logprobs=2, sampling__repetition_penalty=1.2), "--prompt", REPETITIVE]
        drafted = self.generate(*asked, tokens=24)
        plain = self.generate(*asked, *settings(draft__kind="none"), tokens=24)
        self.assertGreater(drafted["accepted"], 0)
        self.assertEqual((drafted["ids"], drafted["logprobs"]), (plain["ids"], plain["logprobs"]))
        self.assertEqual([token["id"] for token in plain["logprobs"]], plain["ids"])
        for token in plain["logprobs"]:
            self.assertEqual(set(token), {"id", "text", "logprob", "top"})
            self.assertEqual(len(token["top"]), 2)
            self.assertTrue(token["logprob"] <= token["top"][0]["logprob"] <= 0)
        self.assertNotIn("logprobs", self.generate("--prompt", "Hi", tokens=2))

    def test_penalties_and_bias_change_the_text_alike_with_and_without_drafts(self):
        neutral = self.generate("--prompt", REPETITIVE, tokens=24)["ids"]
        banned = json.dumps({str(neutral[0]): "-inf"})
        for changed in (settings(sampling__repetition_penalty=2), settings(sampling__presence_penalty=5),
                        settings(sampling__frequency_penalty=5, sampling__penalty_window=200),
                        settings(sampling__logit_bias=banned)):
            with self.subTest(changed=changed):
                ids = self.generate("--prompt", REPETITIVE, *changed, tokens=24)["ids"]
                self.assertNotEqual(ids, neutral)
                self.assertEqual(
                    self.generate("--prompt", REPETITIVE, *changed, *settings(draft__kind="none"), tokens=24)["ids"], ids)

    def test_settings_are_enough_to_repeat_the_run(self):
        out = self.generate("--prompt", "Name a colour.", *settings(sampling__temperature=1, sampling__seed=7))
        path = self.write("again.yaml", out["settings"]["effective_yaml"])
        again = self.json_of("generate", "--config", path, "--prompt", "Name a colour.")
        self.assertEqual(again["ids"], out["ids"])
        self.assertEqual(again["settings"]["config_hash"], out["settings"]["config_hash"])


class GenerateMany(TandemTest):
    def test_each_answer_equals_its_own_run(self):
        rows = [
            {"id": "a", "task": "chat", "messages": [{"role": "user", "content": "Name a colour."}], "max_tokens": 9},
            {"id": "b", "task": "chat", "messages": [{"role": "system", "content": "Answer in French."},
                                                     {"role": "user", "content": "Hello"}], "max_tokens": 99},
            {"id": "c", "task": "chat", "messages": [{"role": "user", "content": "Name a colour."}], "max_tokens": 9},
        ]
        path = self.write("prompts.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
        out = self.generate("--prompts", path, *settings(sampling__temperature=1, sampling__seed=5))
        self.assertEqual([(r["id"], r["task"]) for r in out["results"]], [(r["id"], r["task"]) for r in rows])
        for result in out["results"]:
            self.assertLessEqual(ANSWER_KEYS, set(result))
        self.assertEqual([result["ids"] for result in out["results"]][::2], [
            self.generate("--prompt", "Name a colour.", *settings(sampling__temperature=1, sampling__seed=5),
                          tokens=9)["ids"]] * 2)
        self.assertLessEqual(len(out["results"][1]["ids"]), 12)
        self.assertEqual(out["totals"]["generated_tokens"], sum(len(result["ids"]) for result in out["results"]))
        self.assertEqual(out["totals"]["steps"], sum(result["steps"] for result in out["results"]))
        self.assertIn("settings", out)


class Inspect(TandemTest):
    def test_the_parts_add_up_to_the_whole(self):
        out = self.json_of("inspect", "--model", SMALL_MODEL, "--tensors")
        self.assertEqual((out["architecture"], out["layers"], out["width"], out["vocabulary_size"]),
                         ("llama", 30, 576, 49152))
        self.assertEqual(out["file_bytes"], (MODELS / SMALL_MODEL).stat().st_size)
        for group in ("parts", "formats"):
            self.assertEqual(sum(part["parameters"] for part in out[group].values()), out["parameters"])
        self.assertEqual(sum(part["tensors"] for part in out["formats"].values()), len(out["tensors"]))
        self.assertEqual(sum(tensor["rows"] * tensor["columns"] for tensor in out["tensors"]), out["parameters"])
        self.assertEqual(out["kv_bytes_per_token_f16"], 30 * 2 * 3 * 64 * 2)
        self.assertEqual(out["kv_bytes_per_token_q8_0"], 30 * 2 * 3 * 64 // 32 * 34)

    def test_the_table_for_people_names_every_tensor(self):
        out = self.succeed("inspect", "--model", SMALL_MODEL, "--tensors").stdout.decode()
        for word in ("llama", "feed-forward", "Q4_1", "blk.29.ffn_down.weight"):
            self.assertIn(word, out)


if __name__ == "__main__":
    unittest.main()
