"""The statistics of scripts/bench_compare find a difference that is there, rarely one that is not, and survive drift."""

import contextlib
import io
import json
import math
import os
import pathlib
import random
import tempfile
import unittest

from load_script import load

bench_compare = load("bench_compare")

# A benchmark program that prints its case with a time that its name decides.
PROGRAM = """#!/usr/bin/env python3
import json, sys
print(json.dumps({"benchmarks": [{"name": "op/" + str(m), "run_type": "iteration", "real_time": TIME * m,
                                  "cpu_time": 1.0} for m in (1, 8)]
                                + [{"name": "args", "run_type": "iteration", "real_time": 1.0 + len(sys.argv)}]}))
"""


def noisy_rounds(ratio: float, count: int, chance: random.Random, noise: float = 0.05) -> list:
    """Rounds whose machine drifts by a factor of two while both sides scatter alike."""
    rounds = []
    for number in range(count):
        mood = 1 + number / count
        time = {side: mood * math.exp(chance.gauss(0, noise)) for side in ("base", "new")}
        rounds.append({"base": {"op": time["base"]}, "new": {"op": ratio * time["new"]}})
    return rounds


def verdict_of(ratio: float, count: int, seed: int) -> tuple:
    chance = random.Random(seed)
    return bench_compare.compare(bench_compare.log_ratios(noisy_rounds(ratio, count, chance)), 0.95, chance)[0]


class Statistics(unittest.TestCase):
    def setUp(self):
        self.resamples, bench_compare.RESAMPLES = bench_compare.RESAMPLES, 200
        self.addCleanup(setattr, bench_compare, "RESAMPLES", self.resamples)

    def test_a_clear_difference_is_found_behind_a_drift(self):
        for seed in range(20):
            self.assertEqual(verdict_of(0.8, 10, seed)[4], "faster")
            self.assertEqual(verdict_of(1.25, 10, seed)[4], "slower")

    def test_the_interval_holds_the_true_ratio_about_as_often_as_it_says(self):
        tries = 200
        least = 0.95 * tries - 4 * math.sqrt(tries * 0.95 * 0.05)  # four deviations of a binomial
        for count in (6, 10):
            held = sum(low <= 1.03 <= high for _, _, low, high, _ in
                       (verdict_of(1.03, count, seed) for seed in range(tries)))
            self.assertGreaterEqual(held, least, count)
            self.assertLess(held, tries, count)

    def test_one_disturbed_round_does_not_decide(self):
        rounds = noisy_rounds(1.0, 11, random.Random(3), 0.001)
        rounds[4]["new"]["op"] *= 50
        case, ratio, _, high, verdict = bench_compare.compare(bench_compare.log_ratios(rounds), 0.95, random.Random(1))[0]
        self.assertEqual((case, verdict), ("op", "no difference seen"))
        self.assertAlmostEqual(ratio, 1, places=2)
        self.assertLess(high, 1.01)

    def test_all_is_the_geometric_mean_of_the_cases(self):
        rounds = [{"base": {"a": 1.0, "b": 2.0}, "new": {"a": 2.0, "b": 1.0}}] * 8
        rows = bench_compare.compare(bench_compare.log_ratios(rounds), 0.95, random.Random(1))
        self.assertEqual([(row[0], round(row[1], 9), row[4]) for row in rows],
                         [("a", 2, "slower"), ("b", 0.5, "faster"), ("all", 1, "no difference seen")])

    def test_cases_that_a_side_lacks_are_left_out(self):
        rounds = [{"base": {"a": 1.0, "old": 1.0}, "new": {"a": 1.0, "fresh": 1.0}}] * 2
        self.assertEqual(list(bench_compare.log_ratios(rounds)), ["a"])

    def test_the_same_seed_gives_the_same_interval(self):
        self.assertEqual(verdict_of(1.1, 10, 5), verdict_of(1.1, 10, 5))


class Reports(unittest.TestCase):
    def test_aggregates_are_no_runs_and_errors_are_named(self):
        report = {"benchmarks": [{"name": "a", "run_type": "iteration", "real_time": 2.0},
                                 {"name": "a_mean", "run_type": "aggregate", "real_time": 3.0}]}
        self.assertEqual(bench_compare.times_of(report, "real_time"), {"a": 2.0})
        report["benchmarks"].append({"name": "b", "error_occurred": True, "error_message": "a draft was rejected"})
        with self.assertRaisesRegex(bench_compare.Unusable, "b: a draft was rejected"):
            bench_compare.times_of(report, "real_time")


class EndToEnd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for side, time in (("old", 2.0), ("fast", 1.0)):
            program = self.folder / side / "bench" / "ops_bench"
            program.parent.mkdir(parents=True)
            program.write_text(PROGRAM.replace("TIME", str(time)))
            os.chmod(program, 0o755)

    def run_main(self, *words: str) -> tuple:
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = bench_compare.main(list(words))
        return status, out.getvalue(), errors.getvalue()

    def test_two_builds_are_compared_case_by_case(self):
        document = self.folder / "out.json"
        status, out, _ = self.run_main(str(self.folder / "old"), str(self.folder / "fast"), "--rounds", "2", "--json",
                                       str(document), "--", "--more")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"op/8 +0\.500 +0\.500 \.\. 0\.500  faster")
        self.assertIn("2 rounds are few", out)
        written = json.loads(document.read_text())
        self.assertEqual(len(written["rounds"]), 2)
        self.assertEqual([row["case"] for row in written["results"]], ["op/1", "op/8", "args", "all"])
        self.assertEqual(written["rounds"][0]["base"]["args"], 1.0 + 4)  # format, filter and what followed --

    def test_what_is_neither_build_nor_revision_is_refused(self):
        status, _, errors = self.run_main(str(self.folder / "old"), "no-such-revision")
        self.assertEqual(status, 1)
        self.assertIn("no-such-revision: expected a build folder with bench/ops_bench, or a git revision", errors)


if __name__ == "__main__":
    unittest.main()
