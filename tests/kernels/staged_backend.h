// A backend whose memory is not the host's, for tests that are written with plain vectors: every op's rows, caches and
// tables are copied to the device and back around it, so that one test body serves all backends.
#pragma once
#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace tandem::test {

class StagedBackend final : public Backend {
 public:
  explicit StagedBackend(std::unique_ptr<Backend> device) : device_(std::move(device)) {}

  std::string_view name() const override { return device_->name(); }
  int threads() const override { return device_->threads(); }
  ThreadPool& pool() override { return device_->pool(); }
  KvType preferred_kv_type() const override { return device_->preferred_kv_type(); }
  std::unique_ptr<Weight> load(const WeightSource& source, WeightUse use) override {
    return device_->load(source, use);
  }
  // Host memory that store_kv(), move_kv() and attention() copy to the device.
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<HostBuffer>(*this, bytes); }
  std::span<const float> download(Rows x) override {
    Op op(*this);
    return device_->download(op.rows(x));
  }

  void embed(Rows out, const Weight& table, std::span<const TokenId> tokens) override {
    Op op(*this);
    device_->embed(op.rows(out), table, tokens);
  }
  void rms_norm(Rows out, Rows x, const Weight& gain, float epsilon) override {
    Op op(*this);
    device_->rms_norm(op.rows(out), op.rows(x), gain, epsilon);
  }
  void matmul(std::span<const Projection> projections, Rows x) override {
    Op op(*this);
    std::vector<Projection> staged;
    for (const Projection& p : projections) staged.push_back({op.rows(p.out), p.weight, p.bias});
    device_->matmul(staged, op.rows(x));
  }
  void rope(Rows heads, int head_dim, std::span<const Position> positions, const RopeTable& table) override {
    Op op(*this);
    device_->rope(op.rows(heads), head_dim, positions, op.table(table, positions));
  }
  void rope_store_kv(Rows queries, Rows keys, Rows values, std::span<const Position> positions, const RopeTable& table,
                     const KvLayer& layer, int base) override {
    Op op(*this);
    device_->rope_store_kv(op.rows(queries), op.rows(keys), op.rows(values), positions, op.table(table, positions),
                           op.layer(layer), base);
  }
  void store_kv(const KvLayer& layer, int base, Rows keys, Rows values) override {
    Op op(*this);
    device_->store_kv(op.layer(layer), base, op.rows(keys), op.rows(values));
  }
  void attention(Rows out, Rows queries, const KvLayer& layer, int base, const AttentionParams& params,
                 Mask mask) override {
    Op op(*this);
    device_->attention(op.rows(out), op.rows(queries), op.layer(layer), base, params, mask);
  }
  void gated(Rows out, Rows gate, Rows up, Activation activation) override {
    Op op(*this);
    device_->gated(op.rows(out), op.rows(gate), op.rows(up), activation);
  }
  void add(Rows y, Rows x) override {
    Op op(*this);
    device_->add(op.rows(y), op.rows(x));
  }
  void scale(Rows x, float factor) override {
    Op op(*this);
    device_->scale(op.rows(x), factor);
  }
  void soft_cap(Rows x, float cap) override {
    Op op(*this);
    device_->soft_cap(op.rows(x), cap);
  }
  void gather_rows(Rows out, Rows x, std::span<const int> rows) override {
    Op op(*this);
    device_->gather_rows(op.rows(out), op.rows(x), rows);
  }
  void move_kv(const KvLayer& layer, int base, std::span<const int> path) override {
    Op op(*this);
    device_->move_kv(op.layer(layer), base, path);
  }
  void add_rms_norm(Rows out, Rows hidden, Rows x, const Weight& gain, float epsilon) override {
    Op op(*this);
    device_->add_rms_norm(op.rows(out), op.rows(hidden), op.rows(x), gain, epsilon);
  }
  void gated_matmul(const Projection& gate, const Projection& up, Rows x, Activation activation) override {
    Op op(*this);
    device_->gated_matmul({op.rows(gate.out), gate.weight, gate.bias}, {op.rows(up.out), up.weight, up.bias},
                          op.rows(x), activation);
  }

 private:
  class HostBuffer final : public Buffer {
   public:
    HostBuffer(StagedBackend& owner, std::size_t bytes) : owner_(owner), memory_(bytes + 64) {
      const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
      data_ = memory_.data() + (64 - address % 64) % 64;
      owner_.buffers_[data_] = bytes;
    }
    ~HostBuffer() override { owner_.buffers_.erase(data_); }
    std::byte* data() override { return data_; }

   private:
    StagedBackend& owner_;
    std::vector<std::byte> memory_;
    std::byte* data_;
  };

  // The copies of one op; written back when it ends. The same host memory is staged once, so in-place stays in place.
  class Op {
   public:
    explicit Op(StagedBackend& owner) : owner_(owner) {}
    Op(const Op&) = delete;
    ~Op() {
      for (const Copy& copy : copies_) owner_.device_->read(copy.host, copy.device->data());
    }
    Rows rows(Rows x) {
      const std::size_t floats = x.rows == 0 ? 0 : static_cast<std::size_t>(x.stride) * (x.rows - 1) + x.cols;
      return {reinterpret_cast<float*>(stage(reinterpret_cast<std::byte*>(x.data), floats * sizeof(float))), x.rows,
              x.cols, x.stride};
    }
    RopeTable table(const RopeTable& table, std::span<const Position> positions) {
      const int count = positions.empty() ? 0 : std::ranges::max(positions) + 1, half = table.dims / 2;
      const auto values = [&](const float* from) {
        return rows({const_cast<float*>(from), count, half, half}).data;  // read only
      };
      return {values(table.cos), values(table.sin), table.dims, table.style};
    }
    KvLayer layer(KvLayer layer) {
      layer.keys = stage(layer.keys, owner_.buffers_.at(layer.keys));
      layer.values = stage(layer.values, owner_.buffers_.at(layer.values));
      return layer;
    }

   private:
    struct Copy {
      std::span<std::byte> host;
      std::unique_ptr<Buffer> device;
    };
    std::byte* stage(std::byte* host, std::size_t bytes) {
      for (const Copy& copy : copies_) {
        if (copy.host.data() == host && copy.host.size() == bytes) return copy.device->data();
      }
      copies_.push_back({{host, bytes}, owner_.device_->allocate(bytes)});
      if (bytes > 0) owner_.device_->write(copies_.back().device->data(), copies_.back().host);
      return copies_.back().device->data();
    }
    StagedBackend& owner_;
    std::vector<Copy> copies_;
  };

  std::unique_ptr<Backend> device_;
  std::map<std::byte*, std::size_t> buffers_;  // of allocate(), by address
};

}  // namespace tandem::test
