"""What is told of a device, seen on the emulated one; and a rehearsal of scripts/gpu_check with the programs of this build."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from tandem import ROOT, TandemTest, binary, strict_json, tandem


class Rows(TandemTest):
    def test_a_device_that_does_not_tell_its_peak_has_times_and_no_limits(self):
        model = self.folder / "tiny.gguf"
        subprocess.run([os.environ["MAKE_SYNTHETIC_MODEL"], "tiny", model], check=True)
        few = ["rows", "--model", str(model), "--backend", "cuda-simt", "--rows", "1", "--context", "0", "--repeats", "1"]
        env = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        done = tandem(*few, "--json", env=env)
        if b"this build has" in done.stderr:
            self.skipTest("this build has no emulation")
        out = strict_json(done.stdout)
        self.assertEqual((out["backend"], out["device"]), ("cuda-simt", "emulation"))
        for key in ("device_peak_bytes_per_second", "read_bandwidth_bytes_per_second", "seconds_memory_allows",
                    "multiply_peak_macs_per_second"):
            self.assertIsNone(out[key], key)
        (row,) = out["rows"]
        self.assertGreater(row["weight_bytes_per_second"], 0)
        self.assertEqual((row["over_memory_limit"], row["over_limit"]), (None, None))
        text = self.succeed(*few, env=env).stdout.decode()
        self.assertIn("cuda-simt on emulation; 0 cached tokens\nthe device's memory does not tell its peak", text)


class Rehearsal(TandemTest):
    def test_ids_rows_and_answers_of_a_synthetic_model_pass(self):
        build = pathlib.Path(binary()).parent
        out = self.folder / "report.json"
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts/gpu_check", "--rehearse", build, "--out", out], check=False)
        report = json.loads(out.read_text())
        self.assertEqual((done.returncode, report["failed"]), (4, []))
        self.assertEqual({entry["reason"] for entry in report["skipped"]}, {"rehearsal"})
        statuses = {stage["name"]: stage["status"] for stage in report["stages"]}
        self.assertEqual({name for name, status in statuses.items() if status == "passed"}, {"models", "ids", "rows", "generate"})


if __name__ == "__main__":
    unittest.main()
