"""scripts/plot.py draws what each measuring command wrote, names what a file lacks, and gives the same file again."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

from load_script import SCRIPTS

SETTINGS = {"target": {"path": "/models/target-1b.gguf"}, "draft": {"path": "/models/draft-100m.gguf"}, "confidence": 0.95}
SECONDS = {"prefill": 0.2, "draft": 0.1, "verify": 0.6, "sample": 0.05, "rollback": 0, "other": 0.05, "wall": 1.0}


def run(tested, accepted):
    return {"tokens": 20, "tested": sum(tested), "tested_by_position": tested, "accepted_by_position": accepted, "seconds": SECONDS}


def cell(kind, length, temperature=0, speedup=1.5, rule="rejection"):
    return {"kind": kind, "length": length, "threshold": 0, "rule": rule, "temperature": temperature, "speedup": speedup,
            "speedup_low": speedup and speedup - 0.1, "speedup_high": speedup and speedup + 0.2,
            "plain": run([], []), "drafted": run([9, 5], [5, 1]) if kind != "none" else run([], [])}


SWEEP = {"settings": SETTINGS, "pairs": [], "cells": [cell("none", 0, speedup=1.0)] + [
    cell(kind, length, temperature) for temperature in (0, 0.8) for kind in ("model", "hybrid") for length in (1, 4, "auto")]}
ROWS = {"model": "/models/target-1b.gguf", "backend": "cpu", "threads": 2, "weight_bytes_per_pass": 1, "rows": [
    {"rows": n, "seconds_median": 0.03 + 0.002 * n, "over_limit": 1.2} for n in (1, 2, 4, 8)]}
ACCEPT = {"settings": SETTINGS, "results": [], "temperatures": [{
    "temperature": 0,
    "positions": [{"position": i, "tested": 9, "conditional": 0.8, "conditional_interval": [0.6, 0.9],
                   "unconditional": 0.8**i, "unconditional_interval": [0.1, 0.9]} for i in (1, 2, 3)],
    "sources": [{"source": "model", "bins": [{"mean_confidence": c, "acceptance_rate": c, "acceptance_interval": [c - 0.1, c + 0.1]}
                                             for c in (0.2, 0.5, 0.9)]}]}]}


def answer(tpot):
    return {"tpot_seconds": tpot, "generated_tokens": 30, "settings": SETTINGS}


SPEED = {task: [{"plain": [answer(0.04)], "drafted": [answer(0.04 / ratio)]} for ratio in ratios]
         for task, ratios in (("code", (2.0, 1.8)), ("chat", (0.97, 1.4)))}
PICTURES = {"sweep": ("speedup", "acceptance", "stages"), "rows": ("rows",), "accept": ("positions", "calibration"), "speed": ("tasks",)}


class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Debian's matplotlib belongs to the Python that the script names, not to the one of the PATH.
        if subprocess.run([SCRIPTS / "plot.py", "--help"], capture_output=True).returncode != 0:
            raise unittest.SkipTest("matplotlib is not installed (scripts/setup)")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def draw(self, prefix="p", **files):
        paths = []
        for name, content in files.items():
            paths.append(self.folder / f"{name}.json")
            paths[-1].write_text(content if isinstance(content, str) else json.dumps(content))
        return subprocess.run([SCRIPTS / "plot.py", "--out", self.folder / prefix, *paths], capture_output=True, text=True,
                              timeout=100, env={**os.environ, "MPLCONFIGDIR": str(self.folder / "mpl")})

    def drawn(self, prefix="p"):
        return {path.name for path in self.folder.glob(f"{prefix}-*")}

    def test_every_output_gives_its_pictures_in_one_call(self):
        done = self.draw(sweep=SWEEP, rows=ROWS, accept=ACCEPT, speed=SPEED)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.drawn(), {f"p-{name}.{end}" for names in PICTURES.values() for name in names for end in ("png", "svg")})
        for path in self.folder.glob("p-*.png"):
            content = path.read_bytes()
            width, height = struct.unpack(">II", content[16:24])
            self.assertTrue(500 < width < 1600 and 300 < height < 1200, f"{path.name}: {width} x {height}")
            self.assertLess(len(content), 150_000)

    def test_pictures_say_what_they_are_of(self):
        self.draw(sweep=SWEEP, rows=ROWS, accept=ACCEPT, speed=SPEED)
        for picture, words in {
            "speedup": ("target-1b", "drafts by draft-100m", "temperature 0.8", "hybrid", "auto", "plain against itself: noise"),
            "acceptance": ("target-1b", "model, length 4", "position in the draft"),
            "stages": ("hybrid, length auto", "plain", "verify", "draft"),
            "rows": ("target-1b, cpu, 2 threads", "1.44x"),
            "positions": ("T 0, once it is reached",),
            "calibration": ("model drafts, T 0", "as sure as right"),
            "tasks": ("code", "chat", "all", "worst prompt: 0.97"),
        }.items():
            text = (self.folder / f"p-{picture}.svg").read_text()  # texts stand in comments beside their outlines
            for word in words:
                self.assertIn(word, text, picture)
            self.assertNotRegex(text, r"<dc:date>")

    def test_the_same_input_gives_the_same_files(self):
        self.draw("a", sweep=SWEEP, speed=SPEED)
        self.draw("b", sweep=SWEEP, speed=SPEED)
        for path in self.folder.glob("a-*"):
            self.assertEqual(path.read_bytes(), (self.folder / path.name.replace("a-", "b-", 1)).read_bytes(), path.name)

    def test_what_an_output_does_not_hold_is_named_and_costs_that_picture_only(self):
        lacking = {**SWEEP, "cells": [{**each, "drafted": {**each["drafted"], "tested": 0}} for each in SWEEP["cells"]]}
        done = self.draw(sweep=lacking)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no picture acceptance: no cell whose drafts were tested", done.stderr)
        self.assertEqual(self.drawn(), {f"p-{name}.{end}" for name in ("speedup", "stages") for end in ("png", "svg")})
        other = {key: value for key, value in ACCEPT["temperatures"][0].items() if key != "sources"}
        done = self.draw("q", accept={**ACCEPT, "temperatures": [other]})
        self.assertIn("no picture calibration: accept output without 'sources'", done.stderr)
        self.assertEqual(self.drawn("q"), {"q-positions.png", "q-positions.svg"})

    def test_a_sweep_without_speedups_draws_nothing_and_says_so(self):
        done = self.draw(sweep={**SWEEP, "cells": [cell("none", 0, speedup=None)]})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.drawn(), set())
        self.assertEqual(done.stderr.count("no picture"), 3)

    def test_single_pairs_without_intervals_are_drawn(self):
        cells = [{**each, "speedup_low": None, "speedup_high": None} for each in SWEEP["cells"]]
        done = self.draw(sweep={**SWEEP, "cells": cells})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_foreign_files_are_refused(self):
        for content in ({"a": 1}, [], {}, "no json"):
            done = self.draw(other=content)
            self.assertEqual(done.returncode, 2, content)
            self.assertIn("other.json", done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
