"""What the workers share: requests and replies as JSON lines, and the clock that all engines are timed with.

A worker keeps its models loaded and answers one request at a time:

    {"op": "load", "setting": "plain", "target": PATH, "draft": PATH, "threads": 2, "context": 1024}
    {"op": "generate", "setting": "plain", "ids": [..], "row": {..}, "max_tokens": 192, "stop_ids": [..]}
    {"op": "rows", "setting": "plain", "rows": [1, 2, 4], "cached": 256, "passes": 3}
    {"op": "encode", "row": {..}}                                   tandem only: the ids of the prompt

Each reply is one line, {"ok": true, ...} or {"ok": false, "error": "..."}. What an engine prints goes to stderr.
"""
import json
import os
import statistics
import sys
import time
import traceback


OPERATIONS = ("load", "generate", "rows", "encode")


class Timeline:
    """Tokens of one answer as they come: the first ends the time to first token, the last ends the decoding."""

    def __init__(self, max_tokens, stop_ids, clock=time.perf_counter):
        self._clock, self._max_tokens, self._stop_ids = clock, max_tokens, frozenset(stop_ids)
        self.ids, self._first_tokens = [], 0
        self._first = self._last = self._start = clock()

    def add(self, token):
        """Counts one token, the end token included; false when the answer ends with it."""
        return self.add_all([token])

    def add_all(self, tokens):
        """Counts tokens that came at once."""
        self._last = self._clock()
        if not self.ids:
            self._first, self._first_tokens = self._last, len(tokens)
        self.ids.extend(int(token) for token in tokens)
        return len(self.ids) < self._max_tokens and self.ids[-1] not in self._stop_ids

    def result(self):
        """`first_tokens` came with the first one, so the time of decoding is that of the others."""
        return {"ids": self.ids, "ttft_seconds": self._first - self._start, "decode_seconds": self._last - self._first,
                "first_tokens": self._first_tokens}


def time_rows(forward, counts, passes, clock=time.perf_counter):
    """Median seconds of `forward(rows)` for each count; the counts take turns, and the first turn is not counted."""
    seconds = {count: [] for count in counts}
    for turn in range(passes + 1):
        for count in counts:
            start = clock()
            forward(count)
            if turn > 0:
                seconds[count].append(clock() - start)
    return {"seconds": [statistics.median(seconds[count]) for count in counts]}


def answer(engine, request):
    operation = getattr(engine, request["op"], None) if request["op"] in OPERATIONS else None
    if operation is None:
        return {"ok": False, "error": f"this engine has no operation {request['op']}"}
    try:
        return {"ok": True, **operation(request)}
    except Exception as error:  # whatever an engine throws is a finding about that engine: it is reported, not hidden
        traceback.print_exc()
        return {"ok": False, "error": " ".join(f"{type(error).__name__}: {error}".split())}


def serve(engine):
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        replies.write(json.dumps(answer(engine, json.loads(line))) + "\n")
