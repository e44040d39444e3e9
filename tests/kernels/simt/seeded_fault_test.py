"""A seeded fault counts as caught only when a named test fails, and is planted only where its text is."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest

import seeded_fault


class SeededFault(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "kernels").mkdir()
        (self.root / "kernels/a.cu").write_text("one(); two(); two();\n")
        (self.root / "kernels/b.cu").write_text('#include "kernels/a.cu"\n')
        self.fault = {"name": "f", "kernel": "a_kernel", "file": "kernels/a.cu", "find": "one();", "replace": "",
                      "tests": "A.*"}

    def check(self, script: str) -> int:
        suite = self.root / "suite"
        suite.write_text("#!/bin/sh\n" + script)
        os.chmod(suite, 0o755)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return seeded_fault.check(self.fault, suite)

    def test_a_failing_test_catches(self):
        self.assertEqual(self.check('echo "[  FAILED  ] A.b"; exit 1\n'), 0)

    def test_the_named_tests_are_run(self):
        self.assertEqual(self.check('[ "$1" = "--gtest_filter=A.*" ] && echo "[  FAILED  ] A.b" && exit 1\n'), 0)

    def test_a_suite_that_passes_does_not_catch(self):
        self.assertEqual(self.check("exit 0\n"), 1)

    def test_a_program_that_cannot_start_does_not_catch(self):
        self.assertEqual(self.check('echo "error while loading shared libraries" >&2; exit 127\n'), 1)

    def test_a_crash_and_a_sanitizer_report_catch(self):
        self.assertEqual(self.check("kill -SEGV $$\n"), 0)
        self.assertEqual(self.check('echo "==1==ERROR: AddressSanitizer: use-after-poison" >&2; exit 1\n'), 0)

    def test_the_changed_file_lies_where_the_original_would(self):
        seeded_fault.make(self.fault, self.root, self.root / "out")
        self.assertEqual((self.root / "out/kernels/a.cu").read_text(), " two(); two();\n")

    def test_a_fault_of_a_header_brings_the_source_that_reads_it(self):
        seeded_fault.make(self.fault | {"source": "kernels/b.cu"}, self.root, self.root / "out")
        self.assertTrue((self.root / "out/kernels/b.cu").exists())

    def test_text_that_is_missing_or_there_twice_is_refused(self):
        for text in ("three();", "two();"):
            with self.assertRaisesRegex(SystemExit, "expected .* once in kernels/a.cu"):
                seeded_fault.make(self.fault | {"find": text}, self.root, self.root / "out")

    def test_an_unknown_name_is_refused(self):
        listing = self.root / "faults.json"
        listing.write_text(json.dumps({"faults": [self.fault]}))
        self.assertEqual(seeded_fault.fault_named("f", listing), self.fault)
        with self.assertRaisesRegex(SystemExit, "expected one fault named g, got 0"):
            seeded_fault.fault_named("g", listing)


if __name__ == "__main__":
    unittest.main()
