// The CPU time that a control group grants this process.
#pragma once
#include <filesystem>

namespace tandem {

// CPUs of quota: the smallest quota over period from the process's cgroup up to the root of what is mounted (v2:
// cpu.max; v1: cpu.cfs_quota_us and cpu.cfs_period_us); 0 when none is set. `root` holds proc/ and sys/; tests give
// another.
double cpu_quota(const std::filesystem::path& root = "/");

}  // namespace tandem
