// In which columns messages over the data ranks count.
#include "tools/training/axis_traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "comm/testing/world.h"
#include "parallel/moe/expert_mesh.h"

namespace plait::training {
namespace {

using comm::testing::World;
using parallel::Strategy;
using ::testing::ElementsAre;

// Columns of bytes that are not zero after a step in which every router exchanges a number.
std::vector<std::string> ColumnsOfRouters(const std::string& axis, int expert_ranks, Strategy strategy) {
  const comm::DeviceMesh mesh = *comm::DeviceMesh::Create(World(), {{axis, World().size()}});
  const comm::DeviceMesh experts = *moe::ExpertMesh(mesh, expert_ranks);
  AxisTraffic traffic(mesh, expert_ranks, strategy);
  traffic.BeginStep();
  const std::vector<double> one = {1};
  std::vector<double> all(static_cast<std::size_t>(World().size()));
  experts.axis("tokens").AllGather(comm::ConstBufferOf(absl::MakeConstSpan(one)),
                                   comm::BufferOf(absl::MakeSpan(all)));
  traffic.EndStep();
  std::vector<data::Scalar> scalars;
  traffic.TakeScalars(scalars);
  std::vector<std::string> columns;
  for (const data::Scalar& scalar : scalars) {
    if (scalar.name.substr(0, 11) == "comm_bytes_" && scalar.value > 0) columns.emplace_back(scalar.name);
  }
  return columns;
}

TEST(AxisTraffic, ExchangesOfRoutersCountWithAndWithoutExpertRanks) {
  EXPECT_THAT(ColumnsOfRouters("dp_shard", 2, Strategy::kFsdp), ElementsAre("comm_bytes_ep"));
  EXPECT_THAT(ColumnsOfRouters("dp_shard", 1, Strategy::kFsdp), ElementsAre("comm_bytes_dp_shard"));
  EXPECT_THAT(ColumnsOfRouters("dp_replicate", 1, Strategy::kDdp), ElementsAre("comm_bytes_dp_replicate"));
}

}  // namespace
}  // namespace plait::training
