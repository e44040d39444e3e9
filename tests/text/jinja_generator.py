"""Small random templates for jinja_compare.py."""

import random

OPERATORS = ("+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or")
FILTERS = ("upper", "lower", "title", "capitalize", "trim", "length", "first", "last", "list", "string", "int", "float", "abs",
           "round", "reverse|list", "sort", "unique|list", "join", "sum", "min", "max", "tojson", "items|list", "dictsort",
           "default(1)", "indent", "select|list", "batch(2)|list", "e", "select", "items", "map('upper')|first",
           "reject|first", "unique|first", "reverse|first", "map('nothing')", "sort(reverse=true)", "join(', ')")
TAKING_ONE = ("join", "default", "replace", "map", "select", "attr", "batch")
TESTS = ("defined", "none", "string", "number", "mapping", "sequence", "iterable", "boolean", "integer", "float", "odd", "even",
         "true", "false", "lower", "upper")
TESTS_TAKING_ONE = ("eq", "ne", "lt", "ge", "in", "divisibleby", "equalto")
METHODS = ("strip()", "split()", "upper()", "items()|list", "keys()|list", "get(1)", "title()", "a", "lstrip()", "splitlines()",
           "capitalize()", "isspace()", "values()|list")
METHODS_TAKING_ONE = ("split", "startswith", "endswith", "count", "find", "rstrip", "join", "get", "partition", "rsplit")
SLICES = ("0", "-1", "1:", ":-1", "::2", "::-1", "5")
ATOMS = ("x", "s", "xs", "d", "n", "y", "1", "0", "-3", "2.5", "'ab'", "' a B '", "'a,b'", "none", "true", "false", "[1, 2, 3]",
         "['b', 'a']", "{'k': 1, 'j': 's'}", "(1, 'z')", "ms", "messages", "d.a", "d['b']", "xs[0]", "s[1:]", "xs[::-1]",
         "range(4)", "loop.index", "ns.v", "g", "'\\n'", "u", "'é'", "(xs|map('string'))", "(ms|selectattr('b'))")
LOOP = ("", "{{ loop.index }}{{ loop.last }}", "{{ loop.nextitem }}{{ loop.previtem }}", "{{ loop.length }}", "{{ loop.revindex }}",
        "{{ loop.changed(y) }}", "{{ loop.cycle(1, 'b') }}", "{% if loop.first %}{% continue %}{% endif %}",
        "{% if loop.index == 2 %}{% break %}{% endif %}", "{% set ns.v = y %}", "{% set ns.v = loop.index %}")


class Generator:
    """Templates of what both engines know, and now and then of what they must refuse."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_of(self, *choices):
        return self.random.choice(choices)

    def expression(self, depth=2):
        if depth == 0:
            return self.one_of(*ATOMS)
        inner, other, atom = self.expression(depth - 1), self.expression(depth - 1), self.one_of(*ATOMS)
        return self.one_of(
            inner, f"({inner} {self.one_of(*OPERATORS)} {other})", f"({inner})|{self.one_of(*FILTERS)}",
            f"({inner})|{self.one_of(*TAKING_ONE)}({other})",
            f"({inner})|{self.one_of('map(attribute=', 'selectattr(', 'join(attribute=', 'rejectattr(')}'a')|list",
            f"({inner})|map(attribute='a.b', default={atom})|list",
            f"({inner}) is {self.one_of('', 'not ')}{self.one_of(*TESTS)}",
            f"({inner}) is {self.one_of(*TESTS_TAKING_ONE)} {atom}", f"({inner}).{self.one_of(*METHODS)}",
            f"({inner}).{self.one_of(*METHODS_TAKING_ONE)}({other})",
            f"'{self.one_of('{}-{}', '{1}{0}', '{{{}}}', '{a}{}', '}')}'.format({inner}, {other}, a={atom})", f"({inner} if {other} else {atom})",
            f"[{inner}, {other}]", f"{{'a': {inner}}}", f"(not {inner})", f"({inner})[{self.one_of(*SLICES)}]")

    def tag(self, body):
        signs = ("", "", "", "-", "+")
        return f"{{%{self.one_of(*signs)} {body} {self.one_of(*signs)}%}}"

    def loop(self, inner):
        over = self.one_of("xs", "d", "ms", "s", "g", self.expression(1))
        condition = self.one_of("", "", " if y", " if y != 2", " if y != ns.v")
        return (self.tag(f"for y in {over}{condition}") + inner + self.one_of(*LOOP) + self.one_of(*LOOP)
                + self.one_of("", self.tag("else") + "none") + self.tag("endfor"))

    def statement(self, depth=2):
        tag = self.tag
        inner = self.template(depth - 1) if depth else "x "
        return self.one_of(
            f"{{{{{self.one_of('', '-')} {self.expression()} {self.one_of('', '-')}}}}}",
            self.one_of(" ", "\n", "text", "\n  ", " a\n\n", "\t"),
            tag(f"if {self.expression(1)}") + inner + self.one_of("", tag("else") + "no") + tag("endif"), self.loop(inner),
            tag(f"set {self.one_of('x', 'y', 'ns.v', 'g')} = {self.expression()}"),
            tag("set y") + inner + tag("endset"), "{# c " + self.one_of("", "-", "+") + "#}",
            tag("macro m(a, b=1)") + "{{ a }}" + inner + tag("endmacro") + f"{{{{ m({self.one_of(*ATOMS)}) }}}}",
            tag("filter upper") + inner + tag("endfilter"), tag("with y = 1") + inner + tag("endwith"),
            tag("generation") + inner + tag("endgeneration"), "{{ g|list }}")

    def template(self, depth=2):
        return "".join(self.statement(depth) for _ in range(self.random.randint(1, 3)))

    def case(self):
        variables = {"x": self.one_of(1, "q", None, True, 2.0), "s": self.one_of("h\u00e9 Llo", "", "a\nb"), "xs": [3, 1, 2],
                     "d": {"b": 2, "a": "v"}, "n": None, "ms": [{"a": 1}, {"a": "t", "b": [1]}],
                     "messages": [{"role": "user", "content": "Hi"}]}
        start = "{% set ns = namespace(v=0) %}{% set g = xs|" + self.one_of("map('string')", "select", "reverse") + " %}"
        return {"template": start + self.template(), "variables": variables}
