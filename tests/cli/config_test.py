"""Help, settings and everything that is refused: exit code 2 for usage and config, 1 for the rest."""

import os
import re
import shlex
import unittest

from tandem import MODELS, ROOT, SMALL, SMALL_MODEL, TandemTest, settings, tandem

COMMANDS = ("generate", "accept", "check", "replay", "score", "sweep", "tokenize", "inspect", "rows", "trace",
            "config")


class Help(TandemTest):
    def test_every_command_explains_itself_and_its_example_parses(self):
        nowhere = {"HOME": str(self.folder), "TANDEM_MODELS": str(self.folder), "PATH": os.environ["PATH"]}
        for command in ((), *((name,) for name in COMMANDS)):
            with self.subTest(command=command):
                text = self.succeed(*command, "--help").stdout.decode()
                example = re.search(r"Example: .*?(tandem .+)", text).group(1).split(" < ")[0]
                # Without any model the example gets as far as looking for one: its options were understood.
                done = tandem(*shlex.split(example)[1:], env=nowhere, cwd=ROOT)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr.decode(), r"no file \S+\.gguf, tried /")

    def test_config_help_documents_every_key_of_the_shipped_configs(self):
        text = self.succeed("config", "--help").stdout.decode()
        for line in self.succeed("config", "--config", SMALL).stdout.decode().splitlines():
            if not line.startswith(" "):
                section = line.rstrip(":")
            elif line.startswith("    "):
                self.assertIn(f"{section}.ngram.{line.split(':')[0].strip()} ", text)
            elif line.strip() != "ngram:":
                self.assertIn(f"{section}.{line.split(':')[0].strip()} ", text)

    def test_version(self):
        self.assertRegex(self.succeed("--version").stdout.decode(), r"^tandem \d+\.\d+\.\d+\n$")


class Usage(TandemTest):
    def test_mistakes_on_the_command_line_exit_with_2(self):
        for args in ([], ["nonsense"], ["generate"], ["generate", "--config", SMALL, "--nonsense"],
                     ["rows", "--model", SMALL_MODEL, "--rows", "0"], ["rows", "--model", SMALL_MODEL, "--rows", "x"],
                     ["score", "--model", SMALL_MODEL, "--threads", "-1"], ["config"]):
            with self.subTest(args=args):
                self.refused(2, *args)

    def test_a_wrong_command_or_option_is_named(self):
        self.refused(2, "generat", says=["got generat (did you mean generate?)", "tokenize"])
        self.refused(2, "generate", "--config", SMALL, "--nonsense", says=["--nonsense", "see tandem generate --help"])
        self.refused(2, "generate", says=["--config is required; see tandem generate --help"])
        self.refused(2, "rows", "--model", SMALL_MODEL, "--rows", "0", says=["--rows", "0 not in range", "4096"])
        self.refused(2, says=["Subcommands:", "generate", "Example: tandem generate"])

    def test_two_prompts_are_one_too_many(self):
        self.refused(2, "generate", "--config", SMALL, "--prompt", "a", "--prompt-file", "b", says=["one of them"])

    def test_files_that_cannot_be_read_or_written_are_named_before_any_work(self):
        missing = str(self.folder / "missing")
        self.refused(2, "generate", "--config", missing, says=[missing, "no such file"])
        for path in (missing, str(self.folder)):
            for option in ("--prompt-file", "--prompts"):
                self.refused(2, "generate", "--config", SMALL, option, path, says=[path, "cannot be read"])
        report = str(self.folder / "no" / "report.json")
        self.refused(2, "generate", "--config", SMALL, "--prompt", "a", "--report", report, says=[report])


