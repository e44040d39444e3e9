#include "src/engine/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/text/utf8.h"

namespace tandem {
namespace {

constexpr std::size_t kColumns = 100;

std::string plural(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string escaped(std::string_view part, const Utf8Step& step) {
  const char32_t c = step.character;
  if (step.valid && c == '\n') return "\\n";
  if (step.valid && c == '\t') return "\\t";
  if (step.valid && (c == '"' || c == '\\')) return fmt::format("\\{}", part);
  if (step.valid && c >= 0x20 && (c < 0x7f || c >= 0xa0)) return std::string(part);
  std::string out;
  for (const char byte : part) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return out;
}

std::string token_text(TokenId id, const Tokenizer& tokenizer) {
  return fmt::format("{} {}", id, quoted(tokenizer.bytes(id, true)));
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

// Words on lines of kColumns, each indented.
std::string wrapped(const std::vector<std::string>& words, std::string_view indent) {
  std::string out, line;
  for (const std::string& word : words) {
    if (!line.empty() && indent.size() + characters(line) + 2 + characters(word) > kColumns) {
      out += fmt::format("{}{}\n", indent, line);
      line.clear();
    }
    line += line.empty() ? word : "  " + word;
  }
  return line.empty() ? out : out + fmt::format("{}{}\n", indent, line);
}

// NaN when there is one among them: nothing could be in the middle.
double median(std::vector<double> values) {
  for (const double value : values) {
    if (std::isnan(value)) return value;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Blocks share lines, a norm each.
std::string stages_text(const std::vector<StageTrace>& stages) {
  constexpr std::size_t kBlocksPerLine = 8;
  if (stages.empty()) return {};
  std::string out = fmt::format("  {:<14}{:<16}{}\n", "stage", "shape", "L2 norm of a row (median)");
  const auto is_block = [](const StageTrace& stage) { return stage.name.starts_with("block "); };
  int block = 0;
  for (std::size_t i = 0; i < stages.size();) {
    std::size_t end = i + 1;
    std::string name = stages[i].name;
    if (is_block(stages[i])) {
      while (end < stages.size() && end - i < kBlocksPerLine && is_block(stages[end])) ++end;
      const int last = block + static_cast<int>(end - i) - 1;
      if (last > block) name = fmt::format("blocks {}-{}", block, last);
      block = last + 1;
    }
    out += fmt::format("  {:<14}{:<16}", name, fmt::format("[{}, {}]", stages[i].rows, stages[i].cols));
    for (; i < end; ++i) out += fmt::format("{:<8.4g}", median(stages[i].norms));
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

// 0 is outside what the chain leaves.
std::string probability_text(double p) {
  return p == 0 ? "0" : p < 1e-4 ? fmt::format("{:.1e}", p) : fmt::format("{:.4f}", p);
}

// Logits beside the probabilities that the chain makes of them; an arrow at the token that was committed, which is
// shown in any case.
std::string row_text(const RowTrace& row, TokenValue committed, const Tokenizer& tokenizer) {
  std::vector<TokenValue> probabilities = row.probabilities;
  const auto is_committed = [&](const TokenValue& p) { return p.id == committed.id; };
  if (std::none_of(probabilities.begin(), probabilities.end(), is_committed)) probabilities.push_back(committed);
  std::string out = fmt::format("  {:>11}  {:<34}{:>11}  {}\n", "logit", "token", "probability",
                                "after the chain (" + plural(row.support, "token") + " left)");
  for (std::size_t i = 0; i < std::max(row.logits.size(), probabilities.size()); ++i) {
    std::string left, right;
    if (i < row.logits.size()) {
      left = fmt::format("{:>11.4f}  {}", row.logits[i].value, token_text(row.logits[i].id, tokenizer));
    }
    if (i < probabilities.size()) {
      const TokenValue& p = probabilities[i];
      right = fmt::format("{:>11}  {}{}", probability_text(p.value), token_text(p.id, tokenizer),
                          is_committed(p) ? "  <-" : "");
    }
    std::string line = fmt::format("  {:<47}{}", left, right);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

// Puts a node and everything below it on lines, in the order of the nodes.
void add_branch(const StepTrace& step, int node, const std::string& stem, const std::string& indent,
                const Tokenizer& tokenizer, std::vector<std::string>& labels, std::vector<int>& order) {
  labels.push_back(fmt::format("{}{} {}", stem, node, quoted(tokenizer.bytes(step.nodes[node].token, true))));
  order.push_back(node);
  std::vector<int> children;
  for (int i = node + 1; i < static_cast<int>(step.nodes.size()); ++i) {
    if (step.nodes[i].parent == node) children.push_back(i);
  }
  for (const int child : children) {
    const bool last = child == children.back();
    add_branch(step, child, indent + (last ? "└ " : "├ "), indent + (last ? "  " : "│ "), tokenizer, labels, order);
  }
}

}  // namespace

std::string quoted(std::string_view bytes, int most) {
  std::string out = "\"";
  for (auto left = static_cast<std::size_t>(most); !bytes.empty();) {
    const Utf8Step step = utf8_step(bytes);
    const std::string part = escaped(bytes.substr(0, step.length), step);
    if (characters(part) > left) {
      out += "…";
      break;
    }
    out += part;
    left -= characters(part);
    bytes.remove_prefix(step.length);
  }
  return out + "\"";
}

std::string prompt_text(std::span<const TokenId> ids, const Tokenizer& tokenizer) {
  constexpr std::size_t kEnd = 40;  // tokens shown at each end
  std::vector<std::string> words;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids.size() > 2 * kEnd && i == kEnd) {
      words.push_back(fmt::format("... {} more ...", ids.size() - 2 * kEnd));
      i = ids.size() - kEnd;
    }
    words.push_back(token_text(ids[i], tokenizer));
  }
  return fmt::format("prompt: {}\n", plural(static_cast<int>(ids.size()), "token")) + wrapped(words, "  ");
}

std::string to_text(const PrefillTrace& prefill) {
  return fmt::format("prefill: {} behind {}\n", plural(prefill.rows, "row"), plural(prefill.cached, "cached token")) +
         stages_text(prefill.stages);
}

std::string tree_text(const StepTrace& step, const Tokenizer& tokenizer) {
  std::vector<std::string> labels;
  std::vector<int> order;
  add_branch(step, 0, "", "", tokenizer, labels, order);
  std::size_t widest = 0;
  for (const std::string& label : labels) widest = std::max(widest, characters(label));
  std::string out;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const NodeTrace& node = step.nodes[order[i]];
    out += fmt::format("  {:<{}}  ", labels[i], widest);
    if (order[i] > 0) {
      const std::string q = node.kind == ChildKind::sampled ? probability_text(node.q) : "one-hot";
      out += fmt::format("{:<8}q {:<9}p {:<9}", name_of(node.source), q, probability_text(node.p));
    }
    out += fmt::format("{}\n", name_of(node.status));
  }
  return out;
}

std::string to_text(const StepTrace& step, const Tokenizer& tokenizer) {
  std::string out;
  if (step.index == 0) {
    out = "first token\n";
  } else {
    out = fmt::format("step {}: {} behind {}\n", step.index, plural(static_cast<int>(step.nodes.size()), "row"),
                      plural(step.cached, "cached token"));
    out += stages_text(step.stages);
    out += step.nodes.size() == 1 ? "  no proposal\n" : "  proposal\n" + tree_text(step, tokenizer);
  }
  for (std::size_t i = 0; i < step.path.size(); ++i) {
    const NodeTrace& node = step.nodes[step.path[i]];
    if (step.index > 0) out += fmt::format("  after node {} {}\n", step.path[i], token_text(node.token, tokenizer));
    const double p = i + 1 < step.path.size() ? step.nodes[step.path[i + 1]].p : step.probability;
    out += row_text(node.next, {step.committed[i], p}, tokenizer);
  }
  out += fmt::format("  drawn: {}, p {} ({})\n", token_text(step.drawn, tokenizer), probability_text(step.probability),
                     name_of(step.draw));
  std::vector<std::string> words;
  for (const TokenId id : step.committed) words.push_back(token_text(id, tokenizer));
  if (step.index > 0) out += "  committed:\n" + wrapped(words, "    ");
  if (step.cut > 0) out += fmt::format("  cut behind the stop: {}\n", plural(step.cut, "token"));
  return out;
}

}  // namespace tandem
