#!/usr/bin/env python3
"""Worker for tandem: one `tandem generate` a request. Its figures are those of the report, so loading is in none of them.

usage: serve_tandem.py BINARY CONFIG
"""
import json
import subprocess
import sys
import tempfile

from serve import serve


class Tandem:
    def __init__(self, binary, config):
        self._binary, self._config = binary, config

    def _run(self, command, *arguments):
        done = subprocess.run([self._binary, command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"tandem {command} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def _settings(self, request):
        self._options = {"target.model": request["target"], "target.context": request["context"],
                         "draft.model": request["draft"], "runtime.threads": request["threads"],
                         "sampling.temperature": 0}

    def _set(self, setting, **more):
        options = {**self._options, **more, **({"draft.kind": "none"} if setting == "plain" else {})}
        return ["--config", self._config, *(x for key, value in options.items() for x in ("--set", f"{key}={value}"))]

    def load(self, request):
        self._settings(request)
        return {"versions": {"tandem": self._run("--version").strip()}}

    def encode(self, request):
        """Ids of the prompt as tandem's chat template renders it: what every engine is given."""
        messages = request["row"]["messages"]
        if [message["role"] for message in messages] != ["user"]:
            raise ValueError(f"prompt {request['row']['id']}: expected one message of the user, got "
                             f"{', '.join(message['role'] for message in messages)}")
        lines = self._run("trace", *self._set("plain"), "--steps", "0", "--top", "1", "--json",
                          "--prompt", messages[0]["content"])
        return {"ids": [token["id"] for token in json.loads(lines.split("\n")[0])["tokens"]]}

    def generate(self, request):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
            prompts.write(json.dumps({**request["row"], "max_tokens": request["max_tokens"]}) + "\n")
            prompts.flush()
            settings = self._set(request["setting"], **{"stop.max_tokens": request["max_tokens"]})
            report = json.loads(self._run("generate", *settings, "--prompts", prompts.name, "--json", "--quiet"))
        result = report["results"][0]
        if result["prompt_tokens"] != len(request["ids"]):
            raise RuntimeError(f"expected a prompt of {len(request['ids'])} tokens, got {result['prompt_tokens']}")
        figures = {key: result[key] for key in ("ids", "ttft_seconds", "steps", "proposed", "tested", "accepted")}
        return {**figures, "decode_seconds": (result["tpot_seconds"] or 0) * (len(result["ids"]) - 1)}

    def rows(self, request):
        counts = ",".join(str(count) for count in request["rows"])
        report = json.loads(self._run(
            "rows", "--model", request["target"], "--rows", counts, "--context", str(request["cached"]), "--repeats",
            str(request["passes"]), "--threads", str(request["threads"]), "--json"))
        return {"seconds": [row["seconds_median"] for row in report["rows"]],
                "read_bandwidth": report["read_bandwidth_bytes_per_second"]}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    serve(Tandem(*sys.argv[1:]))
