// Values here are what jinja2 3.1 prints with trim_blocks and lstrip_blocks; jinja_compare.py compares many more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/text/jinja/json_text.h"
#include "src/text/jinja/template.h"

namespace tandem::jinja {
namespace {

using testing::HasSubstr;

std::tm a_saturday() {
  std::tm time{};
  time.tm_year = 124, time.tm_mon = 1, time.tm_mday = 3, time.tm_wday = 6, time.tm_yday = 33;
  return time;
}

std::string render(const std::string& source,
                   const nlohmann::ordered_json& variables = nlohmann::ordered_json::object(),
                   const Limits& limits = {}) {
  const auto make = [&](Runtime& runtime) {
    Variables all;
    for (const auto& [name, value] : variables.items()) all.emplace_back(name, from_json(runtime, value));
    return all;
  };
  return Template(source, "t").render(make, a_saturday, limits).bytes();
}

std::string refusal(const std::string& source, ErrorKind kind, const Limits& limits = {}) {
  try {
    render(source, nlohmann::ordered_json::object(), limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "rendered: " << source;
  return {};
}

struct Row {
  std::string source, text;
};

void expect_rows(const std::vector<Row>& rows) {
  const nlohmann::ordered_json variables = {{"xs", {1, 2, 3}}, {"d", {{"b", 1}, {"a", "x"}}}, {"s", "h\u00e9 llo"}};
  for (const auto& [source, text] : rows) EXPECT_EQ(render(source, variables), text) << source;
}

TEST(Jinja, Whitespace) {
  expect_rows({{"a\n  {% if true %}\nb\n  {% endif %}\nc\n", "a\nb\nc"},
               {"a {%- if true -%} b {%- endif -%} c", "abc"},
               {"  {%+ if true %}x{% endif +%}\ny", "  x\ny"},
               {"a\n  {# c #}\nb {{- 1 -}} \n c", "a\nb1c"},
               {"{% raw %}\n{{ x }}{% endraw %}\nz", "\n{{ x }}z"},
               {"x\r\ny\rz\n\n", "x\ny\nz\n"}});
}

TEST(Jinja, Statements) {
  expect_rows(
      {{"{% for x in xs if x != 2 %}{{ loop.index }}{{ x }}{{ ',' if not loop.last }}{% else %}-{% endfor %}", "11,23"},
       {"{% for x in [] %}{% else %}none{% endfor %}", "none"},
       {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "b=1;a=x;"},
       {"{% set n = namespace(i=0) %}{% for x in xs %}{% set n.i = n.i + x %}{% endfor %}{{ n.i }}", "6"},
       {"{% set y = 0 %}{% for x in xs %}{% set y = x %}{% endfor %}{{ y }}", "0"},
       {"{% for x in xs %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "13"},
       {"{% for x in xs %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"},
       {"{% for x in xs %}{{ loop.previtem }}{{ loop.cycle('a', 'b') }}{{ loop.nextitem }} {% endfor %}", "a2 1b3 2a "},
       {"{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(b=3, a=4) }}", "1243"},
       {"{% macro m() %}[{{ caller(1) }}]{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}", "[1]"},
       {"{% set t | upper %}a{{ 1 }}{% endset %}{{ t }}", "A1"},
       {"{% filter upper | replace('B', 'c') %}ab{% endfilter %}", "Ac"},
       {"{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "3"},
       {"{% generation %}x{% endgeneration %}", "x"},
       {"{{ strftime_now('%d %b %Y') }}", "03 Feb 2024"}});
}

TEST(Jinja, Expressions) {
  expect_rows(
      {{"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ -2 ** 2 }}", "3 -4 2 3.5 8 4"},
       {"{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ 'a' in 'abc' }} {{ 2 not in xs }}", "True True True False"},
       {"{{ 'a' ~ 1 ~ none ~ true }}{{ nothing }}", "a1NoneTrue"},
       {"{{ s[1] }}{{ s[::-1] }}{{ s[-3:] }}{{ xs[1:] }}{{ xs[::-1] }}", "\u00e9oll \u00e9hllo[2, 3][3, 2, 1]"},
       {"{{ [1, 'a', none, 1.5, true, {'k': ()}] }}", "[1, 'a', None, 1.5, True, {'k': ()}]"},
       {"{{ 1e16 }} {{ 1.0 }} {{ 0.0001 }} {{ 1e-5 }} {{ 123456789.125 }}", "1e+16 1.0 0.0001 1e-05 123456789.125"},
       {"{{ [\"it's\", 'a\\nb', 'q\"'] }}", "[\"it's\", 'a\\nb', 'q\"']"},
       {"{{ (1 if false) is defined }}{{ d.c is defined }}{{ d['a'] }}{{ d.items is callable }}", "FalseFalsexTrue"},
       {"{{ '\\x41\\u00e9\\q\\'' }}", "A\u00e9\\q'"},
       {"{{ 0 or 'x' }}{{ 1 and 2 }}{{ not '' }}{{ xs and 'y' }}", "x2Truey"}});
}

TEST(Jinja, FiltersTestsAndMethods) {
  expect_rows(
      {{"{{ ' a '|trim }}{{ 'ab-cd e'|title }}{{ 'aBC'|capitalize }}{{ s|length }}", "aAb-Cd EAbc6"},
       {"{{ d|tojson }}{{ d|tojson(indent=2) }}", "{\"b\": 1, \"a\": \"x\"}{\n  \"b\": 1,\n  \"a\": \"x\"\n}"},
       {"{{ '<\u00e9\\n>'|tojson }}{{ '\u00e9'|tojson(ensure_ascii=true) }}", "\"<\u00e9\\n>\"\"\\u00e9\""},
       {"{{ xs|map('string')|join('+') }}{{ xs|select('odd')|list }}{{ xs|sum }}{{ xs|max }}", "1+2+3[1, 3]63"},
       {"{{ [{'r': 1}, {'r': 2}]|selectattr('r', 'equalto', 2)|map(attribute='r')|list }}", "[2]"},
       {"{% if xs|select('equalto', 9) %}generator{% endif %}", "generator"},
       {"{{ ['b', 'A', 'a']|sort }}{{ ['b', 'A', 'a']|unique|list }}{{ d|dictsort }}",
        "['A', 'a', 'b']['b', 'A'][('a', 'x'), ('b', 1)]"},
       {"{{ 'a\\n\\nb'|indent(2) }}|{{ 'x'|default('y') }}{{ zz|d('y') }}{{ ''|d('z', true) }}", "a\n\n  b|xyz"},
       {"{{ '3.7'|int }}{{ 2.5|round }}{{ 2.55|round(1) }}{{ '1_0'|int }}{{ 'x'|int(7) }}", "32.02.5107"},
       {"{{ 'a,b,,c'.split(',') }}{{ ' a b  c '.split() }}{{ 'a b c'.rsplit(' ', 1) }}",
        "['a', 'b', '', 'c']['a', 'b', 'c']['a b', 'c']"},
       {"{{ ' a  b  c '.split(none, 1) }}{{ ' a  b  c '.rsplit(none, 1) }}{{ ' a '.split(none, 1) }}",
        "['a', 'b  c '][' a  b', 'c']['a']"},
       {"{{ 'xxaxx'.strip('x') }}{{ 'abc'.startswith(('x', 'a')) }}{{ 'aa'.replace('a', 'b', 1) }}", "aTrueba"},
       {"{{ '<{}{{{}}}>'.format('a', 1) }}{{ '{1}{0}{x}'.format(none, [2], x=zz) }}", "<a{1}>[2]None"},
       {"{{ '<'|safe + '<' }}{{ '<' + '>'|safe }}{{ '<'|safe ~ '<' }}", "<&lt;&lt;><<"},
       {"{% if zz %}{{ 1|nothing }}{% endif %}{{ 1|nothing if zz }}x", "x"},
       {"{{ 5 is divisibleby 5 }}{{ d is mapping }}{{ xs is sequence }}{{ s is string }}{{ 3 is in xs }}",
        "TrueTrueTrueTrueTrue"},
       {"{{ '<a>'|e }}{{ '<'|safe }}{{ xs|reverse|list }}{{ xs|first }}{{ xs|last }}{{ range(3)|list }}",
        "&lt;a&gt;<[3, 2, 1]13[0, 1, 2]"}});
}

TEST(Jinja, GeneratorsMakeAnItemWhenItIsAskedForAndGiveItOnce) {
  expect_rows(
      {{"{% set g = xs|map('string') %}{% for x in g %}{% break %}{% endfor %}{{ g|list }}{{ g|list }}",
        "['2', '3'][]"},
       {"{% set g = xs|select %}{{ 2 in g }}{{ g|first }}{{ g|first is defined }}", "True3False"},
       {"{% set g = xs|map('nothing') %}{{ g is iterable }}{{ none|map('nothing')|list }}{{ ''|select|list }}",
        "True[][]"},
       {"{% for x in xs|map('string') %}{{ loop.length }}{{ loop.revindex0 }}{{ x }},{% endfor %}", "321,312,303,"},
       {"{% set g = xs|map('string') %}{% for x in g %}{{ x }}{{ loop.nextitem }}{% break %}{% endfor %}{{ g|list }}",
        "12['3']"},
       {"{{ [d, {}]|map(attribute='a.c', default='-')|list }}{{ xs|batch(2, 0)|list }}", "['-', '-'][[1, 2], [3, 0]]"},
       {"{{ 'ba'|reverse }}{{ xs|reverse|first }}{{ d|reverse|list }}{{ d|items|first }}", "ab3['a', 'b']('b', 1)"},
       {"{{ d.keys() == d.keys() }}{{ d.items() == d.keys() }}{{ d.values() == d.values() }}", "TrueFalseFalse"}});
}

TEST(Jinja, ALoopAsksItsConditionWhenItGetsToAnItem) {
  expect_rows(
      {{"{% set n = namespace(p=0) %}{% for x in [1, 1, 2, 2] if x != n.p %}{% set n.p = x %}{{ x }}{% endfor %}",
        "12"},
       {"{% set n = namespace(p=0) %}{% for x in [1, 1, 2] if x != n.p %}{{ loop.last }}{% set n.p = x %}{{ x }}{% "
        "endfor %}",
        "False1False1True2"},
       {"{% set n = namespace() %}{% for x in xs %}{% set n.l = loop %}{% endfor %}{{ n.l.index }}{{ n.l.last }}{{ "
        "n.l.length }}",
        "3True3"}});
}

TEST(Jinja, WhatDoesNotFitIsAnInputErrorWithItsLine) {
  EXPECT_THAT(refusal("a\n{{ x.y }}", ErrorKind::input), AllOf(HasSubstr("t: line 2"), HasSubstr("'x' is undefined")));
  EXPECT_THAT(refusal("{{ raise_exception('no') }}", ErrorKind::input), HasSubstr("no"));
  EXPECT_THAT(refusal("{{ 'a' + 1 }}", ErrorKind::input), HasSubstr("str and int"));
  EXPECT_THAT(refusal("{{ 1 // 0 }}", ErrorKind::input), HasSubstr("division by zero"));
  EXPECT_THAT(refusal("{{ '{}{}'.format(1) }}", ErrorKind::input), HasSubstr("no argument 1"));
  EXPECT_THAT(refusal("{{ '{}{0}'.format(1) }}", ErrorKind::input), HasSubstr("counted or numbered"));
  EXPECT_THAT(refusal("{{ 'a}'.format(1) }}", ErrorKind::input), HasSubstr("single }"));
  EXPECT_THAT(refusal("{{ {}.get([]) }}", ErrorKind::input), HasSubstr("unhashable"));
  EXPECT_THAT(refusal("{{ {(1, []): 2} }}", ErrorKind::input), HasSubstr("unhashable"));
  EXPECT_THAT(refusal("{{ 5|map('string')|list }}", ErrorKind::input), HasSubstr("not iterable"));
  EXPECT_THAT(refusal("{{ f() }}", ErrorKind::input), HasSubstr("'f' is undefined"));
  EXPECT_THAT(refusal("{% set x = 1 %}{% set x.y = 1 %}", ErrorKind::input), HasSubstr("non-namespace"));
}

TEST(Jinja, ErrorsNameWhatWasCalledAsTheTemplateSpellsIt) {
  for (const auto& [source, says] :
       {std::pair{"{{ 'a'.endswith([1]) }}", "endswith: prefix: expected a string, got list"},
        {"{{ 'a'.endswith((1,)) }}", "endswith: expected strings, got int"},
        {"{{ 'a'.removesuffix() }}", "removesuffix: argument prefix is missing"},
        {"{{ 'a'.rsplit('') }}", "rsplit: empty separator"},
        {"{{ 'a'.rindex() }}", "rindex: argument sub is missing"},
        {"{{ 'a'|lower(1) }}", "lower: expected at most 0 arguments, got 1"},
        {"{{ [1]|max(key=1) }}", "max: there is no argument key"},
        {"{{ 5|count }}", "count: a value of type int has no length"},
        {"{{ 1 is lessthan }}", "lessthan: argument other is missing"},
        {"{{ ['a']|map('upper', 1)|list }}", "upper: expected at most 0 arguments, got 1"},
        {"{{ [1]|select('gt')|list }}", "gt: argument other is missing"},
        {"{{ [1]|rejectattr|list }}", "rejectattr: expected the name of an attribute"},
        {"{{ range() }}", "range: argument start is missing"}}) {
    EXPECT_THAT(refusal(source, ErrorKind::input), HasSubstr(says)) << source;
  }
}

TEST(Jinja, WhatIsNotSupportedIsAModelErrorWithItsLine) {
  for (const char* source : {"{% import 'a' as b %}", "{{ x|pprint }}", "{{ x is wat }}", "{% break %}", "{{ 0x1f }}",
                             "{% for x in y recursive %}{% endfor %}", "{% block a %}{% endblock %}", "{{ 1", "{# x",
                             "{% if 1 %}{% for x in [] %}{{ x|nothing }}{% endfor %}{% endif %}", "{{ '\\N{DASH}' }}",
                             "{{ [1).x }}", "{{ 99999999999999999999 }}", "{% endif %}"}) {
    EXPECT_THAT(refusal(source, ErrorKind::model), HasSubstr("t: line 1, column")) << source;
  }
  EXPECT_THAT(refusal("{{ [1].append(2) }}", ErrorKind::model), HasSubstr("append"));
  EXPECT_THAT(refusal("{{ 2 ** 64 }}", ErrorKind::model), HasSubstr("2^63"));
  EXPECT_THAT(refusal("{{ [1, 'nan'|float, 0]|sort }}", ErrorKind::model), HasSubstr("NaN"));
  EXPECT_THAT(refusal("{{ '%s' % 1 }}", ErrorKind::model), HasSubstr("formatting"));
  EXPECT_THAT(refusal("{{ '{:02d}'.format(1) }}", ErrorKind::model), HasSubstr("{:02d}"));
  EXPECT_THAT(refusal("{{ 1[1:] }}", ErrorKind::model), HasSubstr("a slice of a int"));
  EXPECT_THAT(refusal("{{ self.title }}", ErrorKind::model), HasSubstr("attribute title of a function"));
  EXPECT_THAT(refusal("{{ joiner() }}", ErrorKind::model), HasSubstr("joiner"));
  EXPECT_THAT(refusal("{{ [1]|map('string') }}", ErrorKind::model), HasSubstr("generator"));
  EXPECT_THAT(refusal("{{ [1]|map('nothing')|list }}", ErrorKind::model), HasSubstr("filter nothing"));
  EXPECT_THAT(refusal("{{ 'a\\nb'|indent(1001) }}", ErrorKind::model), HasSubstr("at most 1000"));
}

TEST(Jinja, HostileTemplatesMeetALimit) {
  const std::string loop = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(refusal(loop, ErrorKind::model), HasSubstr("steps"));
  EXPECT_THAT(refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", ErrorKind::model),
              HasSubstr("inside one another"));
  const std::string grow =
      "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}";
  EXPECT_THAT(refusal(grow, ErrorKind::model), HasSubstr("bytes of text"));
  const std::string nest =
      "{% set n = namespace(x=[]) %}{% for i in range(200) %}{% set n.x = [n.x, n.x] %}{% endfor %}";
  EXPECT_THAT(refusal(nest, ErrorKind::model), HasSubstr("lists inside one another"));
  const std::string wide =
      "{% set n = namespace(x=[]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}";
  EXPECT_THAT(refusal(wide, ErrorKind::model), HasSubstr("steps"));
  EXPECT_THAT(refusal("{{ 'a' * 99999999999 }}", ErrorKind::model), HasSubstr("repeated too often"));
  Limits little;
  little.output_bytes = 9;
  EXPECT_THAT(refusal("{{ 'a' * 10 }}", ErrorKind::model, little), HasSubstr("at most 9 bytes of rendered text"));
  EXPECT_THAT(refusal("{{ " + std::string(100000, '(') + std::string(100000, ')') + " }}", ErrorKind::model),
              HasSubstr("inside one another"));
  std::string sum = "{{ 1";
  for (int i = 0; i < 100000; ++i) sum += "+1";
  EXPECT_THAT(refusal(sum + " }}", ErrorKind::model), HasSubstr("too long or too deeply nested"));
  Limits megabyte;
  megabyte.text_bytes = 1 << 20;
  const std::string set = "{% set n = namespace(x='a' * 20000) %}";
  for (const char* product : {"(['']*100)|join(n.x)", "n.x.join(['']*100)", "('b'*100).replace('b', n.x)",
                              "('b'*60)|replace('b', n.x)", "('b\\n'*60)|indent(n.x)", "([1]*60)|tojson(indent=n.x)",
                              "([1]*60)|tojson(separators=(n.x, ':'))", "([n.x]*100)|join", "n.x * 100"}) {
    EXPECT_THAT(refusal(set + "{{ " + product + " }}", ErrorKind::model, megabyte),
                AnyOf(HasSubstr("bytes of text"), HasSubstr("repeated too often")))
        << product;
  }
  EXPECT_THAT(refusal("{{ ('a'*900000 + 'b').find('a'*450000 + 'b') }}", ErrorKind::model), HasSubstr("steps"));
  // Generators that ask one another, each through a namespace, and one that asks itself.
  const std::string chain =
      "{% set r = namespace(n=namespace(g=[1])) %}{% for i in range(9999) %}"
      "{% set r.n = namespace(g=[r.n]|map(attribute='g')|map('first')) %}{% endfor %}{{ r.n.g|first }}";
  EXPECT_THAT(refusal(chain, ErrorKind::model), HasSubstr("generators that ask one another"));
  const std::string itself =
      "{% set n = namespace() %}{% set n.g = [n]|map(attribute='g')|map('list') %}{{ n.g|list }}";
  EXPECT_THAT(refusal(itself, ErrorKind::input), HasSubstr("its own next item"));
  // Long chains of loops and of generators that hold one another are taken apart one by one.
  for (const char* item : {"loop", "[n]|map(attribute='l')|unique"}) {
    const std::string long_chain =
        "{% set n = namespace(l=0) %}{% for i in range(50000) %}{% for x in [n.l] %}{% set n.l = " + std::string(item) +
        " %}{% endfor %}{% endfor %}x";
    EXPECT_EQ(render(long_chain), "x") << item;
  }
  // Values that hold themselves are taken apart again (the address sanitizer would tell).
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.n = n %}{% macro m() %}{% endmacro %}{% set n.m = m %}"
                   "{% for x in [1, 2] if x %}{% set n.l = loop %}{% if loop.changed(loop) %}{% endif %}{% break %}"
                   "{% endfor %}{% set n.g = [n]|map(attribute='g') %}x"),
            "x");
}

}  // namespace
}  // namespace tandem::jinja
