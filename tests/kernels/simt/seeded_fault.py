#!/usr/bin/env python3
"""Plants a fault in a copy of a kernel, and checks that the emulation's suite finds it.

faults.json lists the faults: a kernel, the file to change, the text to replace (which must be there exactly once), its
replacement, and the tests that must find it. The product has no switch for them: `make` writes the changed file into
the build folder, CMake compiles it in place of the original into a suite of its own, and `check` runs that.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import typing


def fault_named(name: str, listing: pathlib.Path) -> dict:
    faults = [fault for fault in json.loads(listing.read_text())["faults"] if fault["name"] == name]
    if len(faults) != 1:
        raise SystemExit(f"seeded_fault: {listing}: expected one fault named {name}, got {len(faults)}")
    return faults[0]


def make(fault: dict, root: pathlib.Path, out: pathlib.Path) -> None:
    """Writes the changed file to the same place under `out`, and the source to compile beside it."""
    text = (root / fault["file"]).read_text()
    found = text.count(fault["find"])
    if found != 1:
        raise SystemExit(f"seeded_fault: {fault['name']}: expected {fault['find']!r} once in {fault['file']}, got {found}")
    changed = out / fault["file"]
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.write_text(text.replace(fault["find"], fault["replace"]))
    source = fault.get("source", fault["file"])
    if source != fault["file"]:  # the fault lies in a header: the include path finds it before the original
        (out / source).write_text((root / source).read_text())


def check(fault: dict, suite: pathlib.Path) -> int:
    """0 when the named tests fail, and fail as tests: not because there are none."""
    run = subprocess.run([suite, f"--gtest_filter={fault['tests']}", "--gtest_brief=1"], capture_output=True, text=True,
                         errors="replace", timeout=300, check=False)
    output = run.stdout + run.stderr
    if run.returncode == 0:
        print(f"{fault['name']}: not caught by {fault['tests']}\n{output[-2000:]}", file=sys.stderr)
        return 1
    if "[  FAILED  ]" not in output and "AddressSanitizer" not in output and run.returncode > 0:
        print(f"{fault['name']}: ended with {run.returncode} but no test failed\n{output[-2000:]}", file=sys.stderr)
        return 1
    print(f"{fault['name']}: caught by {fault['tests']}")
    return 0


def main(arguments: typing.Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  seeded_fault.py make select_no_barrier --root . --out build/fault")
    parser.add_argument("--faults", type=pathlib.Path, default=pathlib.Path(__file__).with_name("faults.json"),
                        help="the list (default: faults.json beside this script)")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="write the changed source")
    making.add_argument("name", help="of the fault")
    making.add_argument("--root", type=pathlib.Path, required=True, help="the repository")
    making.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    checking = commands.add_parser("check", help="run a suite built with the fault; exit 1 when it passes")
    checking.add_argument("name", help="of the fault")
    checking.add_argument("suite", type=pathlib.Path, help="the test program")
    options = parser.parse_args(arguments)
    fault = fault_named(options.name, options.faults)
    if options.command == "check":
        return check(fault, options.suite)
    make(fault, options.root, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
