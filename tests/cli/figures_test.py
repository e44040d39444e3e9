"""The README's definitions of figures against the reports: none undefined, none left over. And where the time goes."""

import json
import re
import unittest

from tandem import ROOT, SMALL, SMALL_MODEL, TandemTest, settings, strict_json, tandem

SECTION = "## What the figures mean\n"
# Of a text that differs, which no run here has.
OF_A_DIFFERENCE = {"index", "plain", "drafted", "margin"}
OTHER_SHARE = 0.02


# Keys within these are names of what the file holds.
NAMED_BY_THE_FILE = ("parts", "formats")
SLIDING_MODEL = "gemma-3-270m-q4_k_m.gguf"


def keys_of(value) -> set:
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if isinstance(value, dict):
        inner = [list(v.values()) if key in NAMED_BY_THE_FILE else v for key, v in value.items()]
        return set(value).union(*map(keys_of, inner))
    return set()


def section() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text[text.index(SECTION):].split("\n## ")[0]


class Definitions(TandemTest):
    def reports(self) -> list:
        rows = [{"id": "good", "task": "chat", "prompt": "Repeat three times: one two three four five."},
                {"id": "bad", "task": "chat", "prompt": "word " * 400}]
        path = self.write("prompts.jsonl", "\n".join(map(json.dumps, rows)))
        common = ["--config", SMALL, "--json", "--prompts", path,
                  *settings(target__context=96, stop__max_tokens=16, draft__length="auto", sampling__seed=3)]
        hot = settings(sampling__temperature=1, sampling__top_k=2)
        itself = settings(draft__kind="model", draft__model=SMALL_MODEL)
        other = settings(draft__kind="recycle")
        lookup = settings(draft__kind="ngram", draft__corpus=json.dumps([self.write("notes.txt", "one two three " * 9)]))
        form = settings(constraint__choices="[one two three four five six, seven eight nine ten eleven twelve]")
        runs = [["generate", *common, *settings(sampling__logprobs=1)], ["generate", *common, *itself],
                ["generate", *common, *other], ["generate", *common, *lookup], ["generate", *common, *form],
                ["check", *common, "--draws", "100", *hot],
                ["check", *common, *hot, *settings(verify__rule="coupled")], ["accept", *common, *itself]]
        reports = [strict_json(tandem(*run).stdout) for run in runs]
        reports.append(self.sweep_report(path))
        record = str(self.folder / "text.rec")
        small = ["--config", SMALL, "--prompts", path, "--max-tokens", "8", "--task", "chat",
                 *settings(target__context=96, sampling__temperature=0)]
        reports.append(strict_json(tandem("replay", "--record", record, *small, "--json").stdout))
        reports.append(self.json_of("rows", "--model", SMALL_MODEL, "--rows", "1,2", "--repeats", "1", "--context", "8",
                                    "--attention-at", "32"))
        reports.append(strict_json(tandem("score", "--model", SMALL_MODEL, "--json", stdin=b"Hello world").stdout))
        reports.append(strict_json(tandem("tokenize", "--model", SMALL_MODEL, "--json", stdin=b"Hello").stdout))
        reports.append(self.json_of("inspect", "--model", SLIDING_MODEL, "--tensors"))
        trace = tandem("trace", "--config", SMALL, "--json", "--prompt", "Count to three.", "--steps", "2",
                       *settings(target__context=96, sampling__seed=3), *itself).stdout
        reports += [strict_json(line) for line in trace.splitlines()]
        return reports

    def sweep_report(self, prompts: str) -> dict:
        out = self.folder / "swept"
        tandem("sweep", "--config", SMALL, "--prompts", prompts, "--max-tokens", "8", "--kinds", "ngram", "--lengths",
               "2", "--temperatures", "0", "--out", str(out), *settings(target__context=96))
        return json.loads(out.with_suffix(".json").read_bytes())

    def test_every_key_of_every_report_is_defined_in_one_place_and_every_definition_is_of_a_key(self):
        reported = set().union(*map(keys_of, self.reports())) | OF_A_DIFFERENCE
        text = section()
        named = set(re.findall(r"`([^`]+)`", text))
        self.assertEqual(sorted(reported - named), [])
        rows = re.findall(r"^\| (`.+?) \|", text, re.MULTILINE)
        defined = [key for row in rows for key in re.findall(r"`([^`]+)`", row)]
        self.assertEqual(sorted(set(defined) - reported), [])
        self.assertEqual(sorted(key for key in set(defined) if defined.count(key) > 1), [])

    def test_help_says_where_the_definitions_are(self):
        for command in ("generate", "accept", "check", "sweep", "replay", "rows", "score", "trace", "tokenize", "inspect"):
            self.assertIn("What the figures mean", self.succeed(command, "--help").stdout.decode())


class Times(TandemTest):
    def test_stages_leave_next_to_nothing_to_other(self):
        for kind in ("none", "ngram"):
            shares = []
            for _ in range(3):  # the best of three: a machine that does something else meanwhile shows as other
                out = self.generate("--prompt", "Count from one to thirty in words.", *settings(draft__kind=kind),
                                    tokens=64)
                shares.append(out["seconds"]["other"] / out["seconds"]["wall"])
            self.assertLessEqual(min(shares), OTHER_SHARE, kind)


if __name__ == "__main__":
    unittest.main()
