"""scripts/gpu_check on a machine without a GPU: what it refuses, and whole runs with fakes for the outside tools."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = HERE.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

from gpu_compare import compare
from gpu_journal import Journal, Runner, Skipped
from gpu_machine import HEADERS, missing_packages

DEVICE = "NVIDIA H200, GPU-1234, 9.0, 580.65, 143771"
STAGES = ["build", "conformance", "models", "ids", "memcheck", "racecheck", "rows", "generate"]


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.tools("nvidia-smi", "nvcc", "cmake", "ctest", "ninja", "compute-sanitizer", "pkg-config", "g++")
        # Has every header: what this machine lacks is no matter of these tests.
        (self.bin / "g++").unlink()
        (self.bin / "g++").write_text("#!/bin/sh\n" + "".join(f"echo has {name}\n" for name in HEADERS))
        (self.bin / "g++").chmod(0o755)
        self.plan(device=DEVICE)

    def tools(self, *names):
        text = (HERE / "gpu_check_fake.py").read_text()
        for name in names:
            (self.bin / name).write_text(f"#!{sys.executable} -BSE\n{text}")
            (self.bin / name).chmod(0o755)

    def plan(self, **plan):
        (self.folder / "plan.json").write_text(json.dumps(plan))

    def calls(self):
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def command(self, *more):
        return [sys.executable, "-B", str(SCRIPTS / "gpu_check"), "--build", str(self.folder / "build"), "--out", str(self.folder / "out.json"), *more]

    def environment(self):
        # Tools of this machine stay out of sight, but for what runs the fakes.
        return {**os.environ, "PATH": f"{self.bin}:/bin", "FAKE": str(self.folder), "CUDA_VISIBLE_DEVICES": "", "CXX": ""}

    def check(self, *more):
        done = subprocess.run(self.command(*more), env=self.environment(), capture_output=True, text=True, timeout=100, check=False)
        out = self.folder / "out.json"
        return done, json.loads(out.read_text()) if out.exists() else None

    def step(self, report, stage, step):
        (found,) = [s for entry in report["stages"] if entry["name"] == stage for s in entry["steps"] if s["step"] == step]
        return found


class Refusals(Runs):
    def test_without_nvidia_smi_there_is_no_gpu(self):
        (self.bin / "nvidia-smi").unlink()
        done, report = self.check()
        self.assertEqual((done.returncode, report), (3, None))
        self.assertIn("no GPU: nvidia-smi is not on the PATH", done.stderr)

    def test_a_driver_that_finds_no_device_is_quoted(self):
        self.plan()
        done, _ = self.check()
        self.assertEqual(done.returncode, 3)
        self.assertIn("no GPU: NVIDIA-SMI has failed because it couldn't communicate", done.stderr)

    def test_a_device_that_is_too_old_is_none(self):
        self.plan(device="Tesla T4, GPU-1, 7.5, 550, 15360")
        done, _ = self.check()
        self.assertEqual(done.returncode, 3)
        self.assertIn("Tesla T4 has compute capability 7.5, expected 8.0", done.stderr)

    def test_missing_tools_and_packages_are_named_at_once(self):
        (self.bin / "pkg-config").unlink()
        (self.bin / "g++").write_text("#!/bin/sh\necho has libfmt-dev\n")
        shutil.rmtree(self.folder / "build", ignore_errors=True)
        done, _ = self.check()
        self.assertEqual(done.returncode, 2)
        named = done.stderr.split("missing here: ")[1].strip().split(", ")
        self.assertLessEqual({"libyaml-cpp-dev", "libgtest-dev"}, set(named))
        self.assertNotIn("libfmt-dev", named)
        self.assertNotIn("cmake", " ".join(self.calls()))

    def test_headers_are_looked_up_with_the_real_compiler(self):
        compiler = shutil.which("g++")
        if not compiler:
            self.skipTest("no g++ here")
        self.assertNotIn("libfmt-dev", missing_packages(compiler))
        HEADERS["no-such-package"] = "no/such/header.h"
        self.addCleanup(HEADERS.pop, "no-such-package")
        self.assertIn("no-such-package", missing_packages(compiler))

    def test_wrong_options_are_usage(self):
        for options in (["--only", "rows,speed"], ["--model", "/no/such.gguf"], ["--minutes", "0"], ["--backend", "cpu"], ["--out", "/no/such/x.json"],
                        ["--rehearse", "/no/such"]):
            done, report = self.check(*options)
            self.assertEqual((done.returncode, report), (2, None))
            self.assertIn(options[0], done.stderr)


class WholeRuns(Runs):
    def test_all_stages_run_in_order_and_their_figures_are_in_the_json(self):
        done, report = self.check()
        self.assertEqual((done.returncode, report["status"]), (0, "passed"), done.stdout + done.stderr)
        self.assertEqual([stage["name"] for stage in report["stages"]], STAGES)
        self.assertEqual((report["failed"], report["skipped"]), ([], []))
        self.assertEqual(report["device"]["name"], "NVIDIA H200")
        self.assertEqual(self.step(report, "conformance", "kernels_gpu_test")["data"]["tests"], 2)
        self.assertEqual(self.step(report, "ids", "synthetic 0.5b")["data"]["equal_tokens"], 3)
        self.assertEqual(self.step(report, "rows", "1.5b")["data"]["device_peak_bytes_per_second"], 4.8e12)
        self.assertEqual(self.step(report, "rows", "1.5b without graphs")["data"]["graphs"], "off")
        self.assertAlmostEqual(self.step(report, "generate", "drafts of length auto")["data"]["over_plain"], 2)
        calls = self.calls()
        self.assertTrue(any("-DCMAKE_CUDA_ARCHITECTURES=90-real" in call and "-DTANDEM_CUDA=ON" in call for call in calls))
        for tool in ("memcheck", "racecheck"):
            self.assertEqual(sum(call.startswith(f"compute-sanitizer --tool {tool}") for call in calls), 12)

    def test_a_second_run_does_nothing_again(self):
        self.check()
        self.calls()
        done, report = self.check()
        self.assertEqual(done.returncode, 0)
        self.assertEqual({call.split()[0] for call in self.calls()}, {"nvidia-smi", "nvcc"})
        self.assertTrue(all(step["resumed"] for stage in report["stages"] for step in stage["steps"]))

    def test_another_device_is_another_run(self):
        self.check("--only", "build")
        self.plan(device=DEVICE.replace("1234", "5678"))
        self.calls()
        self.check("--only", "build")
        self.assertTrue(any(call.startswith("cmake --build") for call in self.calls()))

    def test_a_killed_run_goes_on_where_it_was(self):
        self.plan(device=DEVICE, slow={"kernels_gpu_test": 3})
        self.stop_during_conformance(signal.SIGKILL)
        self.assertFalse((self.folder / "out.json").exists())
        self.plan(device=DEVICE)
        self.calls()
        done, report = self.check("--only", "conformance")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertFalse([call for call in self.calls() if call.startswith("cmake")])
        self.assertTrue(self.step(report, "build", "compile")["resumed"])
        self.assertNotIn("resumed", self.step(report, "conformance", "kernels_gpu_test"))

    def stop_during_conformance(self, how):
        """Sends the signal when kernels_gpu_test has begun; the script's exit code."""
        with subprocess.Popen(self.command(), env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            calls = self.folder / "calls"
            end = time.monotonic() + 60
            while time.monotonic() < end and not (calls.exists() and "kernels_gpu_test --gtest" in calls.read_text()):
                time.sleep(0.05)
            process.send_signal(how)
            self.stderr = process.communicate()[1].decode()
        return process.returncode

    def test_an_ended_run_leaves_nothing_running(self):
        self.plan(device=DEVICE, slow={"kernels_gpu_test": 60})
        self.assertEqual(self.stop_during_conformance(signal.SIGTERM), 130)
        self.assertIn("run it again to go on", self.stderr)
        for pid in map(int, (self.folder / "pids").read_text().split()):
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)

    def test_a_build_that_is_gone_is_built_again(self):
        self.check("--only", "build")
        (self.folder / "build/tandem").unlink()
        self.calls()
        self.assertEqual(self.check("--only", "build")[0].returncode, 0)
        self.assertTrue(any(call.startswith("cmake --build") for call in self.calls()))

    def test_what_does_not_fit_is_cut_and_said_and_done_by_the_next_run(self):
        self.plan(device=DEVICE, slow={"tandem rows": 60})
        begin = time.monotonic()
        done, report = self.check("--minutes", "0.1", "--only", "conformance,rows")
        self.assertLess(time.monotonic() - begin, 0.1 * 60 + 5)
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertEqual([(entry["stage"], entry["step"]) for entry in report["skipped"]],
                         [("rows", "1.5b"), ("rows", "0.5b"), ("rows", "1.5b without graphs")])
        self.assertEqual([step["status"] for step in report["stages"][-1]["steps"]], ["cut", "skipped", "skipped"])
        self.assertIn("skipped: rows, 1.5b: ended after", done.stdout)
        self.plan(device=DEVICE)
        self.calls()
        done, report = self.check("--only", "conformance,rows")
        self.assertEqual((done.returncode, report["skipped"]), (0, []))
        self.assertFalse([call for call in self.calls() if call.startswith("kernels_gpu_test")])

    def test_without_a_sanitizer_its_stages_are_skipped_by_name(self):
        (self.bin / "compute-sanitizer").unlink()
        if shutil.which("compute-sanitizer", path="/usr/local/cuda/bin"):
            self.skipTest("this machine has one")
        done, report = self.check("--only", "memcheck,racecheck")
        self.assertEqual(done.returncode, 4)
        self.assertEqual([entry["stage"] for entry in report["skipped"]], ["memcheck", "racecheck"])
        self.assertIn("compute-sanitizer is missing", report["skipped"][0]["reason"])