class Settings(TandemTest):
    def test_effective_settings_are_a_config_file_that_gives_itself(self):
        odd = settings(stop__strings='["a: b", "\\n", "#", "\\"q\\"", "日本"]', sampling__temperature=1e-3,
                       sampling__seed=2**64 - 1, prompt__system='"He said: \'hi\'\\tthere"', draft__length=9)
        first = self.succeed("config", "--config", SMALL, *odd).stdout
        path = self.write("elsewhere/effective.yaml", first)
        self.assertEqual(self.succeed("config", "--config", path, cwd=self.folder).stdout, first)
        self.assertIn(b"temperature: 0.001\n", first)

    def test_a_later_override_beats_an_earlier_one_and_both_beat_the_file(self):
        out = self.succeed("config", "--config", SMALL, *settings(stop__max_tokens=7),
                           *settings(stop__max_tokens=9)).stdout.decode()
        self.assertIn("max_tokens: 9\n", out)
        self.assertIn("temperature: 0\n", out)

    def test_what_a_file_may_not_say_is_refused_with_place_key_and_limit(self):
        for text, says in (("draft:\n  lenght: 4\n", [":4: unknown key draft.lenght (did you mean length?)"]),
                           ("draft:\n  length: 64\n", [":4: draft.length: expected ", "0..63, got 64"]),
                           ("draft:\n  length: 010\n", ["draft.length", "010"]),
                           ("sampling:\n  temperature: -1\n", ["sampling.temperature", "-1"]),
                           ("sampling:\n  repetition_penalty: 0\n", ["sampling.repetition_penalty", "> 0", "got 0"]),
                           ("sampling:\n  logprobs: 21\n", ["sampling.logprobs", "0..20", "got 21"]),
                           ("sampling:\n  seed: 18446744073709551616\n", ["sampling.seed", "18446744073709551615"]),
                           ("runtime:\n  threads: -2\n", ["runtime.threads", "-2"]),
                           ("stop:\n  max_tokens: 4\nstop:\n  max_tokens: 5\n", ["stop", "5"]),
                           ("constraint:\n  json: true\n  regex: a\n", ["constraint.regex", "at most one"]),
                           ("draft:\n  kind: model\n", ["draft.kind", "draft.model"]),
                           ("draft:\n  corpus: [no/such]\n", ["draft.corpus", "bad.yaml:4", "no/such"]),
                           ("draft:\n  head_rows: 0\n", ["draft.head_rows", "all or integer 1..", "got 0"]),
                           ("draft:\n  quantize: q4_k\n", ["draft.quantize", "none, q4_0 or q8_0", "q4_k"])):
            with self.subTest(text=text):
                path = self.write("bad.yaml", f"target:\n  model: {SMALL_MODEL}\n{text}")
                self.refused(2, "config", "--config", path, says=[path, *says])
                self.refused(2, "generate", "--config", path, "--prompt", "a", says=[path])

    def test_an_override_is_checked_like_a_file(self):
        for override, says in (("draft.lenght=4", ["--set draft.lenght", "length"]), ("draft.length", ["key=value"]),
                               ("draft.length=x", ["--set draft.length", "x"]), ("=4", ["--set"])):
            self.refused(2, "config", "--config", SMALL, "--set", override, says=says)

    def test_limits_of_the_model_are_config_errors_too(self):
        for override, says in ((settings(target__context=1000000), ["target.context", "1000000", "8192"]),
                               (settings(sampling__logit_bias="{191222: 5}"),
                                ["sampling.logit_bias", "0..49151", "191222"]),
                               (settings(sampling__logit_bias="{-1: 5}"), ["sampling.logit_bias", "0..", "-1"]),
                               (settings(stop__token_ids="[49152]"), ["stop.token_ids", "0..49151", "49152"])):
            self.refused(2, "generate", "--config", SMALL, "--prompt", "a", *override, says=says)


class ModelFiles(TandemTest):
    def test_a_relative_model_path_starts_at_the_config_file(self):
        (self.folder / "m").mkdir()
        (self.folder / "m" / "x.gguf").symlink_to(MODELS / SMALL_MODEL)
        config = self.write("cfg/a.yaml", "target:\n  model: ../m/x.gguf\nstop:\n  max_tokens: 2\n")
        for cwd, path in ((self.folder, "cfg/a.yaml"), (self.folder / "m", "../cfg/a.yaml"), ("/", config)):
            out = self.json_of("generate", "--config", path, "--prompt", "Hi", cwd=cwd)
            self.assertEqual(out["settings"]["target"]["path"], str((self.folder / "m" / "x.gguf")))
        (self.folder / "m" / "x.gguf").unlink()
        self.refused(2, "generate", "--config", "cfg/a.yaml", "--prompt", "Hi", cwd=self.folder,
                     says=["cfg/a.yaml:2: target.model", str(self.folder / "m" / "x.gguf")])

    def test_a_bare_name_is_looked_up_in_the_model_folder(self):
        message = self.refused(2, "inspect", "--model", "absent.gguf", cwd=self.folder,
                               says=[str(self.folder / "absent.gguf")])
        self.assertIn(str(MODELS.resolve() / "absent.gguf"), message)

    def test_files_that_are_no_models_are_refused_by_name(self):
        whole = (MODELS / SMALL_MODEL).read_bytes()
        for name, content in (("empty.gguf", b""), ("text.gguf", b"Once upon a time"), ("magic.gguf", b"GGUF"),
                              ("cut.gguf", whole[:len(whole) // 2]), ("head.gguf", whole[:1000])):
            path = self.write(name, content)
            for command in ("inspect", "tokenize", "score", "rows"):
                with self.subTest(name=name, command=command):
                    self.refused(1, command, "--model", path, says=[name], stdin=b"a")
        self.refused(1, "generate", "--config", SMALL, "--prompt", "a", "--set", f"target.model={path}",
                     says=["head.gguf"])


if __name__ == "__main__":
    unittest.main()
