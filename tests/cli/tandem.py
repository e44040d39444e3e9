"""Runs the binary named by $TANDEM_BINARY, as a user would."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SMALL = str(ROOT / "configs" / "small.yaml")
SMALL_MODEL = "smollm2-135m-instruct-q4_1.gguf"
MODELS = pathlib.Path(os.environ.get("TANDEM_MODELS") or pathlib.Path.home() / ".cache/tandem/models")
LONGEST_RUN_SECONDS = 120


def binary() -> str:
    path = os.environ.get("TANDEM_BINARY")
    if not path:
        raise SystemExit("TANDEM_BINARY: expected the path of the tandem binary, got nothing")
    return path


def tandem(*args, stdin: bytes = b"", **options) -> subprocess.CompletedProcess:
    return subprocess.run([binary(), *args], input=stdin, capture_output=True, timeout=LONGEST_RUN_SECONDS, **options)


def settings(**values) -> list:
    """`--set` arguments; a double underscore stands for the dot."""
    return [part for key, value in values.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]


def refuse_constant(name: str):
    raise ValueError(f"{name} is no JSON")


def strict_json(text: bytes) -> dict:
    """Parses one document and refuses NaN and Infinity, which Python would let pass."""
    return json.loads(text, parse_constant=refuse_constant)


def golden(file: str, model: str = "smollm2-135m-instruct") -> list:
    with open(ROOT / "tests" / "golden" / file, encoding="utf-8") as lines:
        return [row for row in map(json.loads, lines) if row["model"] == model]


class TandemTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name: str, content) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def succeed(self, *args, **options) -> subprocess.CompletedProcess:
        done = tandem(*args, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done

    def json_of(self, *args, **options) -> dict:
        return strict_json(self.succeed(*args, "--json", **options).stdout)

    def generate(self, *args, tokens: int = 12, **options) -> dict:
        return self.json_of("generate", "--config", SMALL, *settings(stop__max_tokens=tokens), *args, **options)

    def refused(self, code: int, *args, says=(), **options) -> str:
        """Fails with this exit code, one sentence on stderr that says all of `says`, and nothing on stdout."""
        done = tandem(*args, **options)
        message = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, message)
        self.assertEqual(done.stdout, b"")
        for part in says:
            self.assertIn(part, message)
        self.assertNotIn("terminate called", message)
        return message

    def start(self, *args, stdin: bytes = b"") -> subprocess.Popen:
        """A running process whose prompt has been handed over."""
        process = subprocess.Popen([binary(), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None  # so that communicate() leaves it alone
        return process


def wait_until_interruptible(process: subprocess.Popen) -> None:
    """Returns once the process handles SIGINT itself (or has ended)."""
    bit = 1 << (signal.SIGINT - 1)
    while process.poll() is None:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) & bit:
            return
        time.sleep(0.002)
