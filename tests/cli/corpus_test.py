"""What drafts know: a corpus where the config names one, and nothing of another prompt, on SmolLM2."""

import json
import os
import unittest

from tandem import SMALL, TandemTest, settings

QUESTION = "Name the seven days of the week in order, then name them again."


class CorpusTest(TandemTest):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}

    def ask(self, *args, **values) -> dict:
        values = {"draft__length": 4, **values}
        return self.generate("--prompt", QUESTION, *settings(**values), *args, tokens=60, env=self.environment)


class Corpus(CorpusTest):
    def test_drafts_come_from_it_and_the_text_stays(self):
        plain = self.ask(draft__kind="none")
        self.write("notes/answer.txt", "Once I was told:\n" + plain["text"])
        self.write("notes/.git/answer.txt", "hidden")
        for kind in ("ngram", "hybrid"):
            with self.subTest(kind=kind):
                drafted = self.ask(draft__kind=kind, draft__corpus=self.folder / "notes")
                self.assertEqual(drafted["ids"], plain["ids"])
                self.assertGreater(drafted["by_source"]["corpus"]["accepted"], 10)
                self.assertEqual(drafted["settings"]["corpus"]["files"], 1)
                self.assertEqual(drafted["settings"]["corpus"]["skipped"], [])
        self.assertEqual(drafted["settings"]["corpus"]["origin"], "saved")
        alone = self.ask(draft__kind="ngram")
        self.assertNotIn("corpus", alone["by_source"])
        self.assertIsNone(alone["settings"]["corpus"])
        self.assertLess(drafted["steps"], alone["steps"])

    def test_what_is_left_out_is_said_once(self):
        folder = self.folder / "notes"
        self.write("notes/picture.png", b"\x89PNG\0")
        self.write("notes/a.txt", "Monday, Tuesday")
        done = self.succeed("generate", "--config", SMALL, "--prompt", "a", "--quiet",
                            *settings(draft__corpus=folder, stop__max_tokens=4), env=self.environment)
        self.assertEqual(done.stderr.decode(), f"tandem: warning: draft.corpus leaves out {folder.resolve()}"
                                               "/picture.png (binary)\n")

    def test_a_missing_path_is_refused_by_line(self):
        path = self.write("a.yaml", "target: {model: smollm2-135m-instruct-q4_1.gguf}\ndraft:\n  corpus: [gone]\n")
        self.refused(2, "generate", "--config", path, "--prompt", "a", says=[f"{path}:3: draft.corpus", "gone"])


class FreshPrompts(CorpusTest):
    def test_rows_of_a_prompt_file_are_drafted_as_each_alone(self):
        rows = [{"id": str(i), "task": "t", "messages": [{"role": "user", "content": text}], "max_tokens": 40}
                for i, text in enumerate([QUESTION, QUESTION, "Count from one to nine. " + QUESTION])]
        for kind in ("ngram", "recycle", "hybrid"):
            with self.subTest(kind=kind):
                def answers(part):
                    path = self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in part))
                    return self.generate("--prompts", path, *settings(draft__kind=kind, draft__length=4),
                                         tokens=60)["results"]
                together = answers(rows)
                self.assertGreater(sum(answer["accepted"] for answer in together), 0)
                for row, answer in zip(rows, together):
                    alone = answers([row])[0]
                    for key in ("ids", "text", "steps", "proposed", "tested", "accepted", "by_source"):
                        self.assertEqual(answer[key], alone[key], key)


if __name__ == "__main__":
    unittest.main()
