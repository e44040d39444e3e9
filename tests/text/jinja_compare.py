#!/usr/bin/python3
"""Compares the template interpreter with jinja2, set up as Hugging Face's tokenizers do.

Every template is rendered by both with the same conversations: texts must be equal, or both must refuse. Templates come
from GGUF files, from *.jinja files, from the files of Python packages, and from a seeded generator of small ones. Prints
what differs and exits 1 when anything does. What ours alone refuses with an Error(model), saying so, is listed apart
with its reasons. Needs jinja2 (scripts/setup installs Debian's, which belongs to the system's Python).

example:
  pip download --no-deps trl --dest packages
  tests/text/jinja_compare.py --renderer build/release/tests/text/jinja_render --generate 3000 packages ~/.cache/tandem/models
"""

import argparse
import collections
import datetime
import json
import re
import subprocess
import sys
import warnings

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

import jinja_generator
import jinja_sources

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
    reasoned = {"role": "assistant", "content": "Yes", "reasoning_content": "hm\n", "thinking": "hm"}
    system, developer = {"role": "system", "content": " Be brief. "}, {"role": "developer", "content": "Be kind."}
    called = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    twice = {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "call00002"}]}
    as_text = {"role": "assistant", "tool_calls": [{**CALL, "function": {**CALL["function"], "arguments": '{"city": "Ulm"}'}}]}
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "{\"sky\": \"blue\"}"}
    parts = {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image"}, {"type": "text", "text": "here"}]}
    chats = [[user], [system, user], [developer, user], [user, answer, user], [system, user, think, user],
             [user, reasoned, user, reasoned], [parts], [parts, answer, parts], [user, called, result],
             [user, called, result, answer, user], [system, user, twice, result, {**result, "tool_call_id": "call00002"}],
             [user, as_text, result, user], [answer], [user, user], [system], [user, {"role": "robot", "content": "x"}], []]
    variables = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None}
    for messages in chats:
        yield {**variables, "messages": messages}
        yield {**variables, "messages": messages, "tools": TOOLS}
    for messages in ([system, user], [system, user, think, user], [user, called, result]):
        for extra in ({"enable_thinking": False}, {"add_generation_prompt": False},
                      {"documents": [{"title": "A", "text": "a <b>"}, {"title": "B", "text": "b"}]}):
            yield {**variables, "messages": messages, **extra}


def run(renderer, cases):
    """What our renderer says to each case."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    output = subprocess.run([renderer], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout
    answers = [json.loads(line) for line in output.splitlines()]
    if len(answers) != len(cases):
        sys.exit(f"{renderer}: expected {len(cases)} answers, got {len(answers)}")
    return answers


def theirs(env, compiled, case):
    """The text of jinja2 or its refusal; `compiled` holds the last template, as its conversations come in a row."""
    try:
        if case["template"] not in compiled:
            compiled.clear()
            compiled[case["template"]] = env.from_string(case["template"])
        return {"text": compiled[case["template"]].render(**case["variables"])}
    except Exception as error:  # whatever Python raises is a refusal
        return {"error": f"{type(error).__name__}: {error}"}


def outcome_of(mine, other):
    """How the two answers to one case compare, and why one of them is alone; capitals are failures."""
    if "text" in mine and "text" in other:
        return ("equal texts" if mine["text"] == other["text"] else "DIFFERENT TEXTS"), ""
    if "error" in mine and "error" in other:
        return "both refuse", ""
    if "text" in mine:
        return "RENDERED BY OURS ALONE", other["error"]
    reason = re.sub(r".*line \d+, column \d+: ", "", mine["error"], flags=re.DOTALL)
    return ("refused by ours as unsupported" if mine["kind"] == "model" else "REFUSED BY OURS ALONE"), reason


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="GGUF files, *.jinja files, packages (*.whl, *.tar.gz), folders of them")
    parser.add_argument("--renderer", required=True, help="the built program jinja_render")
    parser.add_argument("--generate", type=int, default=0, help="number of generated templates")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="how many failures to print")
    args = parser.parse_args()
    warnings.simplefilter("ignore", SyntaxWarning)  # of the Python that jinja2 makes
    cases, seen = [], set()
    for name, text in jinja_sources.templates_of(args.paths):
        if text not in seen:
            seen.add(text)
            cases += [{"name": name, "template": text, "variables": v} for v in conversations()]
    generator = jinja_generator.Generator(args.seed)
    cases += [{"name": "generated", **generator.case()} for _ in range(args.generate)]
    ours = run(args.renderer, cases)
    env, compiled = environment(), {}
    report, shown = collections.defaultdict(list), set()
    for case, mine in zip(cases, ours):
        other = theirs(env, compiled, case)
        outcome, reason = outcome_of(mine, other)
        report[outcome].append((case, reason))
        if outcome.isupper() and len(shown) < args.show and (case["name"], reason) not in shown:
            shown.add((case["name"], reason))
            print(f"{outcome}: {case['name']}\n  template: {case['template'][:300]!r}\n  jinja2: {str(other)[:300]}\n  ours:   {str(mine)[:300]}")
    for outcome, rows in sorted(report.items()):
        reasons = collections.defaultdict(lambda: [0, set()])
        for case, reason in rows:
            reasons[reason][0] += 1
            reasons[reason][1].add(case["name"])
        for reason, (renders, names) in sorted(reasons.items(), key=lambda item: -item[1][0]):
            if reason:
                print(f"{outcome}: {renders} renders, e.g. {min(names)}: {reason[:200]}")
    for kind, chosen in (("given", seen), ("generated", {c["template"] for c in cases if c["name"] == "generated"})):
        counts = collections.Counter(outcome for outcome, rows in report.items() for case, _ in rows if case["template"] in chosen)
        rendered = {case["template"] for case, _ in report["equal texts"]} & chosen
        print(f"{kind}: {len(chosen)} templates, {len(rendered)} with equal texts; {counts.total()} renders: "
              + ", ".join(f"{n} {o}" for o, n in counts.most_common()))
    return 1 if any(outcome.isupper() for outcome in report) else 0


if __name__ == "__main__":
    sys.exit(main())
