"""The side-by-side table shows both runs, survives null rates, and says plainly whether the texts agree."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

from load_script import load

compare_reports = load("compare_reports.py")

REPORT = {
    "ids": [5, 6, 7], "stop_reason": "stop", "generated_tokens": 3, "ttft_seconds": 0.25, "tpot_seconds": 0.05,
    "decode_tokens_per_second": 20.0, "steps": 1, "proposed": 4, "tested": 2, "accepted": 1,
    "seconds": {"load": 1.0, "verify": 0.5},
}


def compared(draft: dict, plain: dict) -> tuple:
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("a.json", "b.json")]
        for path, report in zip(paths, (draft, plain)):
            path.write_text(json.dumps(report))
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = compare_reports.main([str(path) for path in paths])
        return status, out.getvalue(), errors.getvalue()


class CompareReports(unittest.TestCase):
    def test_both_columns_and_the_ratio_are_shown(self):
        status, out, _ = compared(REPORT, {**REPORT, "decode_tokens_per_second": 10.0})
        self.assertEqual(status, 0)
        self.assertRegex(out, r"decoding +20\.0 tokens/s +10\.0 tokens/s")
        self.assertIn("2.00x", out)
        self.assertIn("the same, all 3 tokens", out)

    def test_the_first_difference_is_named(self):
        for ids, first in [([5, 9, 7], 1), ([5, 6], 2)]:
            self.assertIn(f"differ from token {first} on", compared(REPORT, {**REPORT, "ids": ids})[1])

    def test_untimed_rates_and_zero_counts_show_as_dashes(self):
        empty = {**REPORT, "tpot_seconds": None, "decode_tokens_per_second": None, "steps": 0, "tested": 0}
        status, out, _ = compared(REPORT, empty)
        self.assertEqual(status, 0)
        self.assertRegex(out, r"acceptance +50 % +-")
        self.assertNotIn("plain speed", out)

    def test_a_missing_figure_is_an_error_that_names_it(self):
        status, _, errors = compared(REPORT, {"ids": []})
        self.assertEqual(status, 1)
        self.assertIn("generated_tokens", errors)


if __name__ == "__main__":
    unittest.main()
