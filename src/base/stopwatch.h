// Where times come from, and adding the time of a scope to a number of seconds.
#pragma once
#include <chrono>

namespace tandem {

// What reads the time. Whoever measures holds one, so that a test can say what time it is.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double seconds() const = 0;  // since any fixed moment; never falls
};

// The machine's own clock.
class SteadyClock final : public Clock {
 public:
  double seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

inline const Clock& steady_clock() {
  static const SteadyClock clock;
  return clock;
}

inline double now_seconds() { return steady_clock().seconds(); }

// `clock` and `total` outlive the scope.
class ScopedSeconds {
 public:
  explicit ScopedSeconds(double& total, const Clock& clock = steady_clock())
      : total_(total), clock_(clock), start_(clock.seconds()) {}
  ~ScopedSeconds() { total_ += clock_.seconds() - start_; }
  ScopedSeconds(const ScopedSeconds&) = delete;
  ScopedSeconds& operator=(const ScopedSeconds&) = delete;

 private:
  double& total_;
  const Clock& clock_;
  double start_;
};

}  // namespace tandem