class Faults(Runs):
    def failures(self, *more):
        done, report = self.check(*more)
        self.assertEqual(done.returncode, 1, done.stdout)
        return report

    def test_a_failed_build_leaves_the_rest_out(self):
        self.plan(device=DEVICE, ends=["cmake --build"])
        report = self.failures()
        self.assertIn("the fake was told to fail", report["stages"][0]["steps"][1]["data"]["output_tail"])
        self.assertEqual({entry["reason"] for entry in report["skipped"]}, {"no build"})
        self.assertEqual([stage["name"] for stage in report["stages"]], STAGES)

    def test_failed_tests_are_named_with_those_that_pass_alone(self):
        self.plan(device=DEVICE, failing=["A.B", "A.C*"])
        data = self.step(self.failures("--only", "conformance"), "conformance", "kernels_gpu_test")["data"]
        self.assertEqual((data["failed"], data["pass_alone"]), (["A.B", "A.C"], ["A.C"]))

    def test_tests_that_skip_themselves_on_a_device_have_not_passed(self):
        self.plan(device=DEVICE, skipping=["A.C"])
        step = self.step(self.failures("--only", "conformance"), "conformance", "kernels_gpu_test")
        self.assertEqual((step["status"], step["data"]["skipped"]), ("failed", ["A.C"]))

    def test_figures_of_another_backend_are_no_figures(self):
        self.plan(device=DEVICE, backend="cuda-simt")
        report = self.failures("--only", "ids,rows,generate")
        self.assertEqual({entry["stage"] for entry in report["failed"]}, {"ids", "rows", "generate"})
        self.assertIn("expected backend cuda, it ran on cuda-simt", report["failed"][0]["reason"])

    def test_a_drafted_text_that_is_not_the_plain_one_fails(self):
        self.plan(device=DEVICE, drafted_ids=[7, 8, 10])
        report = self.failures("--only", "generate")
        self.assertEqual({entry["stage"] for entry in report["failed"]}, {"generate"})
        self.assertIn("2 of 2 drafted texts", report["failed"][0]["reason"])

    def test_ids_that_part_at_a_wide_margin_fail_and_at_a_narrow_one_pass(self):
        self.plan(device=DEVICE, ids=[7, 9, 9])
        done, report = self.check("--only", "ids")
        self.assertEqual(done.returncode, 0, done.stdout)
        data = self.step(report, "ids", "synthetic 0.5b")["data"]
        self.assertEqual((data["equal_tokens"], data["margin_where_parted"]), (1, 0.1))
        self.assertTrue(any("generate" in call and "runtime.prefill_chunk=64" in call for call in self.calls()))
        self.plan(device=DEVICE, ids=[8, 9, 9])
        shutil.rmtree(self.folder / "build")
        self.assertIn("part at token 0, where the margin is 1", self.failures("--only", "ids")["failed"][0]["reason"])

    def test_logits_further_off_than_the_yardstick_allows_fail(self):
        self.plan(device=DEVICE, errors=[0.02, 0.02, 0.07])
        self.assertIn("a logit that chooses token 2 is 0.07 from the reference's", self.failures("--only", "ids")["failed"][0]["reason"])

    def test_a_fault_under_the_sanitizer_fails_its_shard(self):
        self.plan(device=DEVICE, ends=["compute-sanitizer --tool"])
        report = self.failures("--only", "memcheck,racecheck")
        self.assertEqual({entry["stage"] for entry in report["failed"]}, {"memcheck", "racecheck"})

    def test_a_failed_step_is_done_again_by_the_next_run(self):
        self.plan(device=DEVICE, failing=["A.B"])
        self.failures("--only", "conformance")
        self.plan(device=DEVICE)
        self.assertEqual(self.check("--only", "conformance")[0].returncode, 0)


