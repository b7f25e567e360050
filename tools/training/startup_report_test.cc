// What is logged on which ranks, in which order.
#include "tools/training/startup_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"

namespace plait::training {
namespace {

using comm::testing::World;
using ::testing::HasSubstr;
using ::testing::Not;

// Everything that a rank logs.
std::string Said(const comm::DeviceMesh& mesh, const StartupOptions& options,
                 RunEnvironment* environment = nullptr) {
  std::string said;
  const auto lookup = [](const char*) -> const char* { return nullptr; };
  const base::Log log = *base::MakeLog({.rank = World().rank(), .lookup = lookup},
                                       [&said](absl::string_view line) { absl::StrAppend(&said, line); });
  const RunEnvironment found = ReportStartup(mesh, options, log);
  if (environment != nullptr) *environment = found;
  return said;
}

TEST(StartupReport, RankZeroSaysMachineDeviceAxesAndRanks) {
  const int ranks = World().size();
  const auto mesh = *comm::DeviceMesh::Create(World(), {{"dp_replicate", 1}, {"dp_shard", ranks}});
  RunEnvironment environment;
  const std::string said = Said(mesh, {.strategy = "FSDP"}, &environment);
  EXPECT_EQ(environment.job.size, ranks);
  EXPECT_EQ(environment.device.kind, "cpu");
  if (World().rank() != 0) {
    EXPECT_EQ(said, "");
    return;
  }
  std::size_t at = 0;
  const std::string device = absl::StrCat("[0/", ranks, "] Using device='cpu' with backend='FSDP'");
  const std::string axis = absl::StrCat("> initializing dp_shard with size ", ranks);
  for (const std::string& next : {std::string("logging level is 'INFO'"), std::string("[dist_info]:"), device,
                                  std::string("> initializing dp_replicate with size 1"), axis,
                                  absl::StrCat("[dp_shard:", ranks - 1, "/", ranks - 1, "]")}) {
    const std::size_t found = said.find(next, at);
    ASSERT_NE(found, std::string::npos) << next << " after " << said.substr(0, at) << "\nin " << said;
    at = found;
  }
  EXPECT_THAT(said.substr(at), Not(HasSubstr("dist_info")));
}

TEST(StartupReport, TheAxisDpIsDdp) {
  const auto mesh = *comm::DeviceMesh::Create(World(), {{"dp", World().size()}});
  const std::string said = Said(mesh, {.strategy = "DDP"});
  if (World().rank() != 0) return;
  EXPECT_THAT(said, HasSubstr(absl::StrCat("> initializing ddp with size ", World().size(), "\n")));
}

TEST(StartupReport, DeviceMeshHasTheRanksByAxis) {
  const int ranks = World().size();
  const auto mesh = *comm::DeviceMesh::Create(
      World(), {{"pp", 1}, {"dp_shard", ranks / 2 > 1 ? ranks / 2 : 1}, {"tp", ranks > 1 ? 2 : 1}});
  const std::map<int, std::string> expected = {
      {1, "DeviceMesh([[[0]]], mesh_dim_names=('pp', 'dp_shard', 'tp'))"},
      {2, "DeviceMesh([0, 1], mesh_dim_names=('tp'))"},
      {4, "DeviceMesh([[0, 1], [2, 3]], mesh_dim_names=('dp_shard', 'tp'))"}};
  EXPECT_EQ(DeviceMeshText(mesh), expected.at(ranks));
  const std::string said = Said(mesh, {.strategy = "FSDP"});
  if (World().rank() != 0) return;
  EXPECT_THAT(said, HasSubstr("> initializing tensor parallel with size "));
  EXPECT_THAT(said, HasSubstr("> initializing pipeline with size 1"));
}

TEST(StartupReport, FactsAreThoseOfTheProgramAndThePlace) {
  RunEnvironment environment;
  environment.job.size = 3;
  environment.job.machine = "some machine";
  environment.job.launch_command = "mpirun -n 3 train_x";
  const data::RunFacts facts = FactsOf("train_x", 7, "Namespace(a=1)", environment);
  EXPECT_EQ(facts.program, "train_x");
  EXPECT_EQ(facts.seed, "7");
  EXPECT_EQ(facts.ranks, 3);
  EXPECT_EQ(facts.settings, "Namespace(a=1)");
  EXPECT_EQ(facts.machine, "some machine");
  EXPECT_EQ(facts.launch_command, "mpirun -n 3 train_x");
  EXPECT_NE(facts.revision, "");
}

}  // namespace
}  // namespace plait::training
