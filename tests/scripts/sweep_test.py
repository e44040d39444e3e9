"""scripts/sweep.py runs every job once, here or on a Ray cluster, and keeps the rows of all under one header."""

import csv
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from load_script import SCRIPTS

# Stands for `tandem`: writes what a sweep of one cell would, notes each call, and fails where the settings say so.
FAKE = """#!{python}
import os, sys, time
args = sys.argv[1:]
value = lambda name: args[args.index(name) + 1] if name in args else ""
sets = " ".join(args[i + 1] for i, a in enumerate(args) if a == "--set")
with open({log!r}, "a") as log:
    log.write(" ".join(args) + chr(10))
print("table of", sets, flush=True)
if "slow" in sets:
    open({log!r} + ".slow", "w").close()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        sys.exit(130)
if "broken" in sets:
    sys.exit(2)
header = "label,config,set,speedup" + (",more" if "other" in sets else "")
with open(value("--out") + ".csv", "w") as out:
    out.write(header + chr(10) + ",".join([value("--label"), value("--config"), sets, "1.5"]) + chr(10))
open(value("--out") + ".jsonl", "a").close()
"""


class Jobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.binary = self.folder / "tandem"
        self.log = self.folder / "log"
        self.binary.write_text(FAKE.format(python=sys.executable, log=str(self.log)))
        self.binary.chmod(0o755)
        self.out = str(self.folder / "grid")

    def command(self, *args, binary=None):
        script = [sys.executable, str(SCRIPTS / "sweep.py"), "--binary", str(binary or self.binary)]
        return [*script, "--prompts", "p.jsonl", "--out", self.out, *args]

    def run_script(self, *args, **options):
        return subprocess.run(self.command(*args, **options), capture_output=True, text=True, timeout=100)

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def rows(self):
        with open(f"{self.out}.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


class Here(Jobs):
    def test_every_combination_is_a_job_and_their_rows_come_together(self):
        done = self.run_script("--config", "a.yaml", "--config", "b.yaml", "--vary", "x=1,2", "--vary", "y=3,4", "--",
                               "--kinds", "model", "--limit", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(row["config"], row["set"]) for row in self.rows()],
                         [(config, f"x={x} y={y}") for config in ("a.yaml", "b.yaml") for x in (1, 2) for y in (3, 4)])
        calls = self.calls()
        self.assertEqual(len(calls), 8)
        self.assertIn("sweep --config a.yaml --prompts p.jsonl --set x=1 --set y=3 --kinds model", calls[0])
        self.assertTrue(calls[7].endswith(f"--limit 2 --out {self.out}-008 --resume"))
        self.assertIn("table of x=2 y=4", done.stdout)

    def test_a_job_that_fails_is_named_and_the_others_are_kept(self):
        done = self.run_script("--config", "a.yaml", "--vary", "x=1,broken,3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("002 (2)", done.stderr)
        self.assertEqual([row["set"] for row in self.rows()], ["x=1", "x=3"])

    def test_rows_of_other_columns_are_refused(self):
        done = self.run_script("--config", "a.yaml", "--vary", "x=1,other")
        self.assertEqual(done.returncode, 2)
        self.assertIn("grid-002.csv", done.stderr)
        self.assertFalse(pathlib.Path(f"{self.out}.csv").exists())

    def test_ctrl_c_ends_the_jobs_and_keeps_the_rows_so_far(self):
        process = subprocess.Popen(self.command("--config", "a.yaml", "--vary", "x=1,slow,3"), start_new_session=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not pathlib.Path(f"{self.log}.slow").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertEqual([row["set"] for row in self.rows()], ["x=1"])
        self.assertEqual(len(self.calls()), 2)

    def test_mistakes_are_named(self):
        for args, says in ((["--vary", "x"], "--vary x: expected KEY=VALUE,VALUE"), (["--every-machine"], "--address")):
            done = self.run_script("--config", "a.yaml", *args)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
        done = self.run_script("--config", "a.yaml", binary=self.folder / "none")
        self.assertEqual(done.returncode, 2)
        self.assertIn("none: cannot be run", done.stderr)

    @unittest.skipIf(importlib.util.find_spec("ray"), "ray is installed")
    def test_without_ray_the_message_says_how_to_install_it(self):
        done = self.run_script("--config", "a.yaml", "--address", "auto")
        self.assertEqual(done.returncode, 2)
        self.assertIn("pip install ray", done.stderr)
        self.assertEqual(self.calls(), [])


@unittest.skipUnless(importlib.util.find_spec("ray"), "ray is not installed (python3 -m pip install ray)")
class OnRay(Jobs):
    """The same jobs on a cluster of this machine alone."""

    @classmethod
    def setUpClass(cls):
        os.environ["RAY_AUTH_MODE"] = "disabled"  # a token would be written into the user's home
        import ray

        cls.ray = ray
        # An address of its own, so that no cluster of the user's is touched.
        cluster = ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        cls.address = cluster.address_info["gcs_address"]

    @classmethod
    def tearDownClass(cls):
        cls.ray.shutdown()
        del os.environ["RAY_AUTH_MODE"]

    def test_the_same_rows_come_out(self):
        jobs = ("--config", "a.yaml", "--vary", "x=1,2,3")
        done = self.run_script(*jobs)
        here = pathlib.Path(f"{self.out}.csv").read_bytes()
        done = self.run_script(*jobs, "--address", self.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(pathlib.Path(f"{self.out}.csv").read_bytes(), here)
        self.assertIn("table of x=3", done.stdout)
        calls = len(self.calls())
        self.assertEqual(self.run_script(*jobs, "--address", self.address).returncode, 0)
        self.assertEqual(len(self.calls()), calls, "a job that is done was run again")

    def test_every_machine_labels_its_rows(self):
        done = self.run_script("--config", "a.yaml", "--vary", "x=1,2", "--address", self.address, "--every-machine")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.rows()
        self.assertEqual([row["set"] for row in rows], ["x=1", "x=2"])
        self.assertRegex(rows[0]["label"], r"^\d+\.\d+\.\d+\.\d+$")

    def test_a_job_that_fails_there_is_named(self):
        done = self.run_script("--config", "a.yaml", "--vary", "x=1,broken", "--address", self.address)
        self.assertEqual(done.returncode, 1)
        self.assertIn("002 (2)", done.stderr)
        self.assertEqual([row["set"] for row in self.rows()], ["x=1"])

    def test_an_address_without_a_cluster_is_named(self):
        for address, says in (("127.0.0.1:1", "no Ray cluster answers"), ("nowhere", "expected auto or host:port")):
            done = self.run_script("--config", "a.yaml", "--address", address)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--address {address}: {says}", done.stderr)


if __name__ == "__main__":
    unittest.main()
