"""Generation as a person meets it: streams, figures, Ctrl-C, closed pipes, odd prompts. On SmolLM2."""

import json
import os
import signal
import subprocess
import unittest

from tandem import (LONGEST_RUN_SECONDS, SMALL, TandemTest, binary, settings, strict_json, tandem,
                    wait_until_interruptible)

# Goes on until the context is full.
ENDLESS = ["generate", "--config", SMALL, "--prompt", "1, 2, 3, 4, 5, 6,",
           *settings(prompt__chat="false", draft__kind="none", target__context=8192, stop__max_tokens=100000)]


class Streams(TandemTest):
    def test_text_goes_to_stdout_figures_to_stderr_and_the_report_to_its_file(self):
        report = self.folder / "report.json"
        done = self.succeed("generate", "--config", SMALL, "--prompt", "Name three fruits.", "--report", str(report),
                            *settings(stop__max_tokens=40))
        out = strict_json(report.read_bytes())
        self.assertEqual(done.stdout.decode(), out["text"])
        self.assertGreater(len(out["text"]), 20)
        figures = done.stderr.decode()
        for word in ("prompt: ", "answer: ", "tokens/s", f"seed {out['settings']['seed']}"):
            self.assertIn(word, figures)
        self.assertEqual(self.generate("--prompt", "Name three fruits.", tokens=40)["text"], out["text"])

    def test_an_answer_cut_at_its_length_is_warned_about(self):
        done = self.succeed("generate", "--config", SMALL, "--prompt", "Hi", *settings(stop__max_tokens=2))
        self.assertIn("WARNING: cut at stop.max_tokens 2", done.stderr.decode())

    def test_quiet_leaves_stderr_empty(self):
        done = self.succeed("generate", "--config", SMALL, "--prompt", "Hi", "--quiet", *settings(stop__max_tokens=2))
        self.assertEqual(done.stderr, b"")

    def test_json_and_report_hold_the_same(self):
        report = self.folder / "report.json"
        self.assertEqual(self.generate("--prompt", "Hi", "--report", str(report)), strict_json(report.read_bytes()))

    def test_a_prompt_file_shows_each_answer_under_its_id(self):
        rows = [{"id": name, "prompt": f"Say {name}."} for name in ("alpha", "beta")]
        path = self.write("prompts.jsonl", "\n".join(map(json.dumps, rows)))
        done = self.succeed("generate", "--config", SMALL, "--prompts", path, *settings(stop__max_tokens=4))
        self.assertRegex(done.stdout.decode(), r"^=== alpha\n(.|\n)+\n=== beta\n(.|\n)+\n$")
        self.assertIn("all 2: ", done.stderr.decode())

    def test_a_full_disk_is_an_error_and_a_full_stderr_is_not(self):
        run = ["generate", "--config", SMALL, "--prompt", "Hi", *settings(stop__max_tokens=3)]
        with open("/dev/full", "wb") as full:
            done = subprocess.run([binary(), *run], stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"stdout: cannot be written: No space left", done.stderr)
            done = subprocess.run([binary(), *run], stdout=subprocess.PIPE, stderr=full)
            self.assertEqual(done.returncode, 0)
            self.assertGreater(len(done.stdout), 0)

    def test_closed_standard_streams_spoil_no_file(self):
        report = self.folder / "report.json"
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", binary(), "generate", "--config", SMALL, "--prompt", "Hi",
             "--report", str(report), *settings(stop__max_tokens=3)])
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(strict_json(report.read_bytes())["ids"]), 3)


