"""The peer bench: turns, journal and tables, with fake workers; and that what a fake engine did is in the figures."""

import contextlib
import io
import pathlib
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench/peers"))
sys.path.insert(0, str(HERE.parent.parent / "bench/peers/workers"))

import report
import serve
import table
from journal import Journal, JournalError
from measure import Bench, by_task_in_turns, rounds
from pool import Pool
from sides import ENGINES, SIDES, Engine, InstallError, Side, python_of
from worker import Worker, WorkerError, machine_cpu_seconds

FAKE = [sys.executable, "-B", str(HERE / "peers_fake_worker.py")]


def side(name, setting, plain="tandem-plain", engine="tandem"):
    return Side(name, engine, setting, plain, "")


PLAIN, DRAFTS, OTHER = side("tandem-plain", "plain"), side("drafts", "drafts"), side("other", "other")
BROKEN, MUTE = side("broken", "broken"), side("mute", "mute", engine="llama.cpp")


def turn(name, key, ids, seconds, repeat=0, **more):
    return {"side": name, "key": key, "repeat": repeat, "ids": ids, "ttft_seconds": 0.5, "decode_seconds": seconds, **more}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def journal(self, header=None):
        journal = Journal(self.folder / "j.jsonl", header or {"threads": 2})
        self.addCleanup(journal.close)
        return journal


class Turns(unittest.TestCase):
    def test_the_first_prompts_hold_one_of_each_task(self):
        rows = [{"id": x, "task": x[0]} for x in ("a1", "a2", "b1", "b2", "b3", "c1")]
        self.assertEqual([row["id"] for row in by_task_in_turns(rows)], ["a1", "b1", "c1", "a2", "b2", "b3"])

    def test_every_side_is_first_equally_often(self):
        first = [order[0] for _, _, order in rounds(["p", "q", "r"], ["x", "y", "z"], 2)]
        self.assertEqual({name: first.count(name) for name in "xyz"}, {"x": 2, "y": 2, "z": 2})

    def test_each_round_has_every_side_once(self):
        for _, _, order in rounds(["p", "q"], ["x", "y", "z"], 3):
            self.assertEqual(sorted(order), ["x", "y", "z"])


class Journals(Folder):
    def test_a_record_cut_off_by_a_kill_is_dropped_and_written_again(self):
        self.journal().add({"kind": "turn", "n": 1})
        with open(self.folder / "j.jsonl", "a", encoding="utf-8") as file:
            file.write('{"kind": "turn", "n"')
        again = self.journal()
        again.add({"kind": "turn", "n": 2})
        self.assertEqual([record["n"] for record in self.journal().of("turn")], [1, 2])

    def test_another_run_is_refused_with_what_differs(self):
        self.journal()
        with self.assertRaisesRegex(JournalError, "another threads: expected 4, got 2"):
            self.journal({"threads": 4})

    def test_a_line_that_is_no_json_is_named(self):
        self.journal()
        with open(self.folder / "j.jsonl", "a", encoding="utf-8") as file:
            file.write("nonsense\n")
        with self.assertRaisesRegex(JournalError, "j.jsonl:2"):
            self.journal()


class Workers(Folder):
    def worker(self, *command):
        worker = Worker(list(command) or FAKE, self.folder / "log")
        self.addCleanup(worker.close)
        return worker

    def test_an_answer_comes_back(self):
        self.assertEqual(self.worker().ask({"op": "load", "setting": "plain"}), {"versions": {"fake": "1.0"}})

    def test_a_death_is_reported_with_its_code_and_last_words(self):
        with self.assertRaisesRegex(WorkerError, "exit code 7: out of fake memory"):
            self.worker().ask({"op": "generate", "setting": "mute"})

    def test_silence_ends_after_the_timeout(self):
        worker = self.worker("sleep", "60")
        with self.assertRaisesRegex(WorkerError, "no reply within 0.1 s"):
            worker.ask({"op": "load"}, 0.1)
        self.assertFalse(worker.alive())

    def test_last_words_of_an_earlier_process_are_not_taken_for_this_ones(self):
        (self.folder / "log").write_text("an older fault\n")
        with self.assertRaisesRegex(WorkerError, "exit code 3$"):
            self.worker(sys.executable, "-c", "raise SystemExit(3)").ask({})

    def test_processor_time_of_a_waiting_process_is_seen(self):
        spinner = "import time\nwhile time.process_time() < 0.2: pass\nprint('{\"ok\": true}', flush=True)\ntime.sleep(60)"
        before = machine_cpu_seconds()
        worker = self.worker(sys.executable, "-c", spinner)
        worker.ask({})
        self.assertGreaterEqual(worker.cpu_seconds(), 0.15)
        self.assertGreaterEqual(machine_cpu_seconds() - before, 0.1)

    def test_processor_time_of_children_counts_as_the_workers(self):
        parent = ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time\\nwhile time.process_time() < 0.2: pass'])"
                  "\nprint('{\"ok\": true}', flush=True)\ninput()")
        worker = self.worker(sys.executable, "-c", parent)
        worker.ask({})
        self.assertGreaterEqual(worker.cpu_seconds(), 0.15)


