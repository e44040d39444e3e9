#include "src/base/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Two numbers of one or two files; what is absent, "max" or -1 sets no quota.
double quota_of(std::istream& quota, std::istream& period) {
  double quota_microseconds = 0, period_microseconds = 0;
  if (!(quota >> quota_microseconds) || !(period >> period_microseconds)) return 0;
  return quota_microseconds > 0 && period_microseconds > 0 ? quota_microseconds / period_microseconds : 0;
}

double quota_of_group(const fs::path& folder) {
  std::ifstream v2(folder / "cpu.max");
  if (v2) return quota_of(v2, v2);
  std::ifstream quota(folder / "cpu.cfs_quota_us"), period(folder / "cpu.cfs_period_us");
  return quota_of(quota, period);
}

// A parent's quota binds its children. In a container the path may name folders that only the host sees: those that are
// not there set nothing.
double smallest_quota(const fs::path& mount, const std::string& group) {
  double smallest = 0;
  for (fs::path at = fs::path(group).lexically_normal().relative_path();; at = at.parent_path()) {
    const double quota = quota_of_group(mount / at);
    if (quota > 0) smallest = smallest > 0 ? std::min(smallest, quota) : quota;
    if (at.empty()) return smallest;
  }
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

double cpu_quota(const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  // A line is ID:CONTROLLERS:PATH; v2 has no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    double quota = 0;
    if (controllers.empty()) {
      quota = smallest_quota(mounts, group);
    } else if (lists_cpu(controllers)) {
      quota = smallest_quota(fs::exists(mounts / controllers) ? mounts / controllers : mounts / "cpu", group);
    }
    if (quota > 0) return quota;
  }
  return 0;
}

}  // namespace tandem
