"""`tandem sweep` from outside, on SmolLM2 with drafts that need no second model."""

import csv
import json
import pathlib
import signal
import time
import unittest

from tandem import LONGEST_RUN_SECONDS, SMALL, TandemTest, settings, strict_json, tandem, wait_until_interruptible

ROWS = [{"id": name, "task": task, "prompt": f"Repeat this line three times: {name} two three four five six."}
        for name, task in (("one", "copy"), ("zero", "copy"), ("nine", "list"))]
GRID = ("--kinds", "ngram,recycle", "--lengths", "0,2,4")
CELLS = 5  # one of them plain


class Sweep(TandemTest):
    def setUp(self):
        super().setUp()
        self.prompts = self.write("prompts.jsonl", "\n".join(map(json.dumps, ROWS)))
        self.out = str(self.folder / "grid")

    def arguments(self, *args, tokens: int = 12) -> list:
        return ["sweep", "--config", SMALL, "--prompts", self.prompts, "--max-tokens", str(tokens), *args]

    def kept(self, ending: str) -> bytes:
        return pathlib.Path(f"{self.out}.{ending}").read_bytes()

    def journal(self) -> list:
        return self.kept("jsonl").splitlines(keepends=True) if pathlib.Path(f"{self.out}.jsonl").exists() else []

    def pairs(self) -> list:
        """What names each pair that was measured whole."""
        lines = [json.loads(line) for line in self.journal()[1:]]
        return [(line["cell"], line["prompt"], line["repeat"]) for line in lines]

    def test_every_cell_meets_every_prompt_and_the_report_agrees_with_itself(self):
        done = self.succeed(*self.arguments(*GRID, "--repeats", "2", "--limit", "2", "--out", self.out))
        report = strict_json(self.kept("json"))
        self.assertEqual((report["pairs_done"], report["pairs_wanted"], report["faults"]), (CELLS * 4, CELLS * 4, 0))
        self.assertEqual(len(set(self.pairs())), CELLS * 4)
        self.assertEqual(len(report["cells"]), CELLS)
        for cell in report["cells"]:
            self.assertEqual(cell["pairs"], 4)
            self.assertEqual([row["id"] for row in cell["prompts"]], ["one", "zero"])
            self.assertTrue(cell["speedup_low"] <= cell["speedup"] <= cell["speedup_high"])
            run = cell["drafted"]
            self.assertTrue(run["accepted"] <= run["tested"] <= run["proposed"])
            self.assertEqual(sum(run["accepted_by_position"]), run["accepted"])
            stages = sum(seconds for name, seconds in run["seconds"].items() if name != "wall")
            self.assertAlmostEqual(stages, run["seconds"]["wall"], places=6)
            self.assertLess(run["seconds"]["other"], 0.02 * run["seconds"]["wall"])
        rows = list(csv.DictReader(self.kept("csv").decode().splitlines()))
        for row, cell in zip(rows, report["cells"], strict=True):
            self.assertEqual((row["kind"], row["length"]), (cell["kind"], str(cell["length"])))
            self.assertAlmostEqual(float(row["speedup"]), cell["speedup"], places=4)
            self.assertEqual(row["config"], SMALL)
        text = done.stdout.decode()
        self.assertRegex(text, r"temperature 0\nkind +length +threshold +rule +speed-up")
        self.assertRegex(text, r"\nngram +4 .*#")
        self.assertRegex(text, r"\nfastest at temperature 0: ")
        self.assertIn("one plain cell a temperature (1 left out)", done.stderr.decode())

    def test_the_fastest_setting_is_a_config_that_generate_takes(self):
        report = self.json_of(*self.arguments(*GRID, "--temperatures", "0,0.5", "--rules", "coupled,block", "--out",
                                              self.out))
        winners = {winner["temperature"]: winner["cell"] for winner in report["winners"]}
        self.assertEqual(sorted(winners), [0, 0.5])
        for temperature, key in winners.items():
            file = f"{self.out}-t{temperature:g}.yaml"
            cell = next((cell for cell in report["cells"] if cell["cell"] == key), None)
            effective = self.succeed("config", "--config", file).stdout.decode()
            self.assertIn(f"  temperature: {temperature:g}\n", effective)
            self.assertIn(f"  kind: {cell['kind'] if cell else 'none'}\n", effective)
            if cell:
                self.assertIn(f"  length: {cell['length']}\n", effective)
                self.assertIn(f"  rule: {cell['rule']}\n", effective)
            answer = self.json_of("generate", "--config", file, "--prompt", "Hi", *settings(stop__max_tokens=4))
            self.assertEqual(answer["settings"]["draft_kind"], cell["kind"] if cell else "none")

    def test_a_killed_sweep_goes_on_where_it_was(self):
        arguments = self.arguments(*GRID, "--repeats", "3", "--out", self.out)
        process = self.start(*arguments)
        deadline = time.monotonic() + LONGEST_RUN_SECONDS
        while len(self.journal()) < 4 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.wait()
        before = self.journal()
        if not before[-1].endswith(b"\n"):
            before.pop()
        self.assertGreater(len(before), 3)
        self.assertLess(len(before), 1 + CELLS * 9, "killed too late to show anything")
        with open(f"{self.out}.jsonl", "ab") as file:
            file.write(before[-1][:len(before[-1]) // 2])  # as if the kill had torn a line
        self.succeed(*arguments, "--resume")
        self.assertEqual(self.journal()[:len(before)], before)
        self.assertEqual(len(self.pairs()), CELLS * 9)
        self.assertEqual(len(set(self.pairs())), CELLS * 9)
        self.assertEqual(strict_json(self.kept("json"))["pairs_done"], CELLS * 9)

    def test_ctrl_c_keeps_what_is_done_and_reports_it(self):
        arguments = self.arguments(*GRID, "--repeats", "40", "--out", self.out)
        process = self.start(*arguments)
        wait_until_interruptible(process)
        deadline = time.monotonic() + LONGEST_RUN_SECONDS
        while len(self.journal()) < 3 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, message = process.communicate(timeout=LONGEST_RUN_SECONDS)
        self.assertEqual(process.returncode, 130, message)
        self.assertIn(b"cancelled; --resume goes on", message)
        self.assertIn(b"not complete: ", out)
        done = len(self.pairs())
        self.assertGreaterEqual(done, 2)
        self.assertEqual(strict_json(self.kept("json"))["pairs_done"], done)
        # With fewer repeats it is nearly done already, and what it has stays.
        before = self.pairs()
        self.succeed(*self.arguments(*GRID, "--repeats", "1", "--out", self.out, "--resume"))
        self.assertEqual(self.pairs()[:len(before)], before)

    def test_resume_goes_on_with_a_wider_grid(self):
        self.succeed(*self.arguments("--kinds", "ngram", "--lengths", "2", "--limit", "1", "--out", self.out))
        before = self.pairs()
        self.assertEqual(len(before), 1)
        self.succeed(*self.arguments("--kinds", "ngram", "--lengths", "2,3", "--limit", "2", "--out", self.out,
                                     "--resume"))
        self.assertEqual(self.pairs()[:1], before)
        self.assertEqual(len(self.pairs()), 4)

    def test_a_journal_of_another_sweep_is_refused(self):
        grid = ("--kinds", "ngram", "--lengths", "2", "--limit", "1", "--out", self.out)
        self.succeed(*self.arguments(*grid))
        before = self.kept("jsonl")
        for other, says in ((settings(sampling__top_k=3), "top_k: 3"), (["--seed", "5"], "seed"),
                            (settings(runtime__threads=1), "threads")):
            self.refused(2, *self.arguments(*grid, "--resume", *other), says=["grid.jsonl", "another sweep", says])
        self.refused(2, *self.arguments(*grid), says=["grid.jsonl", "--resume goes on with it"])
        self.assertEqual(self.kept("jsonl"), before)
        pathlib.Path(f"{self.out}.jsonl").write_text("target: {model: a.gguf}\n", encoding="utf-8")
        self.refused(1, *self.arguments(*grid, "--resume"), says=["grid.jsonl:1:"])

    def test_a_prompt_that_does_not_fit_does_not_lose_the_others(self):
        rows = [ROWS[0], {"id": "long", "prompt": "word " * 400}, ROWS[1]]
        prompts = self.write("mixed.jsonl", "\n".join(map(json.dumps, rows)))
        done = tandem("sweep", "--config", SMALL, "--prompts", prompts, "--max-tokens", "6", "--lengths", "2", "--json",
                      *settings(target__context=128))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r"mixed\.jsonl:2: .*long")
        report = strict_json(done.stdout)
        self.assertEqual([row["id"] for row in report["cells"][0]["prompts"]], ["one", "zero"])

    def test_what_cannot_be_swept_is_refused(self):
        for args, says in ((["--kinds", "modle"], ["draft.kind", "modle"]),
                           (["--kinds", "model"], ["draft.kind", "draft.model"]),
                           (["--lengths", "99"], ["draft.length", "99"]),
                           (["--rules", "typical", "--temperatures", "1"], ["verify.rule", "typical"]),
                           (["--resume"], ["--resume needs --out"]),
                           (["--repeats", "0"], ["--repeats"]),
                           (["--out", str(self.folder / "none" / "grid")], ["none/grid.jsonl"]),
                           (settings(stop__time_limit_seconds=1), ["stop.time_limit_seconds"])):
            with self.subTest(args=args):
                self.refused(2, *self.arguments(*args), says=says)
        twice = self.write("twice.jsonl", "\n".join(json.dumps(ROWS[0]) for _ in range(2)))
        self.refused(2, "sweep", "--config", SMALL, "--prompts", twice, says=["twice.jsonl", "one again"])


if __name__ == "__main__":
    unittest.main()