class Runs(Folder):
    """Whole runs over fake engines."""

    def bench(self, journal, commands=None):
        args = types.SimpleNamespace(target="t", draft="d", threads=2, context=64, work=self.folder, binary="b", config="c",
                                     huge_pages=True)
        self.said = []
        pool = Pool(args, journal, self.said.append, command=lambda engine, *_: (commands or {}).get(engine.script, FAKE))
        self.addCleanup(pool.close)
        return Bench(journal, pool, self.said.append), pool

    @staticmethod
    def request(a_side, key):
        return {"op": "generate", "setting": a_side.setting, "ids": [int(key)], "max_tokens": 5}

    def test_every_turn_is_in_the_journal_and_the_table(self):
        journal, sides = self.journal(), [PLAIN, DRAFTS, OTHER]
        bench, _ = self.bench(journal)
        self.assertTrue(bench.run("turn", list(rounds(["1", "2"], sides, 2)), self.request, 60))
        self.assertEqual(len(journal.of("turn")), 12)
        plain, drafts, other = table.summarize(sides, journal.of("turn"), {"1": "x", "2": "y"}, {"1": 1, "2": 1})
        self.assertAlmostEqual(plain["tokens_per_second"], 10)
        self.assertEqual(drafts["equal_to_own_plain"], (2, 2))
        self.assertEqual(other["equal_to_own_plain"], (0, 2))
        self.assertAlmostEqual(drafts["accepted_of_proposed"], 0.5)
        self.assertAlmostEqual(drafts["tokens_per_step"], 2)
        self.assertIsNone(plain["accepted_of_proposed"])

    def test_an_engine_that_cannot_be_loaded_or_dies_stays_in_the_table_with_its_reason(self):
        journal, sides = self.journal(), [PLAIN, BROKEN, MUTE]
        bench, _ = self.bench(journal)
        self.assertTrue(bench.run("turn", list(rounds(["1"], sides, 1)), self.request, 60))
        text = table.speed_tables(table.summarize(sides, journal.of("turn"), {"1": "x"}, {"1": 1}))
        self.assertRegex(text, r"\| broken \| - \|")
        self.assertIn("- broken: ValueError: no such quantisation", text)
        self.assertIn("- mute: the process ended with exit code 7: out of fake memory", text)

    def test_a_failed_installation_is_the_reason(self):
        def refuse(*_):
            raise InstallError("no wheel for this machine")

        args = types.SimpleNamespace(work=self.folder, binary="b", config="c", huge_pages=True)
        with self.assertRaisesRegex(WorkerError, "cannot be installed: no wheel"):
            Pool(args, self.journal(), lambda _: None, command=refuse).get(PLAIN)

    def test_a_run_goes_on_where_it_stopped(self):
        sides = [PLAIN, DRAFTS]
        plan = list(rounds(["1", "2"], sides, 1))
        journal = self.journal()
        bench, _ = self.bench(journal)
        self.assertFalse(bench.run("turn", bench.left("turn", plan), self.request, -1))
        self.assertEqual(journal.of("turn"), [])
        bench.run("turn", plan[:1], self.request, 60)
        again = self.journal()
        bench, _ = self.bench(again)
        self.assertTrue(bench.run("turn", bench.left("turn", plan), self.request, 60))
        self.assertEqual([record["key"] for record in again.of("turn")], ["1", "1", "2", "2"])
        self.assertEqual(bench.left("turn", plan), [])

    def test_no_round_begins_that_would_end_too_late(self):
        journal = self.journal()
        for a_side in (PLAIN, DRAFTS):
            journal.add({"kind": "turn", **turn(a_side.name, "1", [1], 9.0), "turn_seconds": 20.0})
        bench, _ = self.bench(journal)
        plan = bench.left("turn", rounds(["1", "2"], [PLAIN, DRAFTS], 1))
        self.assertFalse(bench.run("turn", plan, self.request, 39))
        self.assertTrue(bench.run("turn", plan, self.request, 41))

    def test_a_round_that_was_cut_is_taken_again_in_whole(self):
        journal, sides = self.journal(), [PLAIN, DRAFTS]
        journal.add({"kind": "turn", **turn("tandem-plain", "1", [1], 9.0)})
        bench, _ = self.bench(journal)
        bench.run("turn", bench.left("turn", rounds(["1"], sides, 1)), self.request, 60)
        plain, _ = table.summarize(sides, journal.of("turn"), {"1": "x"}, {"1": 1})
        self.assertAlmostEqual(plain["tokens_per_second"], 10)


