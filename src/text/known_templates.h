// The chat templates that are rendered without a Jinja interpreter, by their exact text in model files.
#pragma once
#include <string_view>

namespace tandem {

enum class KnownTemplate {
  none,
  qwen2,   // Qwen2.5 and Qwen2.5-Coder (Apache-2.0), two spellings of one template
  smollm2  // SmolLM2-Instruct (Apache-2.0)
};

// Which template `jinja_text` is, byte for byte.
KnownTemplate known_template(std::string_view jinja_text);

}  // namespace tandem
