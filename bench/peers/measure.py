"""Rounds of turns: in each round every side answers the same prompt once, one after the other, on one machine."""
import collections
import time

from worker import WorkerError

QUIET_SHARE = 0.2  # of one core, used by others: a turn with more is taken again, because spinning threads suffer most
TRIES = 2


def by_task_in_turns(rows):
    """The prompts so that the first N hold as many tasks as they can: one of each task, then the second of each."""
    tasks = collections.defaultdict(list)
    for row in rows:
        tasks[row.get("task", "")].append(row)
    place = {row["id"]: (number, order) for order, task in enumerate(tasks.values()) for number, row in enumerate(task)}
    return sorted(rows, key=lambda row: place[row["id"]])


def rounds(keys, sides, repeats):
    """(repeat, key, sides in their order): which side goes first changes from round to round."""
    count = 0
    for repeat in range(repeats):
        for key in keys:
            first = count % len(sides)
            yield repeat, key, sides[first:] + sides[:first]
            count += 1


class Bench:
    """Asks the sides for their turns and writes each into the journal.

    `pool.get(side)` gives the side's worker, loaded and warm, or raises WorkerError: that too is written down.
    `pool.cpu(worker)` is the processor time so far of the other workers, and of everything else on the machine. A turn
    that something else disturbed is taken again; after TRIES it stands, with what disturbed it.
    """

    def __init__(self, journal, pool, say, clock=time.monotonic):
        self._journal, self._pool, self._say, self._clock = journal, pool, say, clock

    def left(self, kind, plan):
        """The rounds of a plan in which a side has not had its turn."""
        had = collections.defaultdict(set)
        for record in self._journal.of(kind):
            had[record["repeat"], record["key"]].add(record["side"])
        return [(repeat, key, sides) for repeat, key, sides in plan if {side.name for side in sides} - had[repeat, key]]

    def _longest(self, kind):
        """Seconds of the longest round so far, the one before a resumption included."""
        seconds = collections.Counter()
        for record in self._journal.of(kind):
            seconds[record["repeat"], record["key"]] += record.get("turn_seconds", 0)
        return max(seconds.values(), default=0)

    def run(self, kind, plan, request_of, seconds):
        """Takes the rounds of a plan, until the next one would end after `seconds`. True when all are done."""
        start = self._clock()
        for number, (repeat, key, sides) in enumerate(plan, 1):
            begin = self._clock()
            if begin - start + self._longest(kind) > seconds:
                return False
            for side in sides:
                self._turn(kind, repeat, key, side, request_of(side, key))
            self._say(f"{kind} {number} of {len(plan)}: {key} took {self._clock() - begin:.0f} s")
        return True

    def _turn(self, kind, repeat, key, side, request):
        record = {"kind": kind, "repeat": repeat, "key": key, "side": side.name}
        try:
            worker = self._pool.get(side)
            for tries in range(1, TRIES + 1):
                record.update(time=time.time(), tries=tries, **self._ask(worker, request))
                if record["others_cpu_seconds"] <= QUIET_SHARE * record["turn_seconds"]:
                    break
        except WorkerError as error:
            record.update(time=time.time(), error=str(error))
        self._journal.add(record)

    def _ask(self, worker, request):
        (idle, others), begin = self._pool.cpu(worker), self._clock()
        reply, seconds = worker.ask(request), self._clock() - begin
        idle_now, others_now = self._pool.cpu(worker)
        return {**reply, "turn_seconds": seconds, "idle_cpu_seconds": idle_now - idle,
                "others_cpu_seconds": others_now - others}
