#!/usr/bin/python3
"""Compares the grammars of random JSON schemas with a validator (Python package jsonschema, python3-jsonschema).

For each schema: every valid value that a generator makes must be matched by the grammar in each of its spellings,
every text drawn from the grammar must be valid JSON for the schema, and no changed value or text that the validator or
the JSON reader refuses may be matched. Prints one line of counts; exits 1 with the schema and the text on the first
difference.
"""

import argparse
import datetime
import ipaddress
import json
import pathlib
import random
import re
import subprocess
import sys
import typing
import uuid

try:
    import jsonschema
except ImportError:
    sys.exit("json_schema_compare.py: needs the Python package jsonschema: scripts/setup installs python3-jsonschema")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from schema_generator import SchemaGenerator, ValueGenerator, mutated  # noqa: E402

FORMATS = jsonschema.FormatChecker(formats=())
URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:[!$&'()*+,;=:@/?#\[\]a-zA-Z0-9._~%-]*")


def strict(name: str, pattern: str, *readers: typing.Callable) -> None:
    """A format that every reader takes without ValueError, and that the pattern matches whole."""
    def check(value: typing.Any) -> bool:
        if not isinstance(value, str):
            return True
        if not re.fullmatch(pattern, value):
            raise ValueError(value)
        for reader in readers:
            reader(value)
        return True
    FORMATS.checks(name, raises=ValueError)(check)


def read_time(text: str) -> None:
    datetime.time.fromisoformat(re.sub(r"\.\d+", "", text).replace("Z", "+00:00"))


def read_date_time(text: str) -> None:
    datetime.date.fromisoformat(text[:10])
    read_time(text[11:])


TIME = r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
strict("date", r"\d{4}-\d\d-\d\d", datetime.date.fromisoformat)
strict("time", TIME, read_time)
strict("date-time", r"\d{4}-\d\d-\d\dT" + TIME, read_date_time)
strict("uuid", r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", uuid.UUID)
strict("ipv4", r"[0-9.]+", ipaddress.IPv4Address)
strict("ipv6", r"[0-9a-fA-F:.]+", ipaddress.IPv6Address)
strict("email", r"[^@.\s]+(\.[^@.\s]+)*@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
strict("uri", URI.pattern)


class Tool:
    """The schema compiler as a process that answers line by line."""

    def __init__(self, path: str):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request) -> dict:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> int:
        self.process.stdin.close()
        return self.process.wait()


def spellings(value: typing.Any) -> list:
    """The texts that common writers make of a value."""
    return sorted({json.dumps(value, **style) for style in (
        {"separators": (",", ":")}, {"ensure_ascii": False}, {"indent": 2}, {"indent": 4, "ensure_ascii": False})})


def is_valid_text(text: str, validator) -> bool:
    try:
        return validator.is_valid(json.loads(text))
    except ValueError:
        return False


def changed_text(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(["", rng.choice('"\\,:{}[]0e.- \n'), text[at] * 2]) + text[at + 1:]


class Difference(Exception):
    pass


class Comparison:
    """Counts what was compared; raises Difference on the first disagreement."""

    def __init__(self, tool: Tool):
        self.tool = tool
        self.counts = dict.fromkeys(["schemas", "without a value", "valid texts", "drawn texts", "invalid texts"], 0)

    def schema(self, seed: int) -> None:
        rng = random.Random(seed)
        schema = SchemaGenerator(seed).root
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
        values = [value for value in (ValueGenerator(schema, rng).value(schema) for _ in range(12))
                  if validator.is_valid(value)]
        valid = [text for value in values for text in spellings(value)]
        changed = [text for value in values for _ in range(6)
                   for text in spellings(mutated(value, rng))[:1] if not is_valid_text(text, validator)]
        changed += [text for text in (changed_text(rng.choice(valid), rng) for _ in range(20 if valid else 0))
                    if not is_valid_text(text, validator)]
        answer = self.tool.ask(schema=json.dumps(schema), texts=valid + changed, samples=12, seed=seed)
        if "error" in answer:
            if values or "no finite value" not in answer["error"]:
                raise Difference(f"seed {seed}: {json.dumps(schema)}\nrefused: {answer['error']}\nvalues: {valid[:1]}")
            self.counts["without a value"] += 1
            return
        for text, matched in zip(valid + changed, answer["matches"]):
            if matched != (text in valid):
                verb = "matches" if matched else "does not match"
                raise Difference(f"seed {seed}: {json.dumps(schema)}\n{verb}: {text}")
        for text in answer["samples"]:
            if not is_valid_text(text, validator):
                raise Difference(f"seed {seed}: {json.dumps(schema)}\ndraws what is not valid: {text}")
        self.counts["schemas"] += 1
        self.counts["valid texts"] += len(valid)
        self.counts["drawn texts"] += len(answer["samples"])
        self.counts["invalid texts"] += len(changed)


def main(arguments: typing.Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  tests/sample/json_schema_compare.py --schemas 200 \\\n"
               "      --tool build/release/tests/sample/json_schema_tool")
    parser.add_argument("--tool", required=True, help="the program json_schema_tool")
    parser.add_argument("--schemas", type=int, default=200, help="number of random schemas (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the first schema; the next has the next (default: 1)")
    options = parser.parse_args(arguments)
    tool = Tool(options.tool)
    comparison = Comparison(tool)
    try:
        for seed in range(options.seed, options.seed + options.schemas):
            comparison.schema(seed)
    except Difference as difference:
        print(f"json_schema_compare: {difference}", file=sys.stderr)
        return 1
    counts = comparison.counts
    print("json_schema_compare: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    if counts["schemas"] * 2 < options.schemas or counts["valid texts"] < 4 * options.schemas:
        print("json_schema_compare: too little was compared", file=sys.stderr)
        return 1
    return tool.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
