"""Prompt files, alike in every command that takes one: what is refused by line, and what one bad prompt costs."""

import json
import unittest

from tandem import SMALL, TandemTest, settings, strict_json, tandem

GOOD = {"id": "good", "task": "chat", "prompt": "Name a colour."}
LONG = {"id": "endless", "task": "chat", "prompt": "word " * 400}
OTHER = {"id": "other", "task": "code", "prompt": "Name a fruit."}
SHORT = settings(target__context=64, stop__max_tokens=6)
COMMANDS = ("generate", "check", "accept")
SWEEP = ("--lengths", "2", "--warmup", "0")


class PromptFiles(TandemTest):
    def prompts(self, *rows) -> str:
        return self.write("prompts.jsonl", "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))

    def refuse(self, command: str, path: str, *args, says=()) -> str:
        return self.refused(2, command, "--config", SMALL, "--prompts", path, *args, says=says)

    def run_all(self, command: str, path: str, *args):
        """Runs a command that answers what it can; returns exit code, JSON and what it told people."""
        done = tandem(command, "--config", SMALL, "--prompts", path, "--json", *SHORT, *args)
        return done.returncode, strict_json(done.stdout), done.stderr.decode()


class Refused(PromptFiles):
    def test_a_malformed_line_is_named_with_its_number_and_field(self):
        for line, says in (("{", "no JSON at byte 2"), ("[]", "JSON object a line, got array"), ("7", "got number"),
                           ('{"id": "b", "prompt": "\\ud800"}', "no JSON at byte"),
                           ('{"prompt": "x"}', "id: expected a text, got nothing"),
                           ('{"id": 7, "prompt": "x"}', "id: expected a text, got 7"),
                           ('{"id": "b", "task": 1, "prompt": "x"}', "task: expected a text, got 1"),
                           ('{"id": "b", "prompt": null}', "prompt: expected a text, got null"),
                           ('{"id": "b"}', "messages: expected a non-empty list"),
                           ('{"id": "b", "messages": []}', "got []"),
                           ('{"id": "b", "messages": {}}', "got {}"),
                           ('{"id": "b", "messages": ["x"]}', "messages[0]: expected an object with role"),
                           ('{"id": "b", "messages": [{"role": "user", "content": "x"}, {"role": "user"}]}',
                            "messages[1]: content: expected a text, got nothing"),
                           ('{"id": "b", "messages": [{"role": "user", "content": "x"}], "prompt": "x"}', "got both"),
                           ('{"id": "b", "prompt": "x", "max_tokens": 0}', "max_tokens: expected an integer 1.."),
                           ('{"id": "b", "prompt": "x", "max_tokens": "9"}', 'got "9"'),
                           ('{"id": "b", "prompt": "x", "max_tokens": 1e99}', "max_tokens")):
            with self.subTest(line=line):
                path = self.prompts(GOOD, "", line)
                self.refuse("generate", path, says=[f"{path}:3: ", says])

    def test_every_command_refuses_alike(self):
        empty, broken = self.write("empty.jsonl", "\n \n"), self.prompts(GOOD, "{")
        missing = str(self.folder / "missing.jsonl")
        for command, *more in (*((name,) for name in COMMANDS), ("sweep", *SWEEP),
                               ("replay", "--record", str(self.folder / "record"))):
            with self.subTest(command=command):
                self.refuse(command, empty, *more, says=[empty, "at least one prompt, got none"])
                self.refuse(command, broken, *more, says=[f"{broken}:2: "])
                self.refuse(command, missing, *more, says=[missing, "No such file"])
                self.refuse(command, str(self.folder), *more, says=["cannot be read"])

    def test_an_unknown_task_is_named_with_those_that_there_are(self):
        path = self.prompts(GOOD, OTHER)
        for command in COMMANDS:
            with self.subTest(command=command):
                self.refuse(command, path, "--task", "cod",
                            says=["--task cod", "expected chat or code", path, "did you mean code?"])
        self.refuse("generate", self.prompts({"id": "a", "prompt": "x"}), "--task", "code", says=["no prompt", "a task"])
        self.refused(2, "generate", "--config", SMALL, "--prompt", "Hi", "--task", "code", says=["--prompts"])


class Chosen(PromptFiles):
    def test_tasks_and_limit_choose_rows(self):
        path = self.prompts(GOOD, OTHER, {**GOOD, "id": "third"})
        for args, ids in ((("--task", "chat"), ["good", "third"]), (("--task", "chat", "--limit", "1"), ["good"]),
                          (("--task", "code", "--task", "chat"), ["good", "other", "third"]),
                          (("--limit", "2"), ["good", "other"])):
            with self.subTest(args=args):
                code, out, _ = self.run_all("generate", path, *args)
                self.assertEqual((code, [row["id"] for row in out["results"]]), (0, ids))


class OneBadPrompt(PromptFiles):
    def test_generate_answers_the_others(self):
        path = self.prompts(GOOD, LONG, OTHER)
        code, out, message = self.run_all("generate", path)
        self.assertEqual(code, 1)
        self.assertEqual([row["id"] for row in out["results"]], ["good", "endless", "other"])
        bad = out["results"][1]
        self.assertEqual(set(bad), {"id", "task", "error"})
        for part in (f"{path}:2: prompt endless: expected 1..63 tokens", "target.context"):
            self.assertIn(part, bad["error"])
            self.assertIn(part, message)
        self.assertIn("1 of 3 prompts failed: endless\n", message)
        alone = self.run_all("generate", self.prompts(OTHER))[1]["results"][0]
        self.assertEqual(out["results"][2]["ids"], alone["ids"])
        self.assertNotIn("error", out["results"][2])
        self.assertEqual((out["totals"]["prompts"], out["totals"]["failed"]), (2, 1))

    def test_people_see_the_other_answers_too(self):
        path = self.prompts(LONG, OTHER)
        done = tandem("generate", "--config", SMALL, "--prompts", path, *SHORT)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(), r"^=== other\n.+")
        self.assertIn("1 of 2 prompts failed: endless", done.stderr.decode())

    def test_check_checks_the_others(self):
        path = self.prompts(LONG, GOOD, OTHER)
        hot = settings(sampling__temperature=1, sampling__top_k=2, sampling__seed=3)
        code, out, message = self.run_all("check", path, "--laws", "1", "--draws", "200", *hot)
        self.assertEqual(code, 1)
        self.assertEqual((out["passed"], out["failed"]), (False, 1))
        self.assertEqual([(row["id"], row["passed"]) for row in out["greedy"]],
                         [("endless", False), ("good", True), ("other", True)])
        self.assertIn(f"{path}:1: prompt endless", out["greedy"][0]["error"])
        self.assertEqual([row["id"] for row in out["laws"]], ["good"])
        self.assertEqual(message.count("prompt endless"), 1)
        done = tandem("check", "--config", SMALL, "--prompts", path, *SHORT)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(),
                         r"check: FAILED: .* 2 of 2 texts equal plain decoding's; 1 of 3 prompts failed: endless\n$")

    def test_accept_counts_the_others(self):
        path = self.prompts(LONG, GOOD, OTHER)
        code, out, message = self.run_all("accept", path, "--temperatures", "0,1")
        self.assertEqual((code, out["failed"], out["interrupted"]), (1, 1, False))
        self.assertIn(f"{path}:1: prompt endless", out["results"][0]["error"])
        self.assertEqual([(row["id"], row["temperature"]) for row in out["results"][1:]],
                         [("good", 0), ("good", 1), ("other", 0), ("other", 1)])
        self.assertEqual([found["all"]["answers"] for found in out["temperatures"]], [2, 2])
        self.assertIn("1 of 3 prompts failed: endless", message)

    def test_sweep_and_replay_measure_the_others(self):
        path = self.prompts(LONG, GOOD)
        code, out, message = self.run_all("sweep", path, *SWEEP)
        self.assertEqual((code, [row["id"] for row in out["cells"][0]["prompts"]]), (1, ["good"]))
        self.assertIn("1 of 2 prompts failed: endless", message)
        record = str(self.folder / "record")
        code, _, message = self.run_all("replay", path, "--record", record, "--lengths", "1")
        self.assertEqual(code, 1)
        self.assertIn(f"{path}:1: prompt endless: expected 1..63 tokens", message)
        self.assertIn("recorded 1 of 2 answers", message)

    def test_nothing_but_bad_prompts_still_gives_a_report(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                code, _, message = self.run_all(command, self.prompts(LONG))
                self.assertEqual(code, 1)
                self.assertIn("1 of 1 prompts failed: endless" if command != "check" else "prompt endless", message)


if __name__ == "__main__":
    unittest.main()
