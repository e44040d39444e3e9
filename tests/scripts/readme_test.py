"""The README's table of ops and backends against the code: every op of kernels/backend.h is in it, and tested."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MEMORY = {"write", "read", "require_room"}  # of a backend, no ops


def ops_of_the_code():
    text = (ROOT / "kernels/backend.h").read_text(encoding="utf-8")
    return set(re.findall(r"virtual void (\w+)\(", text[text.index("class Backend {"):])) - MEMORY


def table():
    """Rows of the table in the section Backends that begins with `| op |`, split into cells."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text[text.index("\n## Backends\n"):].split("\n## ")[1]
    lines = section[section.index("\n| op |"):].strip().split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


class OpsByBackend(unittest.TestCase):
    def test_every_op_is_in_the_table_and_nothing_else_is(self):
        named = {op for row in table()[2:] for op in re.findall(r"`(\w+)`", row[0])}
        self.assertEqual(named, ops_of_the_code())

    def test_every_row_has_a_cell_for_each_backend(self):
        head, _, *rows = table()
        self.assertEqual(head, ["op", "portable", "avx2", "avx512", "cuda-simt", "cuda"])
        for row in rows:
            self.assertEqual((len(row), all(row)), (len(head), True), row)

    def test_every_op_is_called_by_the_tests_that_all_backends_share(self):
        tests = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests/kernels").glob("*_test.cpp")))
        self.assertEqual([op for op in sorted(ops_of_the_code()) if not re.search(rf"(?:\.|->|::){op}\b", tests)], [])


if __name__ == "__main__":
    unittest.main()
