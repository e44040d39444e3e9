"""The record of a run: JSON lines, appended as turns end, from which a later call goes on."""
import json
import os


class JournalError(Exception):
    """The file belongs to another run, or is no journal; the text names file and place."""


class Journal:
    """Opens or begins the journal of a run. `header` is what the run measures: a journal of another one is refused."""

    def __init__(self, path, header):
        self._path = path
        self.records = []
        if path.exists():
            self._read(header)
        self._file = open(path, "a", encoding="utf-8")
        if not self.records:
            self.add({"kind": "header", **header})

    def _read(self, header):
        whole = 0
        with open(self._path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break  # cut off by a kill: that turn is taken again
                try:
                    self.records.append(json.loads(line))
                except ValueError:
                    raise JournalError(f"{self._path}:{number}: expected a JSON object a line") from None
                whole += len(line)
        os.truncate(self._path, whole)
        if self.records:
            mine, theirs = {"kind": "header", **header}, self.records[0]
            for key in mine:
                if mine[key] != theirs.get(key):
                    raise JournalError(f"{self._path}: holds a run with another {key}: expected {mine[key]}, "
                                       f"got {theirs.get(key)}; take another --name to begin a new run")

    def add(self, record):
        self.records.append(record)
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def of(self, kind):
        return [record for record in self.records if record["kind"] == kind]

    def close(self):
        self._file.close()
