// Where a command without a config file runs its model: --backend, --reference and --threads.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "kernels/registry.h"
#include "src/engine/session.h"

namespace tandem {

struct BackendArgument {
  std::string kind = "auto";
  bool reference = false;
  int threads = 0;

  void add_to(CLI::App& command) {
    command.add_option("--threads", threads, "Threads; 0 takes what quota and affinity allow")
        ->check(CLI::Range(0, 256));
    CLI::Option* backend =
        command.add_option("--backend", kind, "As runtime.backend: auto, cpu, cuda ...")->capture_default_str();
    command.add_flag("--reference", reference, "F32 weights, activations and cache: slow, for checks")
        ->excludes(backend);
  }
  std::unique_ptr<ThreadPool> pool() const { return make_pool(threads); }
  // Throws as make_backend().
  std::unique_ptr<Backend> backend(ThreadPool& pool) const {
    return make_backend(reference ? "reference" : kind, pool);
  }
};

}  // namespace tandem