class Interrupts(TandemTest):
    def test_ctrl_c_ends_the_answer_cleanly_with_figures_and_report(self):
        report = self.folder / "report.json"
        process = self.start(*ENDLESS, "--report", str(report))
        text = os.read(process.stdout.fileno(), 100)  # so it streams while it runs
        process.send_signal(signal.SIGINT)
        rest, figures = process.communicate(timeout=LONGEST_RUN_SECONDS)
        self.assertEqual(process.returncode, 130, figures)
        self.assertIn("stop reason: cancel", figures.decode())
        out = strict_json(report.read_bytes())
        self.assertEqual(out["stop_reason"], "cancel")
        self.assertEqual((text + rest).decode(), out["text"])
        self.assertGreater(out["generated_tokens"], 0)

    def test_ctrl_c_before_the_first_token_still_gives_valid_json(self):
        process = self.start("generate", "--config", SMALL, "--json", *settings(stop__max_tokens=100000),
                             stdin=b"Tell me a story.")
        wait_until_interruptible(process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LONGEST_RUN_SECONDS)
        self.assertEqual(process.returncode, 130)
        out = strict_json(out)
        self.assertEqual((out["stop_reason"], out["ids"], out["text"]), ("cancel", [], ""))
        self.assertIsNone(out["ttft_seconds"])

    def test_a_reader_that_leaves_ends_the_run(self):
        process = self.start(*ENDLESS)
        self.assertEqual(len(process.stdout.read(10)), 10)
        process.stdout.close()
        process.wait(timeout=LONGEST_RUN_SECONDS)
        figures = process.stderr.read().decode()
        self.assertEqual(process.returncode, 130, figures)
        self.assertIn("stop reason: cancel", figures)

    def test_a_time_limit_ends_the_answer(self):
        done = self.succeed(*ENDLESS, "--json", *settings(stop__time_limit_seconds="1e-6"))
        self.assertEqual(strict_json(done.stdout)["stop_reason"], "time")


class OddPrompts(TandemTest):
    def test_what_the_shell_hands_over_is_taken_as_it_is(self):
        for prompt in ("[1, 2]", "{}", "--help", "-x", "a=b", "'quoted \"text\"'", "%%", "two\nlines\n", "\\n", "日本"):
            with self.subTest(prompt=prompt):
                raw = settings(prompt__chat="false")
                typed = self.generate("--prompt", prompt, *raw, tokens=1)
                self.assertEqual(typed["ids"], self.generate(*raw, stdin=prompt.encode(), tokens=1)["ids"])
                ids = self.json_of("tokenize", "--model", "smollm2-135m-instruct-q4_1.gguf", "--special",
                                   stdin=prompt.encode())["ids"]
                self.assertEqual(typed["prompt_tokens"], len(ids))

    def test_bytes_that_are_not_utf8_are_a_prompt_too(self):
        for prompt in (b"\xe2\x80", b"ok\xe6\xad"):
            path = self.write("prompt.bin", prompt)
            raw = settings(prompt__chat="false")
            self.assertEqual(self.generate("--prompt-file", path, *raw)["ids"],
                             self.generate(*raw, stdin=prompt)["ids"])
            self.generate("--prompt", os.fsdecode(prompt), tokens=2)

    def test_an_empty_raw_prompt_is_refused_and_an_empty_turn_is_not(self):
        self.refused(1, "generate", "--config", SMALL, "--prompt", "", *settings(prompt__chat="false"),
                     says=["prompt: expected at least 1 token, got none"])
        self.assertGreater(self.generate("--prompt", "", tokens=2)["prompt_tokens"], 0)

    def test_a_prompt_beyond_the_context_is_refused_with_both_lengths(self):
        for words in (15, 16, 4000):
            args = ["generate", "--config", SMALL, *settings(target__context=16, prompt__chat="false"), "--prompt",
                    " a" * words]
            if words < 16:
                self.assertEqual(self.json_of(*args)["stop_reason"], "context")
            else:
                self.refused(1, *args, says=[f"{words} tokens", "context of 16 tokens", "target.context"])

    def test_a_rendered_prompt_inside_a_chat_is_warned_about(self):
        prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        done = self.succeed("generate", "--config", SMALL, "--prompt", prompt, *settings(stop__max_tokens=2))
        self.assertRegex(done.stderr.decode(), r"warning: the prompt already holds <\|im_\w+\|>.*prompt\.chat=false")
        done = tandem("generate", "--config", SMALL, "--prompt", prompt, "--json",
                      *settings(stop__max_tokens=2, prompt__chat="false"))
        self.assertNotIn(b"warning", done.stderr)


if __name__ == "__main__":
    unittest.main()
