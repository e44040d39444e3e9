"""The build's switch for CUDA: without nvcc AUTO leaves the backend out and ON says what is missing; OFF looks for none."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def without_nvcc() -> dict[str, str]:
    """The environment of a machine that has no nvcc."""
    folders = [f for f in os.environ["PATH"].split(os.pathsep) if not (pathlib.Path(f) / "nvcc").exists()]
    hidden = ("CUDACXX", "CUDA_PATH", "CUDA_HOME")
    return {k: v for k, v in os.environ.items() if k not in hidden} | {"PATH": os.pathsep.join(folders)}


class CudaOptions(unittest.TestCase):
    def configure(self, setting: str, environment: dict[str, str], *more: str) -> tuple[subprocess.CompletedProcess, str]:
        """The run, and the build file that it wrote."""
        with tempfile.TemporaryDirectory() as build:
            run = subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", f"-DTANDEM_CUDA={setting}",
                                  "-DTANDEM_BUILD_TESTS=OFF", "-DTANDEM_BUILD_BENCH=OFF", *more],
                                 env=environment, capture_output=True, text=True, check=False)
            ninja = pathlib.Path(build) / "build.ninja"
            return run, ninja.read_text() if run.returncode == 0 else ""

    def test_auto_without_nvcc_leaves_the_backend_out(self):
        run, ninja = self.configure("AUTO", without_nvcc())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("no nvcc found, the CUDA target is left out", run.stdout)
        self.assertNotIn("tandem_cuda", ninja)

    def test_on_without_nvcc_says_what_is_missing(self):
        run, _ = self.configure("ON", without_nvcc())
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("put nvcc on the PATH or set CUDACXX", " ".join(run.stderr.split()))

    def test_off_leaves_it_out_wherever_nvcc_is(self):
        run, ninja = self.configure("OFF", dict(os.environ))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("tandem_cuda", ninja)

    def test_a_machine_without_a_toolkit_builds_neither_backend_nor_emulation(self):
        run, ninja = self.configure("AUTO", without_nvcc(), "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON",
                                    "-DTANDEM_BUILD_TESTS=ON")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("no CUDA toolkit found, the emulation is left out", run.stdout)
        self.assertNotIn("tandem_simt", ninja)

    def test_any_other_setting_is_refused(self):
        run, _ = self.configure("YES", dict(os.environ))
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("TANDEM_CUDA: expected AUTO, ON or OFF, got YES", " ".join(run.stderr.split()))


if __name__ == "__main__":
    unittest.main()