class Comparison(unittest.TestCase):
    @staticmethod
    def rows(margins, errors=None, own=None, yardstick=0.1):
        """A reference that answers 0, 1, 2 ...; `own`: what the backend's logits choose."""
        places = [{"id": i, "margin": margin, "backend_id": i if own is None else own[i],
                   "backend_error": 0.1 if errors is None else errors[i], "yardstick_error": yardstick / (1 + i)}
                  for i, margin in enumerate(margins)]
        return {"yardstick": "cpu-avx2", "prefill_chunk": 512, "places": places}

    def reason(self, rows, ids):
        found = compare(rows, ids)
        self.assertFalse(found["passed"])
        return found["reason"]

    def test_equal_answers_pass(self):
        found = compare(self.rows([1, 2, 0.3]), [0, 1, 2])
        self.assertEqual((found["passed"], found["equal_tokens"], found["margin_where_parted"]), (True, 3, None))
        self.assertEqual((found["bound"], found["tokens_with_wide_margins"]), (0.2, 2))

    def test_what_follows_a_narrow_margin_is_not_compared(self):
        found = compare(self.rows([1, 0.39, 1], own=[0, 7, 8]), [0, 7, 9])
        self.assertEqual((found["passed"], found["equal_tokens"], found["margin_where_parted"]), (True, 1, 0.39))

    def test_ids_that_part_above_twice_the_bound_fail(self):
        self.assertIn("part at token 1, where the margin is 0.41", self.reason(self.rows([1, 0.41], own=[0, 7]), [0, 7]))

    def test_an_answer_that_its_own_logits_do_not_choose_fails(self):
        self.assertIn("token 1 is 7, but its logits choose 1", self.reason(self.rows([1, 0.1]), [0, 7]))
        self.assertIn("token 1 is 1, but its logits choose 7", self.reason(self.rows([1, 0.1], own=[0, 7]), [0, 1]))

    def test_logits_are_held_to_twice_the_worst_of_the_yardstick_at_every_token(self):
        self.assertTrue(compare(self.rows([1, 1], errors=[0.2, 0.2]), [0, 1])["passed"])
        self.assertIn("chooses token 1 is 0.21 from the reference's, at most 0.2", self.reason(self.rows([1, 1], errors=[0, 0.21]), [0, 1]))

    def test_what_is_no_number_fails(self):
        self.assertIn("token 1 is no number", self.reason(self.rows([1, 1], errors=[0, None]), [0, 1]))
        rows = self.rows([1, 1])
        rows["places"][1]["yardstick_error"] = None
        self.assertIn("of the CPU is no number", self.reason(rows, [0, 1]))

    def test_a_shorter_answer_fails(self):
        self.assertIn("ends before token 1", self.reason(self.rows([1, 1]), [0]))