class Disturbances(Folder):
    """A pool whose machine is busy with something else for the first turns."""

    def turns(self, others):
        shares, journal, now = iter(others), self.journal(), [0.0, 0.0]

        def ask(_):
            now[0] += 2.0
            now[1] += 2.0 * next(shares)
            return {"ids": [1]}

        pool = types.SimpleNamespace(get=lambda _: types.SimpleNamespace(ask=ask), cpu=lambda _: (0.0, now[1]))
        Bench(journal, pool, lambda _: None, clock=lambda: now[0]).run("turn", list(rounds(["1"], [PLAIN], 1)), lambda *_: {}, 60)
        (record,) = journal.of("turn")
        return record["tries"], record["others_cpu_seconds"]

    def test_a_disturbed_turn_is_taken_again(self):
        tries, others = self.turns([0.9, 0.01])
        self.assertEqual(tries, 2)
        self.assertAlmostEqual(others, 0.02)

    def test_a_turn_that_stays_disturbed_stands_with_what_disturbed_it(self):
        tries, others = self.turns([0.9, 0.5, 0.0])
        self.assertEqual(tries, 2)
        self.assertAlmostEqual(others, 1.0)

    def test_a_quiet_turn_is_taken_once(self):
        self.assertEqual(self.turns([0.0, 0.9])[0], 1)


