"""Where jinja_compare.py finds chat templates: GGUF files, *.jinja, and the files of Python packages."""

import ast
import json
import pathlib
import struct
import sys
import tarfile
import zipfile

SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # by GGUF type
TEXT, ARRAY = 8, 9
PACKAGES = (".whl", ".tar.gz")
TEMPLATES, OTHERS = (".jinja", ".jinja2"), (".json", ".py")  # what a template is the whole or a string of


def gguf_template(path):
    """tokenizer.chat_template of a GGUF file, or None."""
    with open(path, "rb") as file:
        def number(form):
            return struct.unpack("<" + form, file.read(struct.calcsize(form)))[0]

        def text():
            return file.read(number("Q"))

        def skip(kind):
            if kind == TEXT:
                text()
            elif kind == ARRAY:
                item, count = number("I"), number("Q")
                if item in SCALAR_BYTES:
                    file.seek(SCALAR_BYTES[item] * count, 1)
                else:
                    for _ in range(count):
                        skip(item)
            else:
                file.seek(SCALAR_BYTES[kind], 1)

        file.seek(16)
        for _ in range(number("Q")):
            key, kind = text(), number("I")
            if key == b"tokenizer.chat_template":
                return text().decode()
            skip(kind)
    return None


def strings_of(name, text):
    """The strings of a JSON or Python file that may be templates, with where they are."""
    if name.endswith(".json"):
        def walk(value, key):
            if isinstance(value, dict):
                for inner, held in value.items():
                    yield from walk(held, inner)
            elif isinstance(value, list):
                for held in value:
                    yield from walk(held, key)
            elif isinstance(value, str) and "template" in key:
                yield key, value

        yield from walk(json.loads(text), "")
    else:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield str(node.lineno), node.value


def templates_in(name, data):
    """The chat templates in one file of a package."""
    if b"{%" not in data and b"{{" not in data:
        return
    try:
        text = data.decode()
        if name.endswith(TEMPLATES):
            yield name, text
            return
        for place, value in strings_of(name, text):
            if "{%" in value and "messages" in value:
                yield f"{name}:{place}", value
    except (SyntaxError, ValueError) as error:
        print(f"not read: {name}: {error}", file=sys.stderr)


def package_files(path):
    """(name, bytes) of the files of a package that may hold templates."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as package:
            for name in package.namelist():
                if name.endswith(TEMPLATES + OTHERS):
                    yield name, package.read(name)
    else:
        with tarfile.open(path) as package:
            for member in package:
                if member.isfile() and member.name.endswith(TEMPLATES + OTHERS):
                    yield member.name, package.extractfile(member).read()


def templates_of(paths):
    """(name, text) of every template at these paths; folders are searched."""
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            yield from templates_of(sorted(p for p in path.rglob("*") if p.name.endswith((".gguf", ".jinja", *PACKAGES))))
        elif path.name.endswith(PACKAGES):
            for name, data in package_files(path):
                for where, text in templates_in(name, data):
                    yield f"{path.name}: {where}", text
        elif path.suffix == ".gguf":
            text = gguf_template(path)
            if text:
                yield path.name, text
        else:
            yield path.name, path.read_text()