class Journals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "j.jsonl"

    def record(self, step, status="passed"):
        return {"stage": "s", "step": step, "status": status}

    def test_records_of_other_sources_or_devices_do_not_count(self):
        Journal(self.path, {"sources": "a"}).add(self.record("one"))
        self.assertIsNone(Journal(self.path, {"sources": "b"}).passed("s", "one"))
        self.assertTrue(Journal(self.path, {"sources": "a"}).passed("s", "one"))

    def test_a_record_cut_off_by_a_kill_is_left_out_and_spoils_no_other(self):
        Journal(self.path, "k").add(self.record("one"))
        with open(self.path, "a", encoding="utf-8") as file:
            file.write('{"key": "k", "stage"')
        Journal(self.path, "k").add(self.record("two"))
        again = Journal(self.path, "k")
        self.assertTrue(again.passed("s", "one") and again.passed("s", "two"))

    def test_only_what_passed_is_not_done_again(self):
        Journal(self.path, "k").add(self.record("one", "failed"))
        self.assertIsNone(Journal(self.path, "k").passed("s", "one"))


class Budgets(unittest.TestCase):
    """A clock that only steps move."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.now, self.logs = 100.0, folder.name
        journal = Journal(pathlib.Path(folder.name) / "j", "k")
        self.runner = Runner(journal, folder.name, 1, {"a": 30, "b": 30}, lambda _: None, clock=lambda: self.now)
        self.seen = []

    def step(self, seconds):
        def work(deadline):
            self.seen.append(deadline - self.now)
            self.now += seconds
        return work

    def test_what_a_stage_leaves_is_the_next_ones(self):
        self.runner.run("a", [("one", self.step(10))])
        self.runner.run("b", [("one", self.step(10))])
        self.assertEqual(self.seen, [30, 50])

    def test_nothing_begins_without_time(self):
        self.assertFalse(self.runner.run("a", [("one", self.step(30)), ("two", self.step(1))]))
        self.assertEqual([step["status"] for step in self.runner.stages[0]["steps"]], ["passed", "skipped"])
        self.assertEqual(self.seen, [30])

    def test_a_command_is_ended_at_its_deadline_and_the_next_stage_runs(self):
        runner = Runner(self.runner.journal, self.logs, 0.05, {"a": 1, "b": 2}, lambda _: None)
        runner.run("a", [("one", lambda deadline: runner.command("sleep", ["sleep", "60"], deadline))], 0)
        runner.run("b", [("one", lambda deadline: runner.command("true", ["true"], deadline))], 0)
        self.assertEqual([stage["status"] for stage in runner.stages], ["cut", "passed"])
        self.assertLess(runner.seconds(), 3)

    def test_a_program_that_is_not_there_is_a_fault_that_names_it(self):
        self.runner.run("a", [("one", lambda deadline: self.runner.command("x", ["/no/such/program"], deadline))])
        (step,) = self.runner.stages[0]["steps"]
        self.assertEqual((step["status"], step["reason"]), ("failed", "/no/such/program cannot be run: No such file or directory"))

    def test_a_step_that_cannot_be_done_here_is_no_fault(self):
        def work(_):
            raise Skipped("no such tool")
        self.runner.run("a", [("one", work)])
        self.assertEqual(self.runner.stages[0]["status"], "skipped")
        self.assertIsNone(self.runner.journal.records.get(("a", "one")))


if __name__ == "__main__":
    unittest.main()