class Figures(unittest.TestCase):
    def summary(self, turns, names=(PLAIN, DRAFTS)):
        keys = dict.fromkeys(record["key"] for record in turns)
        return table.summarize(list(names), turns, dict.fromkeys(keys, "x"), dict.fromkeys(keys, 100))

    def test_rates_leave_the_first_token_out_and_weigh_prompts_by_their_time(self):
        plain, _ = self.summary([turn("tandem-plain", "1", [1] * 11, 1.0), turn("tandem-plain", "2", [1] * 31, 1.0)])
        self.assertAlmostEqual(plain["tokens_per_second"], 20)

    def test_the_median_of_the_repeats_counts(self):
        plain, _ = self.summary([turn("tandem-plain", "1", [1] * 11, s, i) for i, s in enumerate((1.0, 50.0, 2.0))])
        self.assertAlmostEqual(plain["tokens_per_second"], 5)

    def test_ratios_compare_common_prompts_only(self):
        _, drafts = self.summary([turn("tandem-plain", "1", [1] * 11, 1.0), turn("drafts", "1", [1] * 11, 0.5),
                                  turn("tandem-plain", "2", [1] * 11, 100.0), {**turn("drafts", "2", [], 0), "error": "e"}])
        self.assertEqual(drafts["over_own_plain"], {"ratio": 2.0, "low": 2.0, "high": 2.0})

    def test_the_interval_holds_the_ratio_and_spans_unlike_prompts(self):
        turns = [turn("tandem-plain", str(i), [1] * 11, 1.0) for i in range(8)]
        turns += [turn("drafts", str(i), [1] * 11, 1.0 if i % 2 else 0.25) for i in range(8)]
        found = self.summary(turns)[1]["over_own_plain"]
        self.assertAlmostEqual(found["ratio"], 1.6)
        self.assertLess(found["low"], 1.5)
        self.assertGreater(found["high"], 1.7)
        self.assertTrue(1.0 <= found["low"] and found["high"] <= 4.0)

    def test_prefill_is_prompt_tokens_over_the_times_to_first_token(self):
        plain, _ = self.summary([turn("tandem-plain", "1", [1, 2], 1.0), turn("tandem-plain", "2", [1, 2], 1.0)])
        self.assertAlmostEqual(plain["prefill_tokens_per_second"], 200)

    def test_an_answer_of_one_token_has_no_rate(self):
        plain, drafts = self.summary([turn("tandem-plain", "1", [1], 0.0), turn("drafts", "1", [1], 0.0)])
        self.assertIsNone(plain["tokens_per_second"])
        self.assertIsNone(drafts["over_own_plain"])
        self.assertEqual(drafts["equal_to_own_plain"], (1, 1))

    def test_a_repeat_with_another_text_is_not_equal(self):
        turns = [turn("tandem-plain", "1", [1, 2], 1.0), turn("drafts", "1", [1, 2], 1.0), turn("drafts", "1", [1, 3], 1.0, 1)]
        self.assertEqual(self.summary(turns)[1]["equal_to_own_plain"], (0, 1))

    def test_an_acceptance_that_the_engine_does_not_tell_is_a_dash(self):
        turns = [turn("tandem-plain", "1", [1, 2], 1.0), turn("drafts", "1", [1, 2], 1.0)]
        self.assertIn("| drafts | 1.0 | 1.00 (1.00-1.00) | 1.00 (1.00-1.00) | 0.50 | 200 | - | - | 1 of 1 | 1 of 1 |",
                      table.speed_tables(self.summary(turns)))

    def test_rows_are_medians_and_stand_over_the_first(self):
        turns = [{"side": "tandem-plain", "seconds": [0.01, 0.02 * i]} for i in (1, 2, 3)] + [{"side": "drafts", "error": "e"}]
        text = table.rows_table([PLAIN, DRAFTS], turns, [1, 4])
        self.assertIn("| tandem-plain | 10.0 (1.00) | 40.0 (4.00) |", text)
        self.assertIn("- drafts: e", text)


class Results(Folder):
    def header(self, **more):
        return {"command": "bench/peers/run", "machine": "m", "threads": 2, "huge_pages": True, "target": "t.gguf",
                "draft": "d.gguf", "tandem_commit": "abc", "config": "c.yaml", "rows": None, **more}

    def turn(self, name, **more):
        return {"kind": "turn", "time": 86400.0, "turn_seconds": 2.0, "idle_cpu_seconds": 0.1, "others_cpu_seconds": 0.0,
                **turn(name, "1", [1, 2], 0.5), **more}

    def written(self, records, sides, kind="turn", **head):
        journal = self.journal(self.header(**head))
        journal.add({"kind": "prompt", "key": "1", "task": "chat", "ids": [1, 2, 3]})
        journal.add({"kind": "loaded", "side": "tandem-plain", "versions": {"tandem": "tandem 0.1.0"}})
        for record in records:
            journal.add(record)
        text, missing = report.write(journal, sides, kind, self.folder / "name", ["/home/someone/models"])
        return text, missing, (self.folder / "name.md").read_text()

    def test_they_say_date_versions_and_circumstances(self):
        _, missing, page = self.written([self.turn("tandem-plain"), self.turn("drafts", others_cpu_seconds=1.0)], [PLAIN, DRAFTS])
        self.assertEqual(missing, [])
        for fact in ("Date: 1970-01-02", "Versions: tandem tandem 0.1.0", "at most 5.0 % of one core", "1 of 2", "abc with c.yaml"):
            self.assertIn(fact, page)

    def test_no_folder_of_the_machine_is_in_them(self):
        failed = {"kind": "turn", "time": 0, "key": "1", "repeat": 0, "side": "drafts", "error": "no /home/someone/models/d.gguf"}
        _, missing, page = self.written([self.turn("tandem-plain"), failed], [PLAIN, DRAFTS])
        self.assertEqual(missing, ["drafts"])
        self.assertIn("- drafts: no d.gguf", page)
        for name in ("name.md", "name.csv", "name.json"):
            self.assertNotIn("someone", (self.folder / name).read_text())

    def test_the_csv_has_a_line_a_turn_with_its_tokens(self):
        self.written([self.turn("tandem-plain"), self.turn("drafts")], [PLAIN, DRAFTS])
        lines = (self.folder / "name.csv").read_text().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[1].startswith("turn,0,1,tandem-plain,2,0.5,0.5,2.0,"))

    def test_rows_have_their_own_table(self):
        record = {**self.turn("tandem-plain"), "kind": "rows", "seconds": [0.01, 0.03]}
        _, _, page = self.written([record], [PLAIN], "rows", rows=[1, 8])
        self.assertIn("| tandem-plain | 10.0 (1.00) | 30.0 (3.00) |", page)


