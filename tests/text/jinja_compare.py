#!/usr/bin/env python3
"""Compares the template interpreter with jinja2, set up as Hugging Face's tokenizers do.

Every template is rendered by both with the same conversations: texts must be equal, or both must refuse. Templates come
from GGUF files, from files and folders with *.jinja, and from a seeded generator of small ones. Prints what differs and
exits 1 when anything does. What ours alone refuses with an Error(model), saying so, is counted apart.

example:
  tests/text/jinja_compare.py --renderer build/release/tests/text/jinja_render --generate 3000 ~/.cache/tandem/models
"""

import argparse
import collections
import datetime
import json
import pathlib
import random
import struct
import subprocess
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

TIME = datetime.datetime(2024, 2, 3, 4, 5, 6)
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Says the weather <now>.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "a city"}, "days": {
        "type": "integer", "enum": [1, 2]}}, "required": ["city"]}, "return": {"type": "string"}}}]
CALL = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Köln", "days": 2}}}


class Generation(jinja2.ext.Extension):
    """Hugging Face's generation block: renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    """The sandbox of transformers' chat templates."""
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = TIME.strftime
    return env


def conversations():
    """Variables that chat templates are given."""
    user, answer = {"role": "user", "content": "Hi <|im_end|> \u00e9\n"}, {"role": "assistant", "content": "Hello.  "}
    think = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes"}
    system = {"role": "system", "content": " Be brief. "}
    called = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "{\"sky\": \"blue\"}"}
    parts = {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "text", "text": "here"}]}
    chats = [[user], [system, user], [user, answer, user], [system, user, think, user], [parts], [user, called, result],
             [user, called, result, answer, user], [answer], [user, user], [system]]
    for messages in chats:
        for extra in ({}, {"tools": TOOLS}, {"enable_thinking": False}, {"add_generation_prompt": False}):
            variables = {"messages": messages, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
            variables.update({"tools": None, "documents": None} if "tools" not in extra else {"documents": None})
            yield {**variables, **extra}


def gguf_template(path):
    """tokenizer.chat_template of a GGUF file, or None."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    with open(path, "rb") as file:
        def number(form):
            return struct.unpack("<" + form, file.read(struct.calcsize(form)))[0]

        def text():
            return file.read(number("Q"))

        def skip(kind):
            if kind == 8:
                text()
            elif kind == 9:
                item, count = number("I"), number("Q")
                for _ in range(count if item in (8, 9) else 0):
                    skip(item)
                if item not in (8, 9):
                    file.seek(sizes[item] * count, 1)
            else:
                file.seek(sizes[kind], 1)

        file.seek(16)
        for _ in range(number("Q")):
            key, kind = text(), number("I")
            if key == b"tokenizer.chat_template":
                return text().decode()
            skip(kind)
    return None


class Generator:
    """Small random templates of what both engines know, and now and then of what they must refuse."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_of(self, *choices):
        return self.random.choice(choices)

    def atom(self):
        return self.one_of("x", "s", "xs", "d", "n", "y", "1", "0", "-3", "2.5", "'ab'", "' a B '", "'a,b'", "none", "true",
                           "false", "[1, 2, 3]", "['b', 'a']", "{'k': 1, 'j': 's'}", "(1, 'z')", "ms", "messages", "d.a",
                           "d['b']", "xs[0]", "s[1:]", "xs[::-1]", "range(4)", "loop.index", "ns.v", "'\\n'", "u", "'é'")

    def expression(self, depth=2):
        if depth == 0:
            return self.atom()
        inner, other = self.expression(depth - 1), self.expression(depth - 1)
        return self.one_of(
            inner, f"({inner} {self.one_of('+', '-', '*', '/', '//', '%', '~', '==', '!=', '<', '>=', 'in', 'not in', 'and', 'or')} {other})",
            f"({inner})|{self.one_of('upper', 'lower', 'title', 'capitalize', 'trim', 'length', 'first', 'last', 'list', 'string', 'int', 'float', 'abs', 'round', 'reverse|list', 'sort', 'unique|list', 'join', 'sum', 'min', 'max', 'tojson', 'items|list', 'dictsort', 'default(1)', 'indent', 'select|list', 'batch(2)|list', 'e')}",
            f"({inner})|{self.one_of('join', 'default', 'replace', 'map', 'select', 'attr')}({other})",
            f"({inner})|{self.one_of('map(attribute=', 'selectattr(', 'join(attribute=')}'a')|list",
            f"({inner}) is {self.one_of('', 'not ')}{self.one_of('defined', 'none', 'string', 'number', 'mapping', 'sequence', 'iterable', 'boolean', 'integer', 'float', 'odd', 'even', 'true', 'false', 'lower', 'upper')}",
            f"({inner}) is {self.one_of('eq', 'ne', 'lt', 'ge', 'in', 'divisibleby', 'equalto')} {self.atom()}",
            f"({inner}).{self.one_of('strip()', 'split()', 'upper()', 'items()|list', 'keys()|list', 'get(1)', 'title()', 'a', 'lstrip()', 'splitlines()', 'capitalize()', 'isspace()', 'values()|list')}",
            f"({inner}).{self.one_of('split', 'startswith', 'endswith', 'count', 'find', 'rstrip', 'join', 'get', 'partition', 'rsplit')}({other})",
            f"({inner} if {other} else {self.atom()})", f"[{inner}, {other}]", f"{{'a': {inner}}}", f"(not {inner})",
            f"({inner})[{self.one_of('0', '-1', '1:', ':-1', '::2', '::-1', '5')}]")

    def statement(self, depth=2):
        sign = lambda: self.one_of("", "", "", "-", "+")  # noqa: E731
        tag = lambda body: f"{{%{sign()} {body} {sign()}%}}"  # noqa: E731
        inner = self.template(depth - 1) if depth else "x "
        return self.one_of(
            f"{{{{{self.one_of('', '-')} {self.expression()} {self.one_of('', '-')}}}}}",
            self.one_of(" ", "\n", "text", "\n  ", " a\n\n", "\t"),
            tag(f"if {self.expression(1)}") + inner + self.one_of("", tag("else") + "no") + tag("endif"),
            tag(f"for y in {self.one_of('xs', 'd', 'ms', 's', self.expression(1))}{self.one_of('', ' if y', ' if y != 2')}") + inner
            + self.one_of("", "{{ loop.index }}{{ loop.last }}", tag("if loop.first") + tag("continue") + tag("endif"))
            + self.one_of("", tag("else") + "none") + tag("endfor"),
            tag(f"set {self.one_of('x', 'y', 'ns.v')} = {self.expression()}"),
            tag("set y") + inner + tag("endset"), "{# c " + self.one_of("", "-", "+") + "#}",
            tag("macro m(a, b=1)") + "{{ a }}" + inner + tag("endmacro") + f"{{{{ m({self.atom()}) }}}}",
            tag("filter upper") + inner + tag("endfilter"), tag("with y = 1") + inner + tag("endwith"),
            tag("generation") + inner + tag("endgeneration"))

    def template(self, depth=2):
        return "".join(self.statement(depth) for _ in range(self.random.randint(1, 3)))

    def case(self):
        variables = {"x": self.one_of(1, "q", None, True, 2.0), "s": self.one_of("h\u00e9 Llo", "", "a\nb"), "xs": [3, 1, 2],
                     "d": {"b": 2, "a": "v"}, "n": None, "ms": [{"a": 1}, {"a": "t", "b": [1]}],
                     "messages": [{"role": "user", "content": "Hi"}]}
        return {"template": "{% set ns = namespace(v=0) %}" + self.template(), "variables": variables}


def theirs(env, compiled, case):
    """The text of jinja2 or its refusal; `compiled` holds the last template, as its conversations come in a row."""
    try:
        if case["template"] not in compiled:
            compiled.clear()
            compiled[case["template"]] = env.from_string(case["template"])
        return {"text": compiled[case["template"]].render(**case["variables"])}
    except Exception as error:  # whatever Python raises is a refusal
        return {"error": f"{type(error).__name__}: {error}"}


def templates_of(paths):
    for path in paths:
        if path.is_dir():
            yield from templates_of(sorted(p for p in path.rglob("*") if p.suffix in (".gguf", ".jinja")))
        elif path.suffix == ".gguf":
            text = gguf_template(path)
            if text:
                yield path.name, text
        else:
            yield path.name, path.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=pathlib.Path, help="GGUF files, *.jinja files, folders of them")
    parser.add_argument("--renderer", required=True, help="the built program jinja_render")
    parser.add_argument("--generate", type=int, default=0, help="number of generated templates")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="how many differences to print")
    args = parser.parse_args()
    cases = [{"name": name, "template": text, "variables": v} for name, text in templates_of(args.paths) for v in conversations()]
    generator = Generator(args.seed)
    cases += [{"name": "generated", **generator.case()} for _ in range(args.generate)]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    ours = [json.loads(line) for line in subprocess.run(
        [args.renderer], input=lines.encode(), capture_output=True, check=True).stdout.splitlines()]
    if len(ours) != len(cases):
        sys.exit(f"{args.renderer}: expected {len(cases)} answers, got {len(ours)}")
    env, compiled, counts, shown, refused = environment(), {}, collections.Counter(), 0, collections.Counter()
    for case, mine in zip(cases, ours):
        other = theirs(env, compiled, case)
        if "text" in mine and "text" in other:
            outcome = "equal texts" if mine["text"] == other["text"] else "DIFFERENT TEXTS"
        elif "text" in other:
            outcome = "refused by ours as unsupported" if mine["kind"] == "model" else "REFUSED BY OURS ALONE"
        else:
            outcome = "both refuse" if "error" in mine else "REFUSED BY JINJA2 ALONE"
        counts[outcome] += 1
        if outcome.startswith("refused"):
            refused[(case["name"], mine["error"])] += 1
        if outcome.isupper() and shown < args.show:
            shown += 1
            print(f"{outcome}: {case['name']}\n  template: {case['template'][:300]!r}\n  jinja2: {str(other)[:300]}\n  ours:   {str(mine)[:300]}")
    for (name, error), times in refused.most_common(args.show):
        print(f"refused {times} times: {name}: {error}")
    print(f"{len(set(c['template'] for c in cases))} templates, {len(cases)} renders: " + ", ".join(f"{n} {o}" for o, n in counts.most_common()))
    return 1 if any(outcome.isupper() for outcome in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
