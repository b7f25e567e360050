#include "base/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace plait::base {
namespace {

constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;

class Limit {
 public:
  Limit() { getrlimit(RLIMIT_AS, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() { Set(static_cast<std::int64_t>(before_.rlim_cur)); }

  void Set(std::int64_t bytes) const {
    const rlimit limit = {static_cast<rlim_t>(bytes), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  bool is_set() const { return before_.rlim_cur != RLIM_INFINITY; }

 private:
  rlimit before_{};
};

// As much as can be mapped, and no more.
TEST(AddressSpaceLeft, IsWhatTheLimitLeaves) {
  const Limit limit;
  if (!limit.is_set()) {
    EXPECT_FALSE(AddressSpaceLeft().has_value());
  }
  limit.Set(1 << 30);
  const std::int64_t left = AddressSpaceLeft().value_or(-1);
  ASSERT_GT(left, 64 * kMegabyte);
  const auto maps = [](std::int64_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) munmap(memory, bytes);
    return memory != MAP_FAILED;
  };
  // The test itself may map some in between.
  EXPECT_TRUE(maps(left - kMegabyte));
  EXPECT_FALSE(maps(left + kMegabyte));
  limit.Set(kMegabyte);
  EXPECT_EQ(AddressSpaceLeft(), 0);
}

}  // namespace
}  // namespace plait::base