class WorkerSide(unittest.TestCase):
    def test_the_timeline_times_first_and_last_token_and_ends_at_a_stop(self):
        times = iter([10.0, 10.5, 10.75, 12.0])
        timeline = serve.Timeline(9, [2], clock=lambda: next(times))
        self.assertEqual([timeline.add(token) for token in (5, 6, 2)], [True, True, False])
        self.assertEqual(timeline.result(), {"ids": [5, 6, 2], "ttft_seconds": 0.5, "decode_seconds": 1.5, "first_tokens": 1})

    def test_tokens_that_came_with_the_first_took_no_decoding_time(self):
        times = iter([0.0, 1.0, 2.0])
        timeline = serve.Timeline(9, [], clock=lambda: next(times))
        timeline.add_all([5, 6, 7])
        timeline.add_all([8, 9])
        self.assertEqual(timeline.result()["first_tokens"], 3)
        self.assertEqual(table.Answers([{"key": "1", "repeat": 0, **timeline.result()}]).rate(["1"]), 2.0)

    def test_the_timeline_ends_at_the_limit(self):
        timeline = serve.Timeline(2, [])
        self.assertEqual([timeline.add(1), timeline.add(1)], [True, False])

    def test_counts_of_rows_take_turns_and_the_first_turn_is_warm_up(self):
        now, calls = [0.0], []

        def forward(count):
            calls.append(count)
            now[0] += 100 if len(calls) <= 2 else count

        self.assertEqual(serve.time_rows(forward, [1, 4], 3, clock=lambda: now[0]), {"seconds": [1, 4]})
        self.assertEqual(calls, [1, 4] * 4)

    def test_what_an_engine_throws_becomes_its_reply(self):
        engine = types.SimpleNamespace(load=lambda request: {}["missing"], generate=None)
        with contextlib.redirect_stderr(io.StringIO()) as log:
            reply = serve.answer(engine, {"op": "load"})
        self.assertEqual(reply, {"ok": False, "error": "KeyError: 'missing'"})
        self.assertIn("Traceback", log.getvalue())
        self.assertIn("no operation rows", serve.answer(engine, {"op": "rows"})["error"])
        self.assertIn("no operation __init__", serve.answer(engine, {"op": "__init__"})["error"])

    def test_every_operation_that_a_worker_of_tandem_has_can_be_asked_for(self):
        for name in ("load", "generate", "rows", "encode"):
            engine = types.SimpleNamespace(**{name: lambda request: {"done": name}})
            self.assertEqual(serve.answer(engine, {"op": name}), {"ok": True, "done": name})


class TheSides(Folder):
    def test_each_has_an_engine_a_worker_and_a_plain_side(self):
        bench = HERE.parent.parent / "bench/peers"
        for a_side in SIDES.values():
            engine = ENGINES[a_side.engine]
            self.assertTrue((bench / "workers" / engine.script).is_file())
            self.assertEqual(SIDES[a_side.plain].engine, a_side.engine)
            if engine.requirements:
                for line in (bench / "requirements" / f"{engine.requirements}.txt").read_text().split():
                    self.assertRegex(line, r"^[a-z0-9-]+==[0-9.]+$")

    def test_an_environment_with_the_pinned_versions_is_not_installed_again(self):
        engine = ENGINES["ik_llama.cpp"]
        place = self.folder / engine.requirements
        place.mkdir()
        pinned = HERE.parent.parent / "bench/peers/requirements" / f"{engine.requirements}.txt"
        (place / "installed.txt").write_text(pinned.read_text())
        self.assertEqual(python_of(engine, self.folder, self.fail), str(place / "bin/python"))

    def test_the_runners_own_python_serves_an_engine_without_packages(self):
        self.assertEqual(python_of(Engine("x.py"), self.folder, self.fail), sys.executable)


if __name__ == "__main__":
    unittest.main()
