"""The table of scripts/speed: rates over the same tokens, and first tokens by the median over prompts."""

import contextlib
import io
import unittest

from load_script import load

speed = load("speed")


def run(ttft: float, tpot: float = 0.1, tokens: int = 10) -> dict:
    return {"ttft_seconds": ttft, "tpot_seconds": tpot, "generated_tokens": tokens, "tested": 8, "accepted": 6}


def line(results: list) -> list:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        speed.report("all", results)
    return out.getvalue().split()


class Speed(unittest.TestCase):
    def test_repeats_of_a_side_count_by_their_median(self):
        runs = {"plain": [run(1.0), run(9.0), run(2.0)], "drafted": [run(2.2), run(0.1), run(7.0)]}
        self.assertAlmostEqual(speed.first_token_ratio(runs), 1.1)

    def test_a_line_shows_the_median_over_prompts(self):
        prompts = [{"plain": [run(1.0, 0.2)], "drafted": [run(ratio, 0.1)]} for ratio in (1.0, 1.5, 4.0)]
        self.assertEqual(line(prompts), ["all", "5.0", "10.0", "2.00", "0.75", "1.50"])

    def test_rates_weigh_prompts_by_the_time_they_take(self):
        prompts = [{"plain": [run(1, 0.1, 100)], "drafted": [run(1, 0.1, 100)]},
                   {"plain": [run(1, 0.3, 100)], "drafted": [run(1, 0.1, 100)]}]
        self.assertEqual(line(prompts)[1:4], ["5.0", "10.0", "2.00"])


if __name__ == "__main__":
    unittest.main()
