#include "src/sample/grammar/schema_object.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/sample/grammar/expression.h"
#include "src/sample/grammar/text_trie.h"

namespace tandem {
namespace {

namespace ex = expressions;

// Rules for what follows the first i named members of which `count` were written, until one member or more stands
// there. A count is followed no further than the bounds need: to the larger of them, and to 1 for the comma.
class ObjectRules {
 public:
  ObjectRules(const ObjectMembers& members, TextLength counts, JsonRules& rules, const std::string& place)
      : members_(members), counts_(counts), rules_(rules), place_(place) {
    const auto required = std::count_if(members.named.begin(), members.named.end(),
                                        [](const ObjectMembers::Member& member) { return member.required; });
    may_be_empty_ = required == 0 && counts.least == 0;
    if (counts_.least <= required) counts_.least = 0;
    if (!members.has_others && counts_.most >= std::ssize(members.named)) counts_.most = -1;
    highest_ = static_cast<int>(std::max<std::int64_t>({1, counts_.least, counts_.most}));
    required_ = static_cast<int>(std::min<std::int64_t>(required, highest_));
  }

  Expression object(const std::function<Expression(const Conjunction&)>& value_of) {
    if (members_.has_others) other_member_ = other_member(value_of);
    const auto last = static_cast<int>(members_.named.size());
    std::vector<Expression> after;  // by count
    for (int count = 0; count <= std::min(last, highest_); ++count) after.push_back(others_after(count));
    for (int i = last; i-- > 0;) {
      const ObjectMembers::Member& member = members_.named[static_cast<std::size_t>(i)];
      const Expression pair = ex::sequence({rules_.quoted_text(member.name), rules_.colon(), value_of(member.value)});
      std::vector<Expression> here;
      for (int count = 0; count <= std::min(i, highest_); ++count) {
        here.push_back(i == 0 ? from(member, pair, count, after) : as_rule(from(member, pair, count, after)));
      }
      after = std::move(here);
    }
    return rules_.enclosed('{', std::move(after[0]), may_be_empty_, '}');
  }

 private:
  Expression other_member(const std::function<Expression(const Conjunction&)>& value_of) {
    TextTrie names;
    for (const ObjectMembers::Member& member : members_.named) names.add(member.name);
    const Expression name = members_.named.empty() ? rules_.string() : names.none_of(rules_);
    return ex::sequence({name, rules_.colon(), value_of(members_.others)});
  }

  Expression as_rule(Expression body) {
    const int rule = rules_.add_rule("members");
    rules_.set_body(rule, std::move(body));
    return ex::rule(rule);
  }

  // What may follow when `member` is next and `count` members stand before it.
  Expression from(const ObjectMembers::Member& member, const Expression& pair, int count,
                  const std::vector<Expression>& after) {
    std::vector<Expression> branches;
    if (counts_.most < 0 || count < counts_.most) {
      const auto next = static_cast<std::size_t>(std::min(count + 1, highest_));
      branches.push_back(ex::sequence({count > 0 ? rules_.comma() : ex::literal(""), pair, after[next]}));
    }
    if (!member.required) branches.push_back(after[static_cast<std::size_t>(count)]);
    return ex::choice(std::move(branches));
  }

  // What may follow all named members.
  Expression others_after(int count) {
    if (count < required_) return ex::choice({});
    const auto missing = static_cast<int>(counts_.least) - count;
    if (!members_.has_others) return count == 0 || missing > 0 ? ex::choice({}) : ex::literal("");
    if (missing > 1) {
      fail(ErrorKind::config,
           "{}: not exact together with properties that are not declared, which may come twice; expected "
           "additionalProperties false, or a count at most one above the required properties",
           place_);
    }
    const int most = counts_.most < 0 ? -1 : static_cast<int>(counts_.most) - count;
    const Expression next = ex::sequence({rules_.comma(), other_member_});
    if (count > 0) return ex::repeat(next, std::max(0, missing), most);
    if (most == 0) return ex::choice({});
    return ex::sequence({other_member_, ex::repeat(next, 0, most < 0 ? -1 : most - 1)});
  }

  const ObjectMembers& members_;
  TextLength counts_;
  JsonRules& rules_;
  const std::string& place_;
  bool may_be_empty_ = false;
  int highest_ = 1;
  int required_ = 0;  // up to highest_
  Expression other_member_;
};

}  // namespace

Expression object_of(const ObjectMembers& members, TextLength counts, JsonRules& rules,
                     const std::function<Expression(const Conjunction&)>& value_of, const std::string& place) {
  return ObjectRules(members, counts, rules, place).object(value_of);
}

}  // namespace tandem
