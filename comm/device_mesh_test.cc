#include "comm/device_mesh.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;
using Coordinates = std::vector<int>;
using Ranks = std::vector<std::int64_t>;

// The world ranks of a communicator's members, in its order.
Ranks Members(const Communicator& group) {
  std::int64_t mine[1] = {World().rank()};
  Ranks all(group.size());
  group.AllGather(BufferOf(absl::MakeSpan(mine)), BufferOf(absl::MakeSpan(all)));
  return all;
}

DeviceMesh Mesh222() { return *DeviceMesh::Create(World(), {{"dp_shard", 2}, {"cp", 2}, {"tp", -1}}); }

TEST(DeviceMesh, IsRowMajorWithTheLastAxisFastest) {
  const DeviceMesh mesh = Mesh222();
  EXPECT_EQ(mesh.axes()[2].size, 2);
  EXPECT_EQ(mesh.Coordinates(0), (Coordinates{0, 0, 0}));
  EXPECT_EQ(mesh.Coordinates(1), (Coordinates{0, 0, 1}));
  EXPECT_EQ(mesh.Coordinates(5), (Coordinates{1, 0, 1}));
  EXPECT_EQ(mesh.Coordinates(6), (Coordinates{1, 1, 0}));
}

TEST(DeviceMesh, AxesJoinTheRanksThatDifferAlongThemAlone) {
  const DeviceMesh mesh = Mesh222();
  const std::int64_t rank = World().rank();
  EXPECT_EQ(Members(mesh.axis("tp")), (Ranks{rank & ~1, rank | 1}));
  EXPECT_EQ(Members(mesh.axis("cp")), (Ranks{rank & ~2, rank | 2}));
  EXPECT_EQ(Members(mesh.axis("dp_shard")), (Ranks{rank & ~4, rank | 4}));
  EXPECT_EQ(mesh.axis("cp").rank(), mesh.Coordinates()[1]);
  EXPECT_EQ(mesh.axis("cp").name(), "cp");
}

TEST(DeviceMesh, FoldsAxesIntoAnExpertView) {
  const DeviceMesh mesh = Mesh222();
  const auto view = mesh.Fold({"dp_shard", "cp"}, {{"ep", 4}});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->Coordinates(6), (Coordinates{3, 0}));
  const std::int64_t tp = World().rank() % 2;
  EXPECT_EQ(Members(view->axis("ep")), (Ranks{tp, 2 + tp, 4 + tp, 6 + tp}));
  EXPECT_FALSE(view->Has("cp"));
  EXPECT_EQ(Members(view->axis("tp")), Members(mesh.axis("tp")));
}

TEST(DeviceMesh, FoldsInTheGivenOrderAndIntoSeveralAxes) {
  const DeviceMesh mesh = Mesh222();
  const auto view = mesh.Fold({"tp", "dp_shard"}, {{"outer", 1}, {"ep", -1}});
  ASSERT_TRUE(view.ok()) << view.status();
  // The view stands where tp stood: cp, outer, ep. ep = 2 tp + dp_shard.
  EXPECT_EQ(view->Coordinates(1), (Coordinates{0, 0, 2}));
  EXPECT_EQ(view->Coordinates(4), (Coordinates{0, 0, 1}));
  const std::int64_t cp = World().rank() & 2;
  EXPECT_EQ(Members(view->axis("ep")), (Ranks{cp, 4 + cp, 1 + cp, 5 + cp}));
}

TEST(DeviceMesh, AViewStandsBesideWhatItIsMadeOf) {
  const DeviceMesh mesh = Mesh222();
  const auto view = mesh.WithView({"dp_shard", "cp"}, {{"ep_shard", 1}, {"ep", -1}});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->Coordinates(6), (Coordinates{1, 1, 0, 0, 3}));
  const std::int64_t tp = World().rank() % 2;
  EXPECT_EQ(Members(view->axis("ep")), (Ranks{tp, 2 + tp, 4 + tp, 6 + tp}));
  EXPECT_EQ(view->axes()[4].size, 4);
  EXPECT_EQ(Members(view->axis("ep_shard")), (Ranks{World().rank()}));
  EXPECT_EQ(Members(view->axis("cp")), Members(mesh.axis("cp")));
  const auto two = view->WithView({"cp", "tp"}, {{"pair", 4}});
  EXPECT_EQ(Members(two->axis("pair")).size(), 4u);
  EXPECT_EQ(Members(two->Fold({"tp"}, {{"split", 2}})->axis("split")), Members(mesh.axis("tp")));
  EXPECT_EQ(Members(view->WithSubset("tp", {1, 0}, "ends")->axis("ends")).size(), 2u);
  // The coordinates of an axis that is made of others are theirs: not to be split once more.
  EXPECT_FALSE(view->WithView({"ep"}, {{"pair", 2}, {"other", 2}}).ok());
  EXPECT_FALSE(view->Fold({"ep"}, {{"pair", 2}, {"other", 2}}).ok());
  EXPECT_FALSE(view->WithSubset("ep", {0, 3}, "ends").ok());
  EXPECT_FALSE(mesh.WithView({"dp_shard", "cp"}, {{"cp", 4}}).ok());
  EXPECT_FALSE(mesh.WithView({"dp_shard", "cp"}, {{"ep", 3}}).ok());
}

