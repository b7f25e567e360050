// Valid and invalid meshes, error messages, and the number of ranks of a run.
#include "tools/training/mesh.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace plait::training {
namespace {

using parallel::Strategy;

// (dp_replicate, dp_shard)
std::pair<int, int> ShapeOf(const std::string& mesh, Strategy strategy, int ranks) {
  const absl::StatusOr<std::vector<comm::MeshAxis>> axes = MeshOf(mesh, {.strategy = strategy}, ranks);
  EXPECT_TRUE(axes.ok()) << axes.status();
  return axes.ok() ? std::pair((*axes)[0].size, (*axes)[1].size) : std::pair(-1, -1);
}

std::string ErrorOf(const std::string& mesh, Strategy strategy, int ranks) {
  const absl::Status status = MeshOf(mesh, {.strategy = strategy}, ranks).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << mesh;
  return std::string(status.message());
}

// (dp_replicate, dp_shard, lp) of a program with a layer-parallel solver.
std::vector<int> LayerParallel(const std::string& mesh, Strategy strategy, int ranks) {
  std::vector<int> sizes;
  const auto axes = MeshOf(mesh, {.strategy = strategy, .axes = {"lp"}, .default_axis = "lp"}, ranks);
  for (const comm::MeshAxis& axis : *axes) sizes.push_back(axis.size);
  return sizes;
}

TEST(MeshOf, LayerParallelRanksAreNeighbours) {
  EXPECT_EQ(LayerParallel("", Strategy::kDdp, 6), (std::vector<int>{1, 1, 6}));
  EXPECT_EQ(LayerParallel("lp=2,dp_replicate=3", Strategy::kDdp, 6), (std::vector<int>{3, 1, 2}));
  EXPECT_EQ(LayerParallel("lp=2,dp_shard=-1", Strategy::kFsdp, 6), (std::vector<int>{1, 3, 2}));
  EXPECT_EQ(ErrorOf("lp=2", Strategy::kDdp, 2),
            "--mesh=lp=2: this program has no layer-parallel solver (lp); expected dp_replicate or dp_shard");
}

TEST(MeshOf, AxesThatTheProgramLacksAreNamed) {
  EXPECT_EQ(ErrorOf("dp_shard=2,pp=2", Strategy::kFsdp, 4),
            "--mesh=dp_shard=2,pp=2: this program has no pipeline parallelism (pp); expected dp_replicate or "
            "dp_shard");
  EXPECT_EQ(
      MeshOf("cp=2", {.strategy = Strategy::kFsdp, .axes = {"tp", "pp"}}, 2).status().message(),
      "--mesh=cp=2: this program has no context parallelism (cp); expected pp or dp_replicate or dp_shard "
      "or tp");
}

TEST(MeshOf, StagesAreFarthestApartAndSplitTensorsNearest) {
  const auto axes =
      *MeshOf("tp=2,dp_shard=3,pp=2", {.strategy = Strategy::kFsdp, .axes = {"tp", "cp", "pp", "lp"}}, 12);
  std::string text;
  for (const comm::MeshAxis& axis : axes) text += axis.name + "=" + std::to_string(axis.size) + " ";
  EXPECT_EQ(text, "pp=2 dp_replicate=1 dp_shard=3 cp=1 lp=1 tp=2 ");
}

TEST(MeshOf, WithoutAMeshTheStrategyChoosesTheAxis) {
  EXPECT_EQ(ShapeOf("", Strategy::kDdp, 6), std::pair(6, 1));
  for (const Strategy strategy : {Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
    EXPECT_EQ(ShapeOf("", strategy, 6), std::pair(1, 6)) << Name(strategy);
  }
}

TEST(MeshOf, ReadsSizes) {
  EXPECT_EQ(ShapeOf("dp_replicate=2,dp_shard=3", Strategy::kFsdp, 6), std::pair(2, 3));
  EXPECT_EQ(ShapeOf("dp_shard=3,dp_replicate=2", Strategy::kFsdp, 6), std::pair(2, 3));
  EXPECT_EQ(ShapeOf("dp_shard=6", Strategy::kZero1, 6), std::pair(1, 6));
  EXPECT_EQ(ShapeOf("dp_replicate=6", Strategy::kDdp, 6), std::pair(6, 1));
  EXPECT_EQ(ShapeOf("dp_replicate=6,dp_shard=1", Strategy::kDdp, 6), std::pair(6, 1));
}

TEST(MeshOf, OneAxisTakesTheRest) {
  EXPECT_EQ(ShapeOf("dp_replicate=2,dp_shard=-1", Strategy::kFsdp, 6), std::pair(2, 3));
  EXPECT_EQ(ShapeOf("dp_shard=3,dp_replicate=-1", Strategy::kFsdp, 6), std::pair(2, 3));
  EXPECT_EQ(ShapeOf("dp_shard=-1", Strategy::kFsdp, 4), std::pair(1, 4));
}

TEST(MeshOf, SaysWhatItExpects) {
  for (const std::string mesh : {"2,2", "2x2", "dp_shard", "dp_shard=", "dp_shard=0", "dp_shard=-2",
                                 "dp_shard=x", "dp_shard=2,", "dp_shard=2=2", "dp_shard=99999999999"}) {
    EXPECT_EQ(ErrorOf(mesh, Strategy::kFsdp, 2),
              "--mesh=" + mesh + ": expected axes and sizes such as dp_replicate=2,dp_shard=2");
  }
  EXPECT_EQ(ErrorOf("qp=2", Strategy::kFsdp, 2),
            "--mesh=qp=2: no axis \"qp\"; expected axes and sizes such as dp_replicate=2,dp_shard=2");
  EXPECT_EQ(ErrorOf("dp_shard=2,dp_shard=2", Strategy::kFsdp, 2),
            "--mesh=dp_shard=2,dp_shard=2: dp_shard comes twice; "
            "expected axes and sizes such as dp_replicate=2,dp_shard=2");
  EXPECT_EQ(ErrorOf("dp_shard=-1,dp_replicate=-1", Strategy::kFsdp, 2),
            "--mesh=dp_shard=-1,dp_replicate=-1: -1 for one axis at most");
}

TEST(MeshOf, RefusesOtherRanksThanThereAre) {
  EXPECT_EQ(ErrorOf("dp_replicate=2,dp_shard=2", Strategy::kFsdp, 2),
            "--mesh=dp_replicate=2,dp_shard=2: 2 x 2 = 4 ranks, but there are 2; "
            "let the sizes multiply to it, or give --nproc=4");
  // The remaining ranks are not an integer, or none.
  EXPECT_NE(ErrorOf("dp_replicate=4,dp_shard=-1", Strategy::kFsdp, 6).find(": 4 ranks, but there are 6"),
            std::string::npos);
  EXPECT_NE(ErrorOf("dp_shard=-1,dp_replicate=2", Strategy::kZero1, 5).find("2 x 2 = 4 ranks"),
            std::string::npos);
  EXPECT_NE(ErrorOf("dp_shard=4,dp_replicate=-1", Strategy::kFsdp, 2).find(": 4 ranks, but there are 2"),
            std::string::npos);
}

TEST(MeshOf, RefusesSharesUnderDdp) {
  EXPECT_EQ(
      ErrorOf("dp_shard=2", Strategy::kDdp, 2),
      "--mesh=dp_shard=2: ddp replicates everything; expected dp_shard=1, or --strategy=zero1, zero2 or "
      "fsdp");
}

TEST(RanksToStart, AsToldElseOfTheMeshElseOneForEachCore) {
  EXPECT_EQ(*RanksToStart(5, "dp_replicate=2,dp_shard=3", 64), 5);
  EXPECT_EQ(*RanksToStart(0, "dp_replicate=2,dp_shard=3", 64), 6);
  EXPECT_EQ(*RanksToStart(0, "dp_replicate=2,dp_shard=-1", 4), 4);
  EXPECT_EQ(*RanksToStart(0, "", 4), 4);
  EXPECT_EQ(*RanksToStart(0, "", 64), kMostDefaultRanks);
  EXPECT_EQ(*RanksToStart(0, "", 0), 1);      // a machine that does not tell
  EXPECT_EQ(*RanksToStart(0, "tp=2", 4), 2);  // MeshOf refuses what the program lacks
  EXPECT_FALSE(RanksToStart(0, "xp=2", 4).ok());
}

TEST(RanksOfRun, ALaunchersRanksAreThose) {
  const comm::Launcher none, mpirun = {.kind = comm::LauncherKind::kOpenMpi, .size = 3};
  EXPECT_EQ(*RanksOfRun(2, "", none, 64), 2);
  EXPECT_EQ(*RanksOfRun(0, "", mpirun, 64), 3);
  EXPECT_EQ(*RanksOfRun(3, "dp_shard=3", mpirun, 64), 3);
  EXPECT_EQ(RanksOfRun(2, "", mpirun, 64).status().message(),
            "--nproc=2: a launcher has started 3 ranks; leave --nproc out");
}

}  // namespace
}  // namespace plait::training
