#!/usr/bin/env python3
"""Prints the figures of two `tandem generate --report` files side by side: with drafting, and without."""

import argparse
import json
import sys
import typing


def row_values(report: dict) -> typing.Iterator[tuple]:
    """Label and text of each figure; a rate that was not timed is null in the report and shows as a dash."""
    yield "generated tokens", number(report["generated_tokens"])
    yield "stop reason", report["stop_reason"]
    yield "time to first token", number(report["ttft_seconds"], 1e3, " ms")
    yield "time per token", number(report["tpot_seconds"], 1e3, " ms", 1)
    yield "decoding", number(report["decode_tokens_per_second"], 1, " tokens/s", 1)
    yield "steps", number(report["steps"])
    steps = report["steps"]
    yield "tokens per step", number((report["generated_tokens"] - 1) / steps if steps else None, digits=2)
    yield "drafted, tested, accepted", " ".join(number(report[key]) for key in ("proposed", "tested", "accepted"))
    yield "acceptance", number(report["accepted"] / report["tested"] if report["tested"] else None, 100, " %")
    for name, seconds in report["seconds"].items():
        yield f"seconds: {name}", number(seconds, digits=2)


def number(value: typing.Optional[float], scale: float = 1, unit: str = "", digits: int = 0) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}{unit}"


def verdict(draft: dict, plain: dict) -> typing.Iterator[str]:
    fast, slow = draft["decode_tokens_per_second"], plain["decode_tokens_per_second"]
    if fast and slow:
        yield f"decoding with drafts runs at {fast / slow:.2f}x the plain speed"
    if draft["ids"] == plain["ids"]:
        yield f"the texts are the same, all {len(draft['ids'])} tokens"
    else:
        same = next((i for i, (a, b) in enumerate(zip(draft["ids"], plain["ids"])) if a != b),
                    min(len(draft["ids"]), len(plain["ids"])))
        yield (f"the texts differ from token {same} on: at temperature 0 or with verify.rule coupled that is a fault; "
               "else drafting keeps the distribution, not the draw")


def main(arguments: typing.Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  scripts/compare_reports.py draft.json plain.json")
    parser.add_argument("draft", help="report of the run with drafting")
    parser.add_argument("plain", help="report of the run with draft.kind none")
    options = parser.parse_args(arguments)
    try:
        reports = []
        for path in (options.draft, options.plain):
            with open(path, encoding="utf-8") as file:
                reports.append(json.load(file))
        print(f"{'':28}{'with drafts':>20}{'without':>20}")
        for (label, draft), (_, plain) in zip(row_values(reports[0]), row_values(reports[1])):
            print(f"{label:28}{draft:>20}{plain:>20}")
        for line in verdict(*reports):
            print(line)
    except (OSError, ValueError) as error:
        print(f"compare_reports: {error}", file=sys.stderr)
        return 1
    except KeyError as error:
        print(f"compare_reports: a report has no {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
