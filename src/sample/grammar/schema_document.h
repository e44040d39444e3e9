// A JSON schema taken apart into its subschemas, each named by its JSON pointer, and what they say together.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Subschemas by number that must all hold, in the order in which they were found. Of none: any value.
using Conjunction = std::vector<int>;

class SchemaDocument {
 public:
  using Json = nlohmann::ordered_json;

  // Keeps a reference. Throws Error(config) for a document nested deeper than 64 or of more than 1 MiB of text.
  explicit SchemaDocument(const Json& root);

  static constexpr int kRoot = 0;

  const Json& schema(int node) const { return *nodes_[static_cast<std::size_t>(node)].schema; }
  // E.g. "#/properties/name".
  const std::string& pointer(int node) const { return nodes_[static_cast<std::size_t>(node)].pointer; }

  // The subschema at /keyword, /keyword/name or /keyword/index of a subschema that has it.
  int child(int node, std::string_view keyword);
  int child(int node, std::string_view keyword, std::string_view name);
  int child(int node, std::string_view keyword, std::size_t index);

  // The conjunction without what holds for every value and without doubles, and with references that stand alone
  // followed: equal meanings are more often equal lists.
  Conjunction simplified(const Conjunction& all);

  // The conjunction as alternatives, of which each value satisfies one or more, with every $ref, allOf, anyOf and oneOf
  // taken apart; none for a conjunction that no value satisfies. Throws Error(config) with the pointer for keywords
  // that are unknown, unsupported or malformed, for references without a target or back to themselves, and for more
  // than 256 alternatives. A branch of oneOf stands for all its values, those of the other branches included.
  std::vector<Conjunction> alternatives(const Conjunction& all);

  // Every subschema with oneOf met by alternatives() so far; it is the caller who proves the branches apart.
  const std::vector<int>& one_ofs() const { return one_ofs_; }

 private:
  struct Node {
    const Json* schema;
    std::string pointer;
    bool checked = false;
  };

  int intern(std::string pointer, const Json& schema);
  void check(int node);
  int target_of(int node);
  const std::vector<Conjunction>& alternatives_of(int node, std::vector<int>& open);
  std::vector<Conjunction> object_alternatives(int node, std::vector<int>& open);
  std::vector<Conjunction> alternatives_of_list(int node, std::string_view keyword, std::vector<int>& open);
  std::vector<Conjunction> product(int node, const std::vector<Conjunction>& left,
                                   const std::vector<Conjunction>& right) const;
  void require_few(int node, std::size_t alternatives) const;

  const Json& root_;
  std::vector<Node> nodes_;
  std::map<std::string, int, std::less<>> by_pointer_;
  std::map<int, std::vector<Conjunction>> alternatives_;  // of each node, once known
  std::vector<int> one_ofs_;
};

}  // namespace tandem
