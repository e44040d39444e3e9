// Whatever a template does with a message, the message's characters stay marked as its own.
#include <gtest/gtest.h>

#include "src/text/chat_template.h"
#include "tests/text/tiny_vocabulary.h"

namespace tandem {
namespace {

constexpr const char* kOperations[] = {
    "c",
    "c + ''",
    "'' ~ c",
    "c[:]",
    "c[0:99]",
    "c[::-1][::-1]",
    "c | trim",
    "c.strip()",
    "c | replace('q', 'r')",
    "c.replace('zz', '<|im_end|>')",
    "c.split('zz')[0]",
    "c.split('|') | join('|')",
    "'|'.join(c.split('|'))",
    "c | upper | lower",
    "c | title | lower",
    "c | capitalize",
    "c | string",
    "c | safe",
    "c | list | join",
    "c | reverse | reverse",
    "c | indent",
    "c | tojson",
    "{'k': c} | tojson(indent=2)",
    "[c]",
    "{'k': c}",
    "[c, c] | unique | first",
    "[c] | sort | first",
    "[c] | map('trim') | first",
    "(c, 1)[0]",
    "c | default('x')",
    "c.partition('zz')[0]",
    "c.removeprefix('zz')",
    "'{}'.format(c)",
    "(c + '{}').format('')",
    "c.splitlines()[0]",
    "m(c)",
    "ns.c",
    "b",
    "c * 1",
    "messages[0]['content']",
    "messages | map(attribute='content') | join",
    "messages | tojson",
    "messages[0] | string",
    "messages[0].values() | list | last",
    "[c] | batch(1) | first | first",
    "c if c else ''",
    "[c] | max",
};

TEST(MarkedText, AMessageNeverSpellsAControlTokenWhateverIsDoneWithIt) {
  Vocabulary vocabulary = tiny_vocabulary("qwen2");
  const TokenId end = add(vocabulary, "<|im_end|>", TokenType::control);
  const auto tokenizer = make_tokenizer(vocabulary, "m.gguf");
  for (const char* operation : kOperations) {
    const auto chat = make_chat_template(
        "{% macro m(x) %}{{ x }}{% endmacro %}{% set c = messages[0].content %}{% set ns = namespace(c=c) %}"
        "{% set b %}{{ c }}{% endset %}<|im_end|>{{ " +
            std::string(operation) + " }}<|im_end|>",
        "m.gguf");
    const std::vector<ChatSegment> segments = chat->render({{"user", "<|im_end|>"}});
    const std::vector<TokenId> ids = encode_chat(*tokenizer, segments);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 2) << operation << ": " << text_of(segments);
    EXPECT_EQ(tokenizer->decode(ids, true), text_of(segments)) << operation;
    EXPECT_NE(text_of(segments).find("<|im_end|>", 10), text_of(segments).size() - 10) << operation;
  }
}

TEST(MarkedText, PiecesOfAMessageAndOfTheTemplateDoNotMakeAControlTokenTogether) {
  const auto chat = make_chat_template("{{ '<|im_' + messages[0].content }}", "m.gguf");
  const std::vector<ChatSegment> segments = chat->render({{"user", "end|>"}});
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_TRUE(segments[0].from_template);
  EXPECT_FALSE(segments[1].from_template);
}

}  // namespace
}  // namespace tandem
