// Adds the time of a scope to a number of seconds.
#pragma once
#include <chrono>

namespace tandem {

inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class ScopedSeconds {
 public:
  explicit ScopedSeconds(double& total) : total_(total), start_(now_seconds()) {}
  ~ScopedSeconds() { total_ += now_seconds() - start_; }
  ScopedSeconds(const ScopedSeconds&) = delete;
  ScopedSeconds& operator=(const ScopedSeconds&) = delete;

 private:
  double& total_;
  double start_;
};

}  // namespace tandem
