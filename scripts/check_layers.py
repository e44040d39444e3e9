#!/usr/bin/env python3
"""Checks that every #include keeps to the layers: each folder may include only those listed for it.

Prints one line per broken arrow and exits 1 when there is any. Quoted includes are paths from the repository root;
the standard library and packages are included with angle brackets.
"""

import argparse
import pathlib
import re
import sys
import typing

SOURCE_ENDINGS = {".h", ".hpp", ".inc", ".cpp", ".cc", ".cu", ".cuh"}
SCANNED = ("src", "kernels", "draft", "verify", "bench", "tests")

LIBRARY = {"src/base", "src/text", "src/sample", "kernels", "src/model", "src/arch", "draft", "verify", "src/engine"}
ALLOWED = {
    "src/base": set(),
    "src/text": {"src/base"},
    "src/sample": {"src/base"},
    "src/sample/grammar": {"src/base", "src/sample", "src/text"},
    "kernels": {"src/base"},
    "src/model": {"src/base", "kernels"},
    "src/arch": {"src/base", "kernels", "src/model"},
    "draft": {"src/base", "src/text", "src/sample", "kernels", "src/model", "src/arch"},
    "verify": {"src/base", "src/sample"},
    "src/engine": LIBRARY,
    "src/cli": LIBRARY,
    "bench": LIBRARY,
    "tests": LIBRARY | {"src/cli", "bench"},
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]*)"|<([^>\n]*)>|(\S[^\n]*))', re.MULTILINE)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def folder_of(path: str) -> typing.Optional[str]:
    """The layer that a path from the repository root lies in, or None when it lies in none."""
    parts = path.split("/")
    if ".." in parts or "." in parts or len(parts) < 2:
        return None
    layer = "/".join(parts[:2]) if parts[0] == "src" else parts[0]
    return layer if layer in ALLOWED else None


def rule_of(path: str) -> typing.Optional[str]:
    """The row of ALLOWED that holds for a file; the grammar alone in src/sample may read the vocabulary."""
    return "src/sample/grammar" if path.startswith("src/sample/grammar") else folder_of(path)


def includes(text: str) -> typing.Iterator[tuple]:
    """Line number, quoted path, path in angle brackets and anything else, of each #include outside block comments."""
    text = BLOCK_COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(0)) + 1, match.group(1), match.group(2), match.group(3)


def faults_of(path: str, text: str) -> typing.Iterator[str]:
    """One message for each include of this file that breaks an arrow or names no known folder."""
    rule = rule_of(path)
    if rule is None:
        yield f"{path}:1: lies in no known layer; the layers are {listed(set(ALLOWED) - {'src/sample/grammar'})}"
        return
    layer = folder_of(path)
    for line, quoted, angled, other in includes(text):
        if other is not None:
            yield f'{path}:{line}: #include {other}: expected a path in quotes or angle brackets'
            continue
        target = quoted if quoted is not None else angled
        into = folder_of(target)
        if into is None:
            # <cuda/std/...> and the like are packages: only our own top folders must not appear unknown in brackets.
            if quoted is not None or target.split("/")[0] in SCANNED:
                yield (f'{path}:{line}: includes "{target}", which is in no known folder; project headers are quoted '
                       "from the repository root, all others go in angle brackets")
        elif into != layer and into not in ALLOWED[rule]:
            yield f'{path}:{line}: {layer} -> {into} ("{target}"): {rule} may include only {listed(ALLOWED[rule])}'


def listed(layers: typing.Iterable[str]) -> str:
    return ", ".join(sorted(layers)) or "itself"


def main(arguments: typing.Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example:\n  scripts/check_layers.py")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="the repository to check (default: the one this script lies in)")
    root = parser.parse_args(arguments).root
    files = sorted(path for top in SCANNED for path in (root / top).rglob("*") if path.suffix in SOURCE_ENDINGS)
    if not files:
        print(f"check_layers: {root}: no source files under {', '.join(SCANNED)}", file=sys.stderr)
        return 1
    faults = [fault for path in files
              for fault in faults_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"layers: {len(files)} files, {len(faults)} broken includes")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
