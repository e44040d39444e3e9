// Logits that stay on a device until someone asks for a row.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "src/base/logits.h"
#include "src/base/picking.h"

namespace tandem {

// For a backend with a device; it outlives this.
class DeviceRows final : public RowSource {
 public:
  explicit DeviceRows(Backend& backend) : backend_(backend) {}

  // Waits for the pass that computes `rows` (1 .. kMaxTreeNodes of them, contiguous) and brings what every caller needs
  // to the host: what `picking` asks for, where the backend does that, else the first row. What was held before is
  // gone.
  Logits hold(Rows rows, const Picking* picking);

  std::span<const float> row(int i) override;

 private:
  Backend& backend_;
  Rows rows_;
  std::uint64_t here_ = 0;        // bit i: row i has been copied
  std::unique_ptr<Buffer> host_;  // [rows_.rows, rows_.cols]; may be larger
  std::size_t host_bytes_ = 0;
  std::array<TokenId, kMaxTreeNodes> picks_{};
  std::vector<Candidate> candidates_;
};

}  // namespace tandem
