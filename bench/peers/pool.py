"""The workers of a run: one process an engine, its settings loaded and warmed up once, then waiting for their turns."""
import os

from sides import ENGINES, InstallError, command_of
from worker import Worker, WorkerError, machine_cpu_seconds

WARM_TOKENS = 16
LOAD_SECONDS = 600
# tandem asks the kernel for huge pages by itself. Where they are given on request only, this lets glibc's malloc ask for
# the engines that do not.
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


class Pool:
    """Starts workers as sides need them. `journal` gets a record of each setting that was loaded, with its versions."""

    def __init__(self, args, journal, say, command=command_of):
        self._args, self._journal, self._say, self._command = args, journal, say, command
        self._workers, self._loaded, self._failed, self._commands, self._warm = {}, set(), {}, {}, None

    def prepare(self, sides, warm=None):
        """Loads every side before the first turn; `warm` is a request that each answers once, shortened."""
        self._warm = warm
        for side in sides:
            try:
                self.get(side)
            except WorkerError as error:
                self._say(f"{side.name} is left out: {error}")

    def get(self, side):
        """The worker of a side, loaded and warm. WorkerError says why there is none; a side that could not be loaded is
        not tried again."""
        if side.name in self._failed:
            raise WorkerError(self._failed[side.name])
        try:
            worker = self._worker(side.engine)
            if (side.engine, side.setting) not in self._loaded:
                self._load(side, worker)
        except WorkerError as error:
            self._failed[side.name] = str(error)
            raise
        return worker

    def _load(self, side, worker):
        self._say(f"loading {side.name}")
        args = self._args
        facts = worker.ask({"op": "load", "setting": side.setting, "target": str(args.target), "draft": str(args.draft),
                            "threads": args.threads, "context": args.context}, LOAD_SECONDS)
        if self._warm:
            worker.ask({**self._warm, "setting": side.setting, "max_tokens": WARM_TOKENS}, LOAD_SECONDS)
        self._loaded.add((side.engine, side.setting))
        self._journal.add({"kind": "loaded", "side": side.name, **facts})

    def _worker(self, engine):
        worker = self._workers.get(engine)
        if worker is None or not worker.alive():
            self._loaded = {pair for pair in self._loaded if pair[0] != engine}
            environment = HUGE_PAGES if self._args.huge_pages else {}
            worker = self._workers[engine] = Worker(self._command_of(engine), self._args.work / f"{engine}.log", environment)
        return worker

    def _command_of(self, engine):
        if engine not in self._commands:
            extra = (str(self._args.binary), str(self._args.config)) if engine == "tandem" else ()
            try:
                self._commands[engine] = self._command(ENGINES[engine], self._args.work / "env", self._say, extra)
            except InstallError as error:
                raise WorkerError(f"cannot be installed: {error}") from None
        return self._commands[engine]

    def cpu(self, busy):
        """Processor time so far of the waiting workers, all workers but `busy`, and of everything else on the machine."""
        waiting = sum(worker.cpu_seconds() for worker in self._workers.values() if worker is not busy)
        own = sum(os.times()[:4])
        return waiting, machine_cpu_seconds() - waiting - busy.cpu_seconds() - own

    def close(self):
        for worker in self._workers.values():
            worker.close()
