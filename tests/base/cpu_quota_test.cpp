#include "src/base/cpu_quota.h"

#include <gtest/gtest.h>

#include "src/base/thread_pool.h"
#include "tests/base/temp_dir.h"

namespace tandem {
namespace {

// A root with proc/self/cgroup and whatever files of groups a test adds.
class CpuQuota : public testing::Test {
 protected:
  void groups(std::string_view lines) { file("proc/self/cgroup", lines); }
  void file(const std::string& name, std::string_view content) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path() + "/" + name).parent_path());
    folder_.file(name, content);
  }
  double quota() const { return cpu_quota(folder_.path()); }

  test::TempDir folder_;
};

TEST_F(CpuQuota, IsNoneWithoutCgroups) { EXPECT_EQ(quota(), 0); }

TEST_F(CpuQuota, OfVersion2) {
  groups("0::/\n");
  EXPECT_EQ(quota(), 0);
  file("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
  file("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CpuQuota, OfTheProcessesOwnGroupAndItsParents) {
  groups("0::/user.slice/job.scope\n");
  file("sys/fs/cgroup/user.slice/job.scope/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
  file("sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
  file("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(CpuQuota, OfAContainerWhosePathOnlyTheHostSees) {
  groups("0::/kubepods/pod1\n");
  file("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(CpuQuota, OfVersion1) {
  groups("5:memory:/\n4:cpu,cpuacct:/job\n1:cpuset:/\n0::/\n");
  file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
  file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 4);
}

TEST_F(CpuQuota, OfVersion1UnderTheNameOfTheControllerAlone) {
  groups("1:cpu:/\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuota, BrokenFilesSetNone) {
  groups("nonsense\n0::/../..\n");
  file("sys/fs/cgroup/cpu.max", "many 100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST(ThreadsFor, TakesWholeCpusOfTheQuotaAndAtLeastOne) {
  EXPECT_EQ(threads_for(8, 0), 8);
  EXPECT_EQ(threads_for(8, 3), 3);
  EXPECT_EQ(threads_for(8, 2.9), 2);
  EXPECT_EQ(threads_for(8, 0.5), 1);
  EXPECT_EQ(threads_for(2, 16), 2);
  EXPECT_EQ(threads_for(0, 0), 1);
}

}  // namespace
}  // namespace tandem