TEST(DeviceMesh, ASubsetOfAnAxisIsAnAxisOfItsOwn) {
  const auto mesh = *DeviceMesh::Create(World(), {{"pp", 4}, {"dp", 2}});
  const auto view = mesh.WithSubset("pp", {3, 0}, "ends");
  ASSERT_TRUE(view.ok()) << view.status();
  const std::int64_t dp = World().rank() % 2, stage = World().rank() / 2;
  const bool is_end = stage == 0 || stage == 3;
  EXPECT_EQ(Members(view->axis("ends")), is_end ? (Ranks{6 + dp, dp}) : (Ranks{World().rank()}));
  EXPECT_EQ(view->axes()[2].size, is_end ? 2 : 1);
  EXPECT_EQ(view->Coordinates()[2], stage == 0 ? 1 : 0);
  EXPECT_EQ(Members(view->axis("dp")), Members(mesh.axis("dp")));
  EXPECT_FALSE(mesh.WithSubset("tp", {0}, "ends").ok());
  EXPECT_FALSE(mesh.WithSubset("pp", {0, 4}, "ends").ok());
  EXPECT_FALSE(mesh.WithSubset("pp", {1, 1}, "ends").ok());
  EXPECT_FALSE(mesh.WithSubset("pp", {0, 1}, "dp").ok());
}

TEST(DeviceMesh, DescribesARank) {
  EXPECT_EQ(DeviceMesh::Create(World(), {{"dp", 8}})->Describe(),
            "[" + std::to_string(World().rank()) + "/7] [dp:" + std::to_string(World().rank()) + "/7]");
}

TEST(DeviceMesh, RefusesShapesThatDoNotFit) {
  const auto message = [](std::vector<MeshAxis> axes) {
    return std::string(DeviceMesh::Create(World(), std::move(axes)).status().message());
  };
  EXPECT_EQ(
      message({{"dp", 2}, {"tp", 3}}),
      "mesh dp=2 x tp=3 does not have one place for each of 8 ranks: the product of the sizes must be 8");
  EXPECT_EQ(
      message({{"dp", -1}, {"tp", 3}}),
      "mesh dp=-1 x tp=3 does not have one place for each of 8 ranks: the product of the sizes must be 8");
  EXPECT_EQ(message({{"tp", 2}, {"tp", 4}}), "mesh tp=2 x tp=4: axis tp appears twice");
  EXPECT_EQ(message({{"dp", 0}, {"tp", 8}}),
            "mesh dp=0 x tp=8: sizes must be positive, one of them may be -1");
  EXPECT_EQ(message({{"dp", -1}, {"tp", -1}}),
            "mesh dp=-1 x tp=-1: sizes must be positive, one of them may be -1");
  EXPECT_EQ(message({{"", 8}}), "mesh =8: an axis has no name");
}

TEST(DeviceMesh, RefusesFoldsThatDoNotFit) {
  const DeviceMesh mesh = Mesh222();
  EXPECT_FALSE(mesh.Fold({"pp"}, {{"ep", 2}}).ok());
  EXPECT_FALSE(mesh.Fold({"cp", "cp"}, {{"ep", 4}}).ok());
  EXPECT_FALSE(mesh.Fold({"dp_shard", "cp"}, {{"ep", 8}}).ok());
  EXPECT_FALSE(mesh.Fold({"dp_shard", "cp"}, {{"tp", 4}}).ok());
  EXPECT_FALSE(mesh.Fold({}, {{"ep", 1}}).ok());
}

}  // namespace
}  // namespace plait::comm
