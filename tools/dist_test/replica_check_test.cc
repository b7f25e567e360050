#include "tools/dist_test/replica_check.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>

#include "comm/testing/world.h"

namespace plait::dist_test {
namespace {

using ::testing::HasSubstr;

// Compares two tensors of zeros, with element 3 of the second one set to `value` on rank `rank` alone.
absl::Status Differing(int rank, double value) {
  const comm::Communicator& world = comm::testing::World();
  ReplicaCheck check(world);
  const at::Tensor first = at::zeros({2, 3}), second = at::zeros({5});
  if (world.rank() == rank) second[3].fill_(value);
  check.Compare("first", first);
  check.Compare("second", second);
  return check.Finish();
}

TEST(ReplicaCheck, FindsRankAndTensor) {
  const int last = comm::testing::World().size() - 1;
  const absl::Status status = Differing(last, 1e-30);
  ASSERT_EQ(status.ok(), last == 0) << status;
  if (last == 0) return;
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank " + std::to_string(last) + " differs from rank 0, first in second;"));
}

TEST(ReplicaCheck, NamesTheLowestRankThatDiffersFromRank0) {
  if (comm::testing::World().size() < 2) return;
  // Every other rank differs from rank 0 then.
  EXPECT_THAT(std::string(Differing(0, 1).message()), HasSubstr("rank 1 differs"));
}

TEST(ReplicaCheck, ComparesBits) {
  const int last = comm::testing::World().size() - 1;
  EXPECT_EQ(Differing(last, -0.0).ok(), last == 0);
  ReplicaCheck check(comm::testing::World());
  at::Tensor tensor = at::zeros({3});
  tensor[1].fill_(std::nan(""));
  check.Compare("tensor", tensor);
  EXPECT_TRUE(check.Finish().ok());
}

}  // namespace
}  // namespace plait::dist_test
