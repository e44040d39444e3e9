#include "src/arch/rope_scaling.h"

#include <algorithm>
#include <functional>
#include <string>

#include "src/arch/registry.h"
#include "src/base/error.h"
#include "src/model/rope.h"

namespace tandem {
namespace {

// One value a pair; each divides its frequency.
std::vector<double> divisors_of(const GgufFile& file, std::string_view name, int pairs) {
  const GgufTensor& tensor = file.require(name, 1, pairs);
  std::vector<float> values(static_cast<std::size_t>(pairs));
  if (format_info(tensor.format).block_values != 1) {
    fail(ErrorKind::model, "{}: tensor {}: expected F32, F16 or BF16, got {}", file.name(), name,
         format_info(tensor.format).name);
  }
  decode_blocks(tensor.format, tensor.data, values);
  for (const float value : values) {
    if (!(value >= 1e-6F && value <= 1e6F)) {
      fail(ErrorKind::model, "{}: tensor {}: expected values in 1e-6..1e6, got {}", file.name(), name, value);
    }
  }
  return {values.begin(), values.end()};
}

class Scaling {
 public:
  Scaling(const GgufFile& file, ModelSpec& spec)
      : file_(file), spec_(spec), prefix_(spec.architecture + ".rope."), pairs_(spec.rope_dims / 2) {}

  void read() {
    const std::string type_key = prefix_ + "scaling.type", original_key = prefix_ + "scaling.original_context_length";
    const std::string type = file_.text_or(type_key, "linear");
    spec_.rope_original_context = static_cast<int>(file_.integer_or(original_key, spec_.context, 1, kMaxContext));
    if (type == "yarn") {
      read_yarn();
    } else if (type == "linear") {
      read_linear(file_.has(original_key));
    } else if (type == "longrope") {
      for (const std::string_view name : {kRopeLongFactors, kRopeShortFactors}) file_.require(name, 1, pairs_);
    } else if (type != "none") {
      fail(ErrorKind::model, "{}: {}: expected none, linear, yarn or longrope, got {}", file_.name(), type_key, type);
    }
    read_tensors();
    spec_.rope_magnitude *= positive("scaling.attn_factor", 1);
  }

 private:
  double positive(const std::string& name, double fallback) const {
    const double value = file_.real_or(prefix_ + name, fallback);
    if (!(value >= 1e-6 && value <= 1e6)) {
      fail(ErrorKind::model, "{}: {}{}: expected 1e-6..1e6, got {}", file_.name(), prefix_, name, value);
    }
    return value;
  }

  // 1 where there is none; old files have it under another name, and 0 for none.
  double factor() const {
    for (const char* name : {"scaling.factor", "scale_linear"}) {
      if (file_.has(prefix_ + name) && file_.real_or(prefix_ + name, 0) != 0) return positive(name, 1);
    }
    return 1;
  }

  void reach(double factor) {
    const double reached = std::min<double>(factor * spec_.rope_original_context, kMaxContext);
    spec_.context = std::max(spec_.context, static_cast<int>(reached));
  }

  void read_linear(bool has_original) {
    const double all = factor();
    if (all == 1) return;
    spec_.rope_divisors.assign(static_cast<std::size_t>(pairs_), all);
    if (has_original) reach(all);  // without it, context_length is the scaled one in some files and not in others
  }

  void read_yarn() {
    if (!file_.has(prefix_ + "scaling.factor")) {
      fail(ErrorKind::model, "{}: {}scaling.factor: missing, which yarn needs", file_.name(), prefix_);
    }
    if (spec_.rope_base <= 1) {
      fail(ErrorKind::model, "{}: {}freq_base: expected more than 1 for yarn, got {}", file_.name(), prefix_,
           spec_.rope_base);
    }
    // Below 0 stands for the default, as in llama.cpp.
    const double extrapolated = file_.real_or(prefix_ + "scaling.yarn_ext_factor", 1);
    if (extrapolated >= 0 && extrapolated != 1) {
      fail(ErrorKind::model, "{}: {}scaling.yarn_ext_factor: expected 1, got {}; others are not supported",
           file_.name(), prefix_, extrapolated);
    }
    const Yarn yarn{.factor = factor(),
                    .original_context = spec_.rope_original_context,
                    .beta_fast = positive("scaling.yarn_beta_fast", 32),
                    .beta_slow = positive("scaling.yarn_beta_slow", 1)};
    spec_.rope_divisors = yarn_divisors(yarn, spec_.rope_base, spec_.rope_dims);
    spec_.rope_magnitude = yarn_length(yarn.factor);
    reach(yarn.factor);
  }

  // yarn_attn_factor is the attention_factor of the original's configuration, which stands in place of the computed
  // one.
  double yarn_length(double factor) const {
    if (file_.has(prefix_ + "scaling.yarn_attn_factor")) return positive("scaling.yarn_attn_factor", 1);
    const double all_dims = file_.real_or(prefix_ + "scaling.yarn_log_multiplier", 0);
    if (all_dims < 0) {
      fail(ErrorKind::model, "{}: {}scaling.yarn_log_multiplier: expected 0 or more, got {}", file_.name(), prefix_,
           all_dims);
    }
    return yarn_magnitude(factor, 1) / yarn_magnitude(factor, all_dims);
  }

  // The tensors hold whatever the type says, or does not: older files have them without a type.
  void read_tensors() {
    if (file_.find(kRopeFactors) != nullptr) divide(spec_.rope_divisors, divisors_of(file_, kRopeFactors, pairs_));
    if (file_.find(kRopeLongFactors) == nullptr && file_.find(kRopeShortFactors) == nullptr) return;
    spec_.rope_long_divisors = spec_.rope_divisors;
    divide(spec_.rope_long_divisors, divisors_of(file_, kRopeLongFactors, pairs_));
    divide(spec_.rope_divisors, divisors_of(file_, kRopeShortFactors, pairs_));
  }

  static void divide(std::vector<double>& divisors, const std::vector<double>& more) {
    divisors.resize(more.size(), 1);
    std::ranges::transform(divisors, more, divisors.begin(), std::multiplies<>());
  }

  const GgufFile& file_;
  ModelSpec& spec_;
  const std::string prefix_;
  const int pairs_;
};

}  // namespace

void read_rope_scaling(const GgufFile& file, ModelSpec& spec) { Scaling(file, spec).read(); }

}  // namespace tandem
