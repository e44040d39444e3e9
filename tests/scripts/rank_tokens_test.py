"""The ranking counts the answers' ids alone, breaks ties by id, and says what it was made from."""

import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

from load_script import SCRIPTS, load

rank_tokens = load("rank_tokens")

# A stand-in for the program: answers every prompt of the file it was given, or fails for a limit of 7 tokens.
PROGRAM = """#!{python}
import json, sys
arguments = sys.argv[1:]
if "stop.max_tokens=7" in arguments:
    sys.exit(3)
rows = [json.loads(line) for line in open(arguments[arguments.index("--prompts") + 1], encoding="utf-8")]
assert all(row["messages"][0]["content"] for row in rows)
settings = {{"target": {{"path": "/models/some.gguf"}}}}
print(json.dumps({{"results": [{{"ids": [9, 4, 4, int(row["id"])], "settings": settings}} for row in rows]}}))
"""


class RankTokens(unittest.TestCase):
    def run_script(self, folder: str, *arguments: str) -> subprocess.CompletedProcess:
        program = pathlib.Path(folder) / "tandem"
        program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        command = [sys.executable, "-B", str(SCRIPTS / "rank_tokens"), "--binary", str(program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_frequent_ids_come_first_and_equal_ones_by_id(self):
        self.assertEqual(rank_tokens.rank([[5, 2, 2], [7, 5, 1], []], 10), [2, 5, 1, 7])
        self.assertEqual(rank_tokens.rank([[5, 2, 2], [7, 5, 1]], 2), [2, 5])
        self.assertEqual(rank_tokens.rank([], 10), [])

    def test_prompts_are_many_and_differ(self):
        self.assertGreater(len(rank_tokens.PROMPTS), 30)
        self.assertEqual(len(set(rank_tokens.PROMPTS)), len(rank_tokens.PROMPTS))

    def test_the_file_holds_one_id_a_line_below_what_it_was_made_from(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "new" / "ranking.txt"
            done = self.run_script(folder, "--limit", "3", "--output", str(output))
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = output.read_text(encoding="utf-8").splitlines()
            comments = [line for line in lines if line.startswith("#")]
            self.assertEqual([line for line in lines if line not in comments], ["4", "9", "0", "1", "2"])
            self.assertIn("5 token ids", comments[0])
            self.assertIn("some.gguf", comments[0])
            self.assertIn("12 tokens in 3 answers", comments[1])

    def test_a_program_that_fails_is_named_with_its_status(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_script(folder, "--max-tokens", "7")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("ended with 3", done.stderr)


if __name__ == "__main__":
    unittest.main()
