"""The layer check names a broken arrow with file and line, and lets the drawn ones pass."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from load_script import load

check_layers = load("check_layers.py")


def faults(path: str, text: str) -> list:
    return list(check_layers.faults_of(path, text))


class CheckLayers(unittest.TestCase):
    def test_an_allowed_include_passes(self):
        for path, target in [
            ("kernels/cpu/matmul.cpp", "src/base/tensor.h"),
            ("kernels/cpu/matmul.cpp", "kernels/backend.h"),
            ("src/model/transformer.cpp", "kernels/backend.h"),
            ("src/arch/qwen2.cpp", "src/model/weights.h"),
            ("draft/model.cpp", "src/arch/registry.h"),
            ("draft/ngram.cpp", "src/text/tokenizer.h"),
            ("verify/rejection.cpp", "src/sample/sampler.h"),
            ("src/engine/engine.cpp", "verify/verifier.h"),
            ("src/sample/grammar.cpp", "src/text/tokenizer.h"),
            ("src/cli/generate.cpp", "src/engine/engine.h"),
            ("tests/engine/stop_test.cpp", "src/engine/engine.h"),
            ("bench/rows.cpp", "src/engine/engine.h"),
        ]:
            with self.subTest(path=path, target=target):
                text = f'#include "{target}"\n#include <vector>\n#include <gtest/gtest.h>\n'
                self.assertEqual(faults(path, text), [])

    def test_a_forbidden_include_is_named_with_line_arrow_and_allowed_set(self):
        found = faults("verify/rejection.cpp", '// rule\n#include <vector>\n#include "kernels/backend.h"\n')
        self.assertEqual(len(found), 1)
        self.assertIn("verify/rejection.cpp:3: verify -> kernels", found[0])
        self.assertIn("src/base, src/sample", found[0])

    def test_every_arrow_that_points_back_is_caught(self):
        for path, target in [
            ("src/base/types.h", "src/text/tokenizer.h"),
            ("kernels/cpu/matmul.cpp", "src/model/weights.h"),
            ("src/model/transformer.cpp", "src/arch/registry.h"),
            ("src/sample/sampler.cpp", "src/text/tokenizer.h"),
            ("src/text/bpe.cpp", "src/sample/context.h"),
            ("draft/model.cpp", "verify/verifier.h"),
            ("draft/model.cpp", "src/engine/engine.h"),
            ("src/engine/engine.cpp", "src/cli/main.h"),
            ("src/engine/engine.cpp", "tests/tiny_model.h"),
            ("src/cli/main.cpp", "bench/timer.h"),
        ]:
            for quoted in (f'"{target}"', f"<{target}>"):
                with self.subTest(path=path, quoted=quoted):
                    self.assertEqual(len(faults(path, f"  #  include {quoted}\n")), 1)

    def test_unknown_folders_relative_paths_and_macros_are_faults(self):
        for include in ('"types.h"', '"../base/types.h"', '"src/base/../engine/engine.h"', '"helpers/x.h"',
                        "<src/unknown/x.h>", "HEADER"):
            with self.subTest(include=include):
                self.assertEqual(len(faults("draft/model.cpp", f"#include {include}\n")), 1)
        self.assertEqual(len(faults("src/other/x.cpp", "")), 1)

    def test_commented_includes_do_not_count_and_line_numbers_stay_right(self):
        text = '/* #include "src/engine/a.h"\n#include "src/engine/b.h"\n*/\n// #include "src/engine/c.h"\n' \
               '#include "src/engine/d.h"\n'
        found = faults("draft/model.cpp", text)
        self.assertEqual(len(found), 1)
        self.assertIn("draft/model.cpp:5:", found[0])

    def test_the_exit_status_says_whether_the_tree_is_clean(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "kernels" / "cpu" / "x.cu"
            source.parent.mkdir(parents=True)
            for text, status in [('#include "src/base/types.h"\n', 0), ('#include "draft/drafter.h"\n', 1)]:
                source.write_text(text)
                errors = io.StringIO()
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                    self.assertEqual(check_layers.main(["--root", folder]), status)
                self.assertEqual("kernels/cpu/x.cu:1: kernels -> draft" in errors.getvalue(), status == 1)


if __name__ == "__main__":
    unittest.main()
