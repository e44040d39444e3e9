"""The runner's end of a worker process: one request, one reply, and what the process costs while it should be idle."""
import json
import os
import select
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def machine_cpu_seconds():
    """Processor time that everything on this machine has used so far."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, irq, softirq = (int(ticks) for ticks in stat.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS


class WorkerError(Exception):
    """The engine refused the request, or its process ended or went silent; the text says which."""


class Worker:
    """Starts `command` with `environment` added to this process's; its stderr goes to `log`. Not for several threads."""

    def __init__(self, command, log, environment=None):
        self._log = log
        self._pending = b""
        with open(log, "ab") as errors:
            self._log_start = errors.tell()
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                             env={**os.environ, **(environment or {})})

    def ask(self, request, timeout_seconds=600):
        """The reply to a request, without its "ok"; WorkerError when there is none or it says false."""
        try:
            self._process.stdin.write((json.dumps(request) + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(self._ending()) from None
        reply = json.loads(self._line(timeout_seconds))
        if not reply.pop("ok"):
            raise WorkerError(reply["error"])
        return reply

    def _line(self, timeout_seconds):
        end = time.monotonic() + timeout_seconds
        while b"\n" not in self._pending:
            if not select.select([self._process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                self.close()
                raise WorkerError(f"no reply within {timeout_seconds} s")
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise WorkerError(self._ending())
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        return line

    def _ending(self):
        code = self._process.wait()
        with open(self._log, "rb") as log:
            log.seek(self._log_start)
            said = [line.decode(errors="replace").strip() for line in log if line.strip()]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"the process ended with {how}{': ' + said[-1] if said else ''}"

    def alive(self):
        return self._process.poll() is None

    def cpu_seconds(self):
        """Processor time so far of the process, all its threads, and the children that it waited for."""
        try:
            with open(f"/proc/{self._process.pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return sum(int(ticks) for ticks in fields[11:15]) / TICKS

    def close(self):
        if self.alive():
            self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
