"""tandem chat as a person meets it: on a terminal (a pseudo one) and through a pipe. On SmolLM2."""

import json
import os
import pathlib
import pty
import re
import select
import signal
import stat
import subprocess
import termios
import time
import unittest

from tandem import SMALL, SMALL_MODEL, TandemTest, binary, settings, strict_json, tandem

GREEDY = settings(sampling__temperature=0, stop__max_tokens=24)
TURNS = ["Name three fruits.", "Which of these is yellow?", "Write that list again."]
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
LONG = "Tell me a very long story about a dragon."


def piped(*args, lines=(), **options) -> subprocess.CompletedProcess:
    return tandem("chat", "--config", SMALL, *args, stdin="".join(line + "\n" for line in lines).encode(), **options)


class Terminal:
    """A process on a pseudo terminal of 80 columns; what it wrote is kept without escape sequences."""

    def __init__(self, *args, env=None):
        self.raw = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(binary(), [binary(), "chat", "--config", SMALL, *args], {**os.environ, "TERM": "xterm", **(env or {})})

    def text(self) -> str:
        return ESCAPE.sub(b"", self.raw).replace(b"\r", b"").decode(errors="replace")

    def read(self, seconds: float) -> bool:
        """Takes what has come; False once the process has closed the terminal."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            part = os.read(self.fd, 65536)
        except OSError:
            part = b""
        self.raw += part
        return part != b""

    def until(self, pattern: str, after: int = 0, seconds: float = 30) -> int:
        """Reads on until `pattern` stands behind `after` in the text; returns where the match ends."""
        limit = time.monotonic() + seconds
        while True:
            found = re.compile(pattern).search(self.text(), after)
            if found:
                return found.end()
            if time.monotonic() > limit or not self.read(0.2):
                raise AssertionError(f"no {pattern!r} in: {self.text()[after:]!r}")

    def type(self, text) -> int:
        """Types; returns where the text so far ends."""
        end = len(self.text())
        os.write(self.fd, text.encode() if isinstance(text, str) else text)
        return end

    def wait(self, seconds: float = 30) -> int:
        limit = time.monotonic() + seconds
        while self.read(0.2):
            if time.monotonic() > limit:
                raise AssertionError(f"still there: {self.text()!r}")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self):
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


class ChatTest(TandemTest):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"
        self.env = {"XDG_STATE_HOME": str(self.state), "HOME": str(self.folder),
                    "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(pathlib.Path.home() / ".cache"),
                    "TANDEM_MODELS": os.environ.get("TANDEM_MODELS") or str(pathlib.Path.home() / ".cache/tandem/models")}

    def fresh_text(self, messages, *args) -> str:
        path = self.write("fresh.jsonl", json.dumps({"id": "x", "task": "chat", "messages": messages}))
        out = self.json_of("generate", "--config", SMALL, "--prompts", path, *args)
        return out["results"][0]["text"]


class Pipe(ChatTest):
    def turns(self, *args, lines=TURNS) -> list:
        done = piped("--json", *args, lines=lines)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return [strict_json(line) for line in done.stdout.splitlines()]

    def test_a_line_is_a_turn_and_stdout_has_the_answers_alone(self):
        answers = [turn["text"] for turn in self.turns(*GREEDY)]
        self.assertEqual(len(answers), 3)
        done = piped(*GREEDY, lines=TURNS)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.decode(), "".join(answer + "\n" for answer in answers))
        self.assertEqual(len(re.findall(r"read \d+ of \d+ prompt tokens", done.stderr.decode())), 3)
        quiet = piped(*GREEDY, "--quiet", lines=TURNS)
        self.assertEqual((quiet.stdout, quiet.stderr), (done.stdout, b""))

    def test_each_turn_is_the_text_of_a_fresh_process_and_reads_the_new_ids(self):
        messages = []
        for kind in (settings(draft__kind="ngram"), settings(draft__kind="recycle"),
                     settings(draft__kind="model", draft__model=SMALL_MODEL, draft__length=3)):
            with self.subTest(kind=kind):
                turns = self.turns(*GREEDY, *kind)
                self.assertGreater(sum(turn["accepted"] for turn in turns), 0)
                messages, held = [], 0
                for line, turn in zip(TURNS, turns):
                    messages.append({"role": "user", "content": line})
                    self.assertEqual(turn["text"], self.fresh_text(messages, *GREEDY, *settings(draft__kind="none")))
                    messages.append({"role": "assistant", "content": turn["text"]})
                    self.assertIn(held - turn["cached_prompt_tokens"], (0, 1))
                    held = turn["prompt_tokens"] + turn["generated_tokens"]

    def test_a_seed_under_coupled_is_the_text_of_a_fresh_process_too(self):
        seeded = settings(sampling__temperature=1, sampling__seed=11, verify__rule="coupled", stop__max_tokens=24)
        messages = []
        for line, turn in zip(TURNS, self.turns(*seeded)):
            messages.append({"role": "user", "content": line})
            self.assertEqual(turn["text"], self.fresh_text(messages, *seeded, *settings(draft__kind="none")))
            messages.append({"role": "assistant", "content": turn["text"]})

    def test_several_lines_can_be_one_message(self):
        one = self.turns(*GREEDY, lines=["\"\"\"", "Name three", "/fruits.", "\"\"\""])
        other = self.turns(*GREEDY, lines=["Name three\\", "/fruits."])
        whole = self.fresh_text([{"role": "user", "content": "Name three\n/fruits."}], *GREEDY)
        self.assertEqual([turn["text"] for turn in one + other], [whole, whole])

    def test_commands_that_are_wrong_are_said_and_nothing_is_sent(self):
        done = piped(*GREEDY, lines=["/rest", "/save", "/reset now", "/load " + str(self.folder / "none.json"), "/", ""])
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        says = done.stderr.decode()
        for part in ("unknown command /rest", "did you mean /reset?", "/save: expected FILE, got nothing",
                     "/reset: expected nothing behind it, got now", "none.json: ", "unknown command /;"):
            self.assertIn(part, says)

    def test_a_message_that_does_not_fit_is_refused_and_the_chat_goes_on(self):
        small = [*GREEDY, *settings(target__context=96)]
        done = piped("--json", *small, lines=["word " * 200, TURNS[0]])
        self.assertEqual(done.returncode, 1)
        refused, answered = map(strict_json, done.stdout.splitlines())
        self.assertIn("leave no room in a context of 96 tokens", refused["error"])
        self.assertEqual(answered["text"], self.fresh_text([{"role": "user", "content": TURNS[0]}], *small))

    def test_a_full_context_stops_or_drops_the_oldest_turns(self):
        lines = [f"Say the word number {i}." for i in range(12)]
        small = [*GREEDY, *settings(target__context=128, prompt__system="Answer in one word.", stop__max_tokens=12)]
        self.assertEqual(piped(*small, lines=lines).returncode, 1)
        dropping = [*small, *settings(runtime__context_full="drop_oldest_turns")]
        done = piped("--json", "--verbose", *dropping, lines=lines)
        self.assertEqual(done.returncode, 0)
        turns = [strict_json(line) for line in done.stdout.splitlines()]
        dropped = sum(turn["dropped_turns"] for turn in turns)
        self.assertGreater(dropped, 3)
        self.assertTrue(all(turn["prompt_tokens"] + 12 <= 128 for turn in turns))
        self.assertTrue(all(turn["stop_reason"] != "context" for turn in turns))
        says = done.stderr.decode()
        told = re.findall(r"dropped the oldest (\d+) turns \(\d+ messages, (\d+) tokens\); (\d+) ids remain", says)
        self.assertEqual(sum(int(turns) for turns, _, _ in told), dropped)
        self.assertEqual(sum(int(tokens) for _, tokens, _ in told), turns[-1]["dropped_tokens"])
        self.assertEqual([len(ids.split()) for ids in re.findall(r"ids: ([\d ]+)\n", says)],
                         [int(ids) for _, _, ids in told])
        plain = piped("--json", *dropping, *settings(draft__kind="none"), lines=lines)
        self.assertEqual([strict_json(line)["ids"] for line in plain.stdout.splitlines()],
                         [turn["ids"] for turn in turns])
        # The last turn, asked of a fresh process with the messages that are left.
        kept, messages = 12 - dropped, [{"role": "system", "content": "Answer in one word."}]
        for line, turn in list(zip(lines, turns))[-kept:]:
            messages += [{"role": "user", "content": line}, {"role": "assistant", "content": turn["text"]}]
        self.assertEqual(turns[-1]["text"], self.fresh_text(messages[:-1], *small))

    def test_a_conversation_is_saved_and_gone_on_with(self):
        path = self.folder / "chat.json"
        whole = self.turns(*GREEDY)
        done = piped(*GREEDY, lines=[*TURNS[:2], f"/save {path}"])
        self.assertEqual(done.returncode, 0)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        saved = strict_json(path.read_bytes())
        self.assertEqual([m["role"] for m in saved["messages"]], ["user", "assistant"] * 2)
        for args, lines in ((["--load", str(path)], []), ([], [f"/load {path}"])):
            out = self.turns(*GREEDY, *args, lines=[*lines, TURNS[2]])
            self.assertEqual([turn["text"] for turn in out], [whole[2]["text"]])
        other = piped(*GREEDY, *settings(prompt__system="Be brief."), "--load", str(path))
        self.assertIn("saved by a run with another config", other.stderr.decode())

    def test_reset_and_system_begin_as_a_fresh_process_would(self):
        system = {"role": "system", "content": "Answer in French."}
        lines = [TURNS[0], "/reset", TURNS[1], "/reset", "/system Answer in French.", TURNS[0], "/system \"\"",
                 "/reset", TURNS[1]]
        texts = [turn["text"] for turn in self.turns(*GREEDY, lines=lines)]
        alone = [self.fresh_text([{"role": "user", "content": line}], *GREEDY) for line in TURNS[:2]]
        french = self.fresh_text([system, {"role": "user", "content": TURNS[0]}], *GREEDY)
        self.assertEqual(texts, [alone[0], alone[1], french, alone[1]])

    def test_stats_and_config_go_to_stderr(self):
        done = piped(*GREEDY, "--quiet", lines=["/stats", TURNS[0], "/stats", "/config", "/help", "/exit", TURNS[1]])
        self.assertEqual(done.returncode, 0)
        says = done.stderr.decode()
        for part in ("no answer yet", "conversation: 2 messages", "max_tokens: 24", "/reset", "Ctrl-C"):
            self.assertIn(part, says)
        self.assertEqual(done.stdout.count(b"\n"), done.stdout.strip().count(b"\n") + 1)
        self.assertEqual(done.stdout.decode()[:-1], self.fresh_text([{"role": "user", "content": TURNS[0]}], *GREEDY))

    def test_colours_come_in_a_pipe_only_when_forced(self):
        plain = piped(*GREEDY, lines=TURNS).stdout
        self.assertEqual(piped(*GREEDY, "--color", lines=TURNS).stdout, plain)
        forced = piped(*GREEDY, "--color=always", lines=TURNS).stdout
        self.assertIn(b"\x1b[36m", forced)
        self.assertEqual(ESCAPE.sub(b"", forced), plain)

    def test_an_interrupt_ends_a_piped_chat(self):
        process = subprocess.Popen([binary(), "chat", "--config", SMALL, *settings(stop__max_tokens=4000)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process:
            process.stdin.write(LONG.encode() + b"\n")
            process.stdin.flush()
            self.assertNotEqual(os.read(process.stdout.fileno(), 1), b"")
            process.send_signal(signal.SIGINT)  # the answer
            while b"cancel" not in process.stderr.readline():
                continue
            process.send_signal(signal.SIGINT)  # the chat
            self.assertEqual(process.wait(timeout=60), 130)

    def test_a_model_without_a_template_is_refused(self):
        done = piped(*settings(prompt__chat="false"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("prompt.chat: tandem chat needs true", done.stderr.decode())


class SessionFiles(ChatTest):
    def setUp(self):
        super().setUp()
        self.cache = str(self.folder / "cache.session")

    def test_generate_reads_a_prompt_once_and_writes_the_same_text(self):
        for sampled in ([], settings(sampling__temperature=1, sampling__seed=4, verify__rule="block")):
            path = pathlib.Path(self.cache)
            path.unlink(missing_ok=True)
            ask = ["--prompt", "Name a colour and a fruit of this colour.", *sampled]
            plain = self.generate(*ask)
            first = self.generate(*ask, "--session", self.cache)
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            second = self.generate(*ask, "--session", self.cache)
            self.assertEqual((first["ids"], second["ids"]), (plain["ids"], plain["ids"]))
            self.assertEqual(first["cached_prompt_tokens"], 0)
            self.assertEqual(second["cached_prompt_tokens"], second["prompt_tokens"] - 1)
        done = tandem("generate", "--config", SMALL, "--prompt", "Hi", "--session", self.cache, *settings(stop__max_tokens=2))
        self.assertRegex(done.stderr.decode(), r"prompt: \d+ tokens \(\d+ cached\)")

    def test_a_file_of_another_run_or_of_something_else_is_refused_and_left_alone(self):
        self.generate("--prompt", "Hi", "--session", self.cache)
        whole = pathlib.Path(self.cache).read_bytes()
        run = ["generate", "--config", SMALL, "--prompt", "Hi", "--session", self.cache]
        self.refused(1, *run, *settings(runtime__kv_cache="q8_0"), says=["kv_cache f16 (here q8_0)"])
        self.refused(1, *run, *settings(prompt__chat="false"), says=["template ", "(here none)"])
        self.refused(1, *run, "--reference", says=["backend "])
        self.refused(1, *run, env={**os.environ, "TANDEM_ISA": "portable"}, says=["backend ", "(here cpu-portable)"])
        for content, says in ((whole[:-100], "cut: expected"), (b"notes\n", "expected a session file"),
                              (whole[:5000] + b"\0" * 64 + whole[5064:], "changed: expected the SHA-256")):
            path = self.write("cache.session", content)
            self.refused(1, *run, says=[path, says])
            self.assertEqual(pathlib.Path(path).read_bytes(), content)
        self.refused(1, *run[:-1], str(self.folder / "none" / "x"), says=["none/x: cannot be written"])
        self.refused(2, "generate", "--config", SMALL, "--prompts", "x", "--session", self.cache, says=["--session"])

    def test_a_chat_goes_on_from_its_files_with_the_same_text(self):
        path = str(self.folder / "chat.json")
        whole = [strict_json(line) for line in piped("--json", *GREEDY, lines=TURNS).stdout.splitlines()]
        first = piped("--json", *GREEDY, "--session", self.cache, lines=[*TURNS[:2], f"/save {path}"])
        self.assertEqual(first.returncode, 0)
        second = piped("--json", *GREEDY, "--session", self.cache, "--load", path, lines=TURNS[2:])
        turn = strict_json(second.stdout)
        self.assertEqual(turn["text"], whole[2]["text"])
        self.assertEqual(turn["cached_prompt_tokens"], whole[2]["cached_prompt_tokens"])
        self.assertIn("session file", second.stderr.decode())


class OnATerminal(ChatTest):
    def start(self, *args, **env) -> Terminal:
        terminal = Terminal(*GREEDY, *args, env={**self.env, **env})
        self.addCleanup(terminal.close)
        self.at = terminal.until(r"/help lists the commands.*\n> $")
        return terminal

    def ask(self, terminal: Terminal, typed) -> str:
        """Types and returns what the terminal shows until the next prompt."""
        begin = terminal.type(typed)
        end = terminal.until(r"\n\[\d+ tokens(.|\n)*?\]\n> $", begin)
        return terminal.text()[begin:end]

    def test_lines_are_edited_recalled_and_answered(self):
        terminal = self.start()
        shown = self.ask(terminal, "Name thre\x7f\x7fee fruits.\x01\x05\r")  # backspaces, to the begin, to the end
        answer = self.fresh_text([{"role": "user", "content": "Name thee fruits."}], *GREEDY)
        self.assertIn(answer, shown)
        self.assertNotIn(answer, self.ask(terminal, "\x1b[A" + "\x01\x0b" + "Hi\r"))  # recalled and cut away
        terminal.type("/reset\r")
        terminal.until(r"begins anew\n> $", self.at)
        self.assertIn(answer, self.ask(terminal, "\x1b[A\x1b[A\x1b[A\r"))  # up to the first line
        terminal.type("\x04")
        self.assertEqual(terminal.wait(), 0)
        history = self.state / "tandem" / "chat_history"
        self.assertEqual(stat.S_IMODE(history.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(history.parent.stat().st_mode), 0o700)
        again = self.start()
        self.assertIn(answer, self.ask(again, "\x1b[A\r"))  # remembered over runs

    def test_history_can_be_switched_off(self):
        terminal = self.start("--no-history")
        self.ask(terminal, "Hi\r")
        terminal.type("/exit\r")
        self.assertEqual(terminal.wait(), 0)
        self.assertFalse(self.state.exists())

    def test_letters_of_any_alphabet_are_typed_and_deleted_whole(self):
        terminal = self.start(LC_ALL="C")
        shown = self.ask(terminal, "Grüße né日\x7f\x7f!\r")
        self.assertIn(self.fresh_text([{"role": "user", "content": "Grüße n!"}], *GREEDY), shown)

    def test_pasted_lines_are_one_message(self):
        terminal = self.start()
        shown = self.ask(terminal, "\x1b[200~Name three\nfruits.\n\x1b[201~\r")
        self.assertIn(self.fresh_text([{"role": "user", "content": "Name three\nfruits."}], *GREEDY), shown)

    def test_lines_that_come_at_once_are_one_message_too(self):
        terminal = self.start()
        shown = self.ask(terminal, "Name three\rfruits.\r")
        self.assertIn(self.fresh_text([{"role": "user", "content": "Name three\nfruits."}], *GREEDY), shown)
        begin = terminal.type("Hi\r\x04")
        self.assertEqual(terminal.wait(), 0)
        self.assertRegex(terminal.text()[begin:], r"\n\[\d+ tokens")

    def test_what_is_typed_during_an_answer_comes_after_it(self):
        terminal = self.start(*settings(stop__max_tokens=200))
        begin = terminal.type(LONG + "\r")
        terminal.until(r"\n.*\n", begin)
        terminal.type("Hi\rBye\r\x04")  # two turns, then the end
        self.assertEqual(terminal.wait(60), 0)
        self.assertEqual(len(re.findall(r"\n\[\d+ tokens", terminal.text()[begin:])), 3)

    def test_the_terminal_is_left_as_it_was(self):
        terminal = self.start()
        self.ask(terminal, "Hi\r")
        terminal.type("\x04")
        terminal.until(r"> \^D\n", self.at)
        for _ in range(50):  # the process closes the terminal last
            if termios.tcgetattr(terminal.fd)[3] & termios.ICANON:
                break
            time.sleep(0.1)
        self.assertTrue(termios.tcgetattr(terminal.fd)[3] & termios.ICANON)
        self.assertEqual(terminal.wait(), 0)

    def test_ctrl_c_stops_the_answer_and_the_chat_goes_on_from_what_was_shown(self):
        path = self.folder / "chat.json"
        terminal = self.start(*settings(stop__max_tokens=4000))
        begin = terminal.type(LONG + "\r")
        terminal.until(r"\n.*\n.*\n", begin)
        terminal.type("\x03")
        end = terminal.until(r"; cancel\]\n> $", begin)
        terminal.type(f"/save {path}\r")
        terminal.until(r"saved 2 messages", end)
        messages = strict_json(path.read_bytes())["messages"]
        shown = terminal.text()[begin:end].replace("^C", "")
        self.assertGreater(len(messages[1]["content"]), 5)
        self.assertIn(messages[1]["content"], shown)
        following = self.ask(terminal, "/reset\r" + f"/load {path}\r" + "Stop.\x15Say hello.\r")
        self.assertIn(self.fresh_text([*messages, {"role": "user", "content": "Say hello."}], *GREEDY)[:200], following)

    def test_ctrl_c_at_the_prompt_clears_the_line_and_twice_it_leaves(self):
        terminal = self.start()
        terminal.type("never sent\x03")
        end = terminal.until(r"Ctrl-C again or Ctrl-D leaves\)\n> $", self.at)
        answer = self.fresh_text([{"role": "user", "content": "Hi"}], *GREEDY)
        self.assertIn(answer, self.ask(terminal, "Hi\r"))
        terminal.type("\x03")
        terminal.until(r"leaves\)\n> $", end)
        terminal.type("\x03")
        self.assertEqual(terminal.wait(), 0)

    def test_accepted_drafts_are_coloured_unless_no_color_is_set(self):
        repeat = "Repeat this line three times: one two three four five six seven eight.\r"
        terminal = self.start("--color")
        self.ask(terminal, repeat)
        self.assertIn(b"\x1b[36m", terminal.raw)
        end = terminal.type("/help\r")
        terminal.until(r"by source: model, ngram, corpus, recycle, other", end)
        plain = self.start("--color", NO_COLOR="1")
        self.ask(plain, repeat)
        self.assertNotIn(b"\x1b[36m", plain.raw)
        self.assertNotIn(b"\x1b[2m", plain.raw)

    def test_an_end_by_signal_leaves_the_terminal_as_it_was(self):
        cache = str(self.folder / "cache.session")
        terminal = self.start("--session", cache)
        self.ask(terminal, "Hi\r")
        os.kill(terminal.pid, signal.SIGTERM)
        self.assertEqual(terminal.wait(), 130)
        self.assertTrue(pathlib.Path(cache).exists())


if __name__ == "__main__":
    unittest.main()
