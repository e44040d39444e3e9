"""The steps of scripts/gpu_check: what each may take, what became of it, and a journal from which a run goes on."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import time

TAIL_CHARACTERS = 2000
SOURCES = ("CMakeLists.txt", "CMakePresets.json", "cmake", "src", "kernels", "draft", "verify", "tests", "bench", "scripts")


class Failed(Exception):
    """A step that ran and found a fault. `data` goes into the report."""

    def __init__(self, reason, data=None):
        super().__init__(reason)
        self.data = data


class Cut(Exception):
    """A step that its time ended."""


class Skipped(Exception):
    """A step that cannot be done here, with the reason."""


def source_hash(root):
    """One hash of every source file, so that what was checked is known without a repository too."""
    digest = hashlib.sha256()
    for name in SOURCES:
        top = pathlib.Path(root) / name
        for path in sorted([top] if top.is_file() else top.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Journal:
    """Lines of JSON, one for each step that ended. Those of another key (sources, device, settings) do not count."""

    def __init__(self, path, key):
        self.path, self.key = pathlib.Path(path), key
        self.records = {}
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        for line in lines:
            try:
                record = json.loads(line)
                if record["key"] == key:
                    self.records[record["stage"], record["step"]] = record
            except (ValueError, KeyError, TypeError):
                continue  # cut off by a kill

    def passed(self, stage, step):
        """The record of an earlier run, if it passed there."""
        record = self.records.get((stage, step))
        return record if record and record["status"] == "passed" else None

    def forget(self, stage, step=None):
        """Makes earlier records of a stage, or of one step of it, count no more in this run."""
        for key in [key for key in self.records if key[0] == stage and step in (None, key[1])]:
            del self.records[key]

    def add(self, record):
        self.records[record["stage"], record["step"]] = record
        text = json.dumps({"key": self.key, **record}) + "\n"
        with open(self.path, "a+b") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    text = "\n" + text  # after a line cut off by a kill
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())


class Runner:
    """Runs the steps of stages in order. A stage may use its own budget and what those before it left; what does not
    fit is cut or skipped, and said."""

    def __init__(self, journal, logs, minutes, budgets, say, clock=time.monotonic):
        self.journal, self.logs, self.say, self.clock = journal, pathlib.Path(logs), say, clock
        self.logs.mkdir(parents=True, exist_ok=True)
        self.start = clock()
        scale = 60 * minutes / sum(budgets.values())
        self.deadlines, total = {}, 0.0
        for name, seconds in budgets.items():
            total += seconds * scale
            self.deadlines[name] = self.start + total
        self.stages = []

    def seconds(self):
        return self.clock() - self.start

    def run(self, stage, steps, least_seconds=1.0):
        """`steps`: pairs of a name and a function that takes its deadline and returns what the report shall hold."""
        found = {"name": stage, "status": "passed", "steps": []}
        self.stages.append(found)
        self.say(f"\n== {int(self.seconds()) // 60:02d}:{int(self.seconds()) % 60:02d}  {stage}")
        for name, work in steps:
            record = self.journal.passed(stage, name)
            if record is None:
                record = self.step(stage, name, work, least_seconds)
                if record["status"] in ("passed", "failed"):
                    self.journal.add(record)
            else:
                record = {**record, "resumed": True}
            found["steps"].append({k: v for k, v in record.items() if k not in ("key", "stage")})
            reason = f": {record['reason']}" if record.get("reason") else " (in an earlier run)" if record.get("resumed") else ""
            self.say(f"   {name}: {record['status']}{reason}")
        found["status"] = worst(step["status"] for step in found["steps"])
        return found["status"] == "passed"

    def step(self, stage, name, work, least_seconds):
        record = {"stage": stage, "step": name, "status": "passed"}
        begin, deadline = self.clock(), self.deadlines[stage]
        try:
            if deadline - begin < least_seconds:
                raise Skipped("no time left")
            record["data"] = work(deadline)
        except Failed as fault:
            record.update(status="failed", reason=str(fault), data=fault.data)
        except Cut as fault:
            record.update(status="cut", reason=str(fault))
        except Skipped as fault:
            record.update(status="skipped", reason=str(fault))
        record["seconds"] = round(self.clock() - begin, 3)
        return record

    def command(self, log, arguments, deadline, env=None, stdin=""):
        """Runs a command to its end; returns its stdout. Its stderr stays in logs/`log`. Throws Cut at the deadline and
        Failed for an exit code other than 0, after which nothing of it runs any more."""
        path = self.logs / f"{log.replace('/', '_').replace(' ', '-')}.log"
        with open(path, "w", encoding="utf-8") as errors:
            errors.write(" ".join(map(str, arguments)) + "\n")
            errors.flush()
            try:
                process = subprocess.Popen(list(map(str, arguments)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                           env={**os.environ, **(env or {})}, start_new_session=True)
            except OSError as fault:
                raise Failed(f"{arguments[0]} cannot be run: {fault.strerror}") from None
            try:
                out, _ = process.communicate(stdin.encode(), timeout=max(0.1, deadline - self.clock()))
            except BaseException as fault:
                end_group(process)
                if isinstance(fault, subprocess.TimeoutExpired):
                    raise Cut(f"ended after {self.clock() - self.start:.0f} s of the run, its share of the time") from None
                raise
        text = out.decode("utf-8", "replace")
        with open(path, "a", encoding="utf-8") as errors:
            errors.write(text)
        if process.returncode != 0:
            tail = path.read_text(encoding="utf-8", errors="replace")[-TAIL_CHARACTERS:]
            raise Failed(f"{pathlib.Path(str(arguments[0])).name} ended with {process.returncode}", {"output_tail": tail})
        return text


def end_group(process):
    """Ends a command with all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()


def worst(statuses):
    """Of the steps of a stage, for the stage."""
    found = set(statuses)
    return next((status for status in ("failed", "cut", "skipped") if status in found), "passed")
