#!/usr/bin/python3
"""Holds answers of a tiny random model to random JSON schemas and has a validator (package jsonschema) judge them.

Each schema is answered several ways: drafts from repeats, from recycled rows, from a model of the same or another
vocabulary and from both, 1 to 7 tokens of them, every lossless rule, temperature 0, 0.7 and 1.5. Every whole answer
must be valid JSON for the schema, every answer that a limit cut must be the beginning of one, and where the rule
promises the text without drafts, it must be that. Prints one line of counts; exits 1 with schema, way and text on the
first mistake.
"""

import argparse
import collections
import json
import pathlib
import sys
import typing

SAMPLE = pathlib.Path(__file__).resolve().parent.parent / "sample"
sys.path.insert(0, str(SAMPLE))
from json_schema_compare import FORMATS, Tool, is_valid_text, jsonschema  # noqa: E402
from schema_generator import SchemaGenerator  # noqa: E402


class Mistake(Exception):
    pass


def judge(schema: dict, answer: dict, counts: collections.Counter) -> None:
    """Counts one answer; raises Mistake for one that its schema or its rule excludes."""
    validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
    text = answer["text"]
    if answer["stop_reason"] in ("grammar", "stop"):
        if not is_valid_text(text, validator):
            raise Mistake(f"not valid: {text}")
        counts["whole and valid"] += 1
    else:
        counts["cut"] += 1
    if not answer["fits"]:
        raise Mistake(f"not the beginning of a valid value: {text}")
    if answer["plain"] is not None:
        if answer["plain"] != text:
            raise Mistake(f"without drafts: {answer['plain']}\nwith drafts: {text}")
        counts["equal to plain"] += 1
    for name in ("proposed", "accepted", "forced"):
        counts[name] += answer[name]


def run(tool: Tool, seeds: typing.Iterable[int], ways: int) -> collections.Counter:
    counts = collections.Counter()
    for seed in seeds:
        schema = SchemaGenerator(seed).root
        reply = tool.ask(schema=json.dumps(schema), seed=seed, ways=ways)
        if "error" in reply:
            if "no finite value" not in reply["error"]:
                raise Mistake(f"seed {seed}: {json.dumps(schema)}\nrefused: {reply['error']}")
            counts["without a value"] += 1
            continue
        counts["schemas"] += 1
        for answer in reply["answers"]:
            try:
                judge(schema, answer, counts)
            except Mistake as mistake:
                raise Mistake(f"seed {seed}, {answer['way']}: {json.dumps(schema)}\n{mistake}") from None
    return counts


def main(arguments: typing.Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  tests/engine/schema_answers.py --schemas 200 \\\n"
               "      --tool build/release/tests/engine/schema_answers_tool")
    parser.add_argument("--tool", required=True, help="the program schema_answers_tool")
    parser.add_argument("--schemas", type=int, default=200, help="number of random schemas (default: 200)")
    parser.add_argument("--ways", type=int, default=9, help="answers for each schema (default: 9)")
    parser.add_argument("--seed", type=int, default=1, help="of the first schema; the next has the next (default: 1)")
    options = parser.parse_args(arguments)
    tool = Tool(options.tool)
    try:
        counts = run(tool, range(options.seed, options.seed + options.schemas), options.ways)
    except Mistake as mistake:
        print(f"schema_answers: {mistake}", file=sys.stderr)
        return 1
    names = ("schemas", "without a value", "whole and valid", "cut", "equal to plain", "proposed", "accepted", "forced")
    print("schema_answers: " + ", ".join(f"{counts[name]} {name}" for name in names))
    answers = counts["whole and valid"] + counts["cut"]
    if counts["schemas"] * 2 < options.schemas or counts["whole and valid"] < 0.9 * answers or not counts["forced"]:
        print("schema_answers: too little was judged", file=sys.stderr)
        return 1
    return tool.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
