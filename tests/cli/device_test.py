"""How a backend is chosen and what is told of a device, seen on the emulated one; and a rehearsal of scripts/gpu_check with
the programs of this build."""

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from tandem import ROOT, TandemTest, binary, strict_json, tandem


class DeviceTest(TandemTest):
    """On a tiny model, with cost tables of its own."""

    def setUp(self):
        super().setUp()
        self.model = str(self.folder / "tiny.gguf")
        self.env = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}
        subprocess.run([os.environ["MAKE_SYNTHETIC_MODEL"], "tiny", self.model], check=True)

    def run_on(self, backend, *args, **options):
        return tandem(*args, "--backend", backend, env=self.env, **options)

    def require_emulation(self):
        done = self.run_on("cuda-simt", "score", "--model", self.model, stdin=b"a")
        if b"this build has" in done.stderr:
            self.skipTest(done.stderr.decode())


class Choice(DeviceTest):
    def generate(self, backend):
        config = self.write("tiny.yaml", f"target: {{model: {self.model}, context: 64}}\ndraft: {{kind: none}}\n"
                                         f"runtime: {{backend: {backend}}}\nsampling: {{temperature: 0}}\n"
                                         "prompt: {chat: false}\nstop: {max_tokens: 4}\n")
        return tandem("generate", "--config", config, "--json", "--quiet", "--prompt", "abc", env=self.env)

    def test_auto_falls_back_to_the_cpu_and_the_report_says_so(self):
        if shutil.which("nvidia-smi"):
            self.skipTest("there may be a GPU here")
        done = self.generate("auto")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        told = strict_json(done.stdout)["settings"]
        self.assertTrue(told["backend"].startswith("cpu-"), told["backend"])
        self.assertIsNone(told["device"])

    def test_cuda_without_a_gpu_is_an_error_that_names_what_is_missing(self):
        if shutil.which("nvidia-smi"):
            self.skipTest("there may be a GPU here")
        done = self.generate("cuda")
        (line,) = done.stderr.decode().splitlines()
        if "this build has" in line:
            self.assertEqual(done.returncode, 2)
            self.assertIn("runtime.backend: this build has auto, cpu", line)
            self.assertIn("got 'cuda' ('cuda' is built where CMake finds nvcc)", line)
        else:
            self.assertEqual(done.returncode, 1)
            self.assertIn("cuda backend: no NVIDIA driver is installed", line)

    def test_a_backend_that_no_build_has_is_refused_by_name(self):
        for args in (["rows", "--model", self.model], ["score", "--model", self.model]):
            done = self.run_on("tpu", *args, stdin=b"a")
            self.assertEqual(done.returncode, 2)
            self.assertIn("this build has auto, cpu", done.stderr.decode())
            self.assertIn("got 'tpu'", done.stderr.decode())
            self.assertEqual(tandem(*args, "--backend", "cpu", "--reference", stdin=b"a").returncode, 2)


class Score(DeviceTest):
    def test_the_backend_asked_for_scores_and_is_named(self):
        self.require_emulation()
        found = {backend: strict_json(self.run_on(backend, "score", "--model", self.model, "--json", stdin=b"an answer").stdout)
                 for backend in ("cpu", "cuda-simt")}
        self.assertTrue(found["cpu"]["backend"].startswith("cpu-"))
        self.assertEqual([found[b]["device"] for b in found], [None, "emulation"])
        self.assertEqual(found["cuda-simt"]["backend"], "cuda-simt")
        for cpu, emulated in zip(found["cpu"]["logprobs"][1:], found["cuda-simt"]["logprobs"][1:]):
            self.assertTrue(math.isclose(cpu, emulated, abs_tol=1), (cpu, emulated))  # both round to int8, otherwise


class Rows(DeviceTest):
    def test_a_device_that_does_not_tell_its_peak_has_times_and_no_limits(self):
        self.require_emulation()
        few = ["rows", "--model", self.model, "--rows", "1", "--context", "0", "--repeats", "1"]
        out = strict_json(self.run_on("cuda-simt", *few, "--json").stdout)
        self.assertEqual((out["backend"], out["device"]), ("cuda-simt", "emulation"))
        for key in ("device_peak_bytes_per_second", "read_bandwidth_bytes_per_second", "seconds_memory_allows",
                    "multiply_peak_macs_per_second"):
            self.assertIsNone(out[key], key)
        (row,) = out["rows"]
        self.assertGreater(row["weight_bytes_per_second"], 0)
        self.assertEqual((row["over_memory_limit"], row["over_limit"]), (None, None))
        text = self.run_on("cuda-simt", *few).stdout.decode()
        self.assertIn("cuda-simt on emulation; 0 cached tokens\nthe device's memory does not tell its peak", text)


class Rehearsal(DeviceTest):
    def rehearse(self, backend):
        """Names of the stages that passed; the others are left out of a rehearsal."""
        build = pathlib.Path(binary()).parent
        out = self.folder / "report.json"
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts/gpu_check", "--rehearse", build, "--backend", backend, "--out", out],
                              stdout=subprocess.PIPE, check=False)
        report = json.loads(out.read_text())
        self.assertEqual((done.returncode, report["failed"]), (4, []), done.stdout.decode())
        self.assertEqual({entry["reason"] for entry in report["skipped"]}, {"rehearsal without a GPU"})
        return {stage["name"] for stage in report["stages"] if stage["status"] == "passed"}

    def test_on_the_cpu_the_stages_of_models_pass(self):
        self.assertEqual(self.rehearse("cpu"), {"models", "ids", "rows", "generate"})

    def test_in_emulation_the_tests_of_models_pass_too(self):
        self.require_emulation()
        self.assertEqual(self.rehearse("cuda-simt"), {"conformance", "models", "ids", "rows", "generate"})


if __name__ == "__main__":
    unittest.main()
