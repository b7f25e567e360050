// The checks on CPU and on made-up outputs of programs; list, selection and report.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "comm/testing/world.h"
#include "tools/gpu_checks/check.h"

namespace plait::gpu_checks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Programs that give the output of the longest key that occurs in their command line, and an exit code.
struct FakePrograms {
  std::map<std::string, std::string> outputs = {};
  std::vector<std::string> known = {"test_dist",   "doctor",    "conformance_nccl_test_on_ranks",
                                    "mpirun",      "train_gpt", "train_llama",
                                    "train_vit",   "train_cnn", "train_gru",
                                    "train_odenet"};
  int code = 0;

  Context MakeContext(int gpus = 1) const {
    Programs programs = {.directory = "bin", .scratch = ::testing::TempDir()};
    programs.exists = [known = known](const std::string& name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    };
    programs.run = [outputs = outputs, code = code](const std::vector<std::string>& command) -> ProgramRun {
      const std::string line = absl::StrJoin(command, " ");
      std::string longest;
      for (const auto& [key, output] : outputs) {
        if (absl::StrContains(line, key) && key.size() > longest.size()) longest = key;
      }
      return longest.empty() ? ProgramRun{127, ""} : ProgramRun{code, outputs.at(longest)};
    };
    return {.world = comm::testing::World(), .gpus = gpus, .programs = std::move(programs)};
  }
};

std::string Steps(double factor) {
  return absl::StrCat("  • DEVICE=cuda\n[..] - iter=1, loss=", 2000 * factor,
                      ", sps=1\n[..] - iter=2, loss=", 1500 * factor,
                      ", sps=1\nparameters are bitwise identical on all 2 ranks\n");
}

TEST(TensorChecks, PassOnCpu) {
  const Context context = FakePrograms().MakeContext();
  EXPECT_EQ(CheckGruCell(context).outcome, Outcome::kPassed) << CheckGruCell(context).numbers;
  EXPECT_EQ(CheckLayerParallel(context).outcome, Outcome::kPassed) << CheckLayerParallel(context).numbers;
  EXPECT_EQ(CheckCrossEntropy(context).outcome, Outcome::kPassed) << CheckCrossEntropy(context).numbers;
  EXPECT_THAT(CheckGruCell(context).numbers, HasSubstr("float32: largest error"));
}

TEST(TensorChecks, NanIsAFailure) {
  EXPECT_EQ(Compared(std::nan(""), 1).outcome, Outcome::kFailed);
  EXPECT_EQ(Compared(2, 1).outcome, Outcome::kFailed);
  EXPECT_EQ(Compared(1, 1).outcome, Outcome::kPassed);
}

TEST(NcclCheck, ReadsTheTestsSummary) {
  FakePrograms programs;
  programs.outputs["nccl"] = "[ RUN ] A\n[  PASSED  ] 41 tests.\n";
  const Result passed = CheckNccl(programs.MakeContext());
  EXPECT_EQ(passed.outcome, Outcome::kPassed);
  EXPECT_THAT(passed.numbers, ::testing::StartsWith("1 rank: 41 tests."));
  EXPECT_EQ(CheckNccl(programs.MakeContext(4)).numbers,
            "1 rank: 41 tests. 2 ranks: 41 tests. 4 ranks: 41 tests.");
  programs.outputs["mpirun -n 4"] = "[ RUN ] A\n[  FAILED  ] 1 test.\n";
  EXPECT_EQ(CheckNccl(programs.MakeContext(4)).numbers, "4 ranks: exit code 0: [  FAILED  ] 1 test.");
  programs.code = 1;
  EXPECT_EQ(CheckNccl(programs.MakeContext()).outcome, Outcome::kFailed);
  programs.outputs["nccl"] = "libnccl.so.2: cannot open shared object file\n";
  EXPECT_EQ(CheckNccl(programs.MakeContext()).outcome, Outcome::kFailed);
}

TEST(TestDistCheck, ComparesTheLossesOfAllStrategies) {
  FakePrograms programs;
  programs.outputs["--device=cpu"] = Steps(1);
  programs.outputs["--device=cuda"] = Steps(1 + 1e-5);
  EXPECT_EQ(CheckTestDist(programs.MakeContext()).outcome, Outcome::kPassed);
  programs.outputs["--device=cuda --strategy=fsdp"] = Steps(1.01);
  EXPECT_EQ(CheckTestDist(programs.MakeContext()).outcome, Outcome::kFailed);
  programs.outputs["--device=cuda --strategy=fsdp"] =
      "DEVICE=cuda\niter=1, loss=2000, sps=1\nparameters are bitwise identical\n";
  EXPECT_EQ(CheckTestDist(programs.MakeContext()).outcome, Outcome::kFailed);
  programs.outputs["--device=cuda --strategy=fsdp"] =
      "DEVICE=cuda\niter=1, loss=nan, x\niter=2, loss=1500, x\n"
      "parameters are bitwise identical\n";
  EXPECT_EQ(CheckTestDist(programs.MakeContext()).outcome, Outcome::kFailed);
  programs.outputs["--device=cuda --strategy=fsdp"] = "test_dist: out of memory\n";
  EXPECT_THAT(CheckTestDist(programs.MakeContext()).numbers,
              HasSubstr("exit code 0: test_dist: out of memory"));
}

TEST(TestDistCheck, WithoutLossesIsAFailure) {
  FakePrograms programs;
  programs.outputs["--device="] = "DEVICE=cuda\n";
  EXPECT_EQ(CheckTestDist(programs.MakeContext()).outcome, Outcome::kFailed);
}

TEST(RanksCheck, NeedsTwoGpusAndMpirun) {
  FakePrograms programs;
  EXPECT_EQ(CheckTestDistRanks(programs.MakeContext(1)).outcome, Outcome::kSkipped);
  programs.outputs["--nproc=2"] = Steps(1);
  EXPECT_EQ(CheckTestDistRanks(programs.MakeContext(2)).outcome, Outcome::kPassed);
  programs.outputs["--nproc=2"] = "DEVICE=cuda\ntest_dist: parameters are not bitwise identical\n";
  EXPECT_EQ(CheckTestDistRanks(programs.MakeContext(2)).outcome, Outcome::kFailed);
  programs.known = {"test_dist"};
  EXPECT_EQ(CheckTestDistRanks(programs.MakeContext(2)).outcome, Outcome::kSkipped);
}

// The lines of losses that each program prints, multiplied by `factor`.
std::string TrainerOutput(const std::string& program, double factor) {
  const auto number = [factor](double loss) { return absl::StrFormat("%.6f", loss * factor); };
  std::string text = "DEVICE=cuda\n";
  if (program == "train_llama" || program == "train_vit") {
    return absl::StrCat(text, "iter=0 loss=", number(3.5), " dt=1\n");
  }
  if (program == "train_odenet")
    return absl::StrCat(text, "train_loss=", number(3.5), " val_loss=", number(3), " val_acc=9\n");
  if (program == "train_gpt") {
    return absl::StrCat(text, "step=1 loss=", number(4.25), " dt=1\nestimates: train_loss=", number(4.125),
                        " val_loss=", number(4.5), ", 2 x 2 batches\n");
  }
  if (program == "train_cnn") {
    return absl::StrCat(text, "epoch=1 train_loss=", number(2.5), " test_loss=", number(2.25),
                        " test_acc=9\n");
  }
  return absl::StrCat(text, "Train Epoch:  1 [20/48]\tLoss: ", number(1.75), "\tTime Per Batch 0.1\n");
}

TEST(TrainerCheck, ComparesAllLossesOfEachProgram) {
  for (const std::string program :
       {"train_gpt", "train_llama", "train_vit", "train_cnn", "train_gru", "train_odenet"}) {
    FakePrograms programs;
    programs.outputs[program + " --nproc=1 --device=cpu"] = TrainerOutput(program, 1);
    std::string& cuda = programs.outputs[program + " --nproc=1 --device=cuda"];
    cuda = TrainerOutput(program, 1 + 1e-6);
    EXPECT_EQ(CheckTrainer(programs.MakeContext(), program).outcome, Outcome::kPassed);
    cuda = TrainerOutput(program, 1 + 1e-4);
    EXPECT_EQ(CheckTrainer(programs.MakeContext(), program).outcome, Outcome::kFailed);
    cuda = absl::StrReplaceAll(TrainerOutput(program, 1), {{"=cuda", "=cpu"}});
    EXPECT_EQ(CheckTrainer(programs.MakeContext(), program).outcome, Outcome::kFailed);
    cuda = absl::StrCat(TrainerOutput(program, 1), "train_loss=nan ");
    EXPECT_EQ(CheckTrainer(programs.MakeContext(), program).outcome, Outcome::kFailed);
    cuda = "DEVICE=cuda\n";
    EXPECT_EQ(CheckTrainer(programs.MakeContext(), program).outcome, Outcome::kFailed);
    cuda = TrainerOutput(program, 1);
    programs.code = 1;
    EXPECT_EQ(CheckTrainer(programs.MakeContext(), program).outcome, Outcome::kFailed);
  }
}

// What each of the models prints on one rank of CPU, and on several of GPUs times `factor`.
FakePrograms WithMeshes(double factor) {
  FakePrograms programs;
  const auto output = [](const std::string& device, double loss) {
    return absl::StrCat("DEVICE=", device, "\nstep=1 loss=", absl::StrFormat("%.6f", loss), " dt=1\n");
  };
  programs.outputs["--nproc=1 --device=cpu"] = output("cpu", 4.25);
  programs.outputs["mpirun"] = output("cuda", 4.25 * factor);
  return programs;
}

TEST(MeshesCheck, ComparesEachMeshWithOneRank) {
  EXPECT_EQ(CheckMeshes(WithMeshes(1 + 1e-6).MakeContext(4)).outcome, Outcome::kPassed);
  EXPECT_EQ(CheckMeshes(WithMeshes(1 + 1e-4).MakeContext(4)).outcome, Outcome::kFailed);
  FakePrograms one_is_off = WithMeshes(1);
  one_is_off.outputs["--mesh=cp=2 --context-attention=ulysses --device=cuda"] =
      "DEVICE=cuda\nstep=1 loss=4.26 dt=1\n";
  const Result off = CheckMeshes(one_is_off.MakeContext(4));
  EXPECT_EQ(off.outcome, Outcome::kFailed);
  EXPECT_THAT(off.numbers, HasSubstr("gpt --mesh=cp=2 --context-attention=ulysses: error 0.002"));
  FakePrograms on_cpu = WithMeshes(1);
  on_cpu.outputs["--mesh=tp=2"] = "DEVICE=cpu\nstep=1 loss=4.25 dt=1\n";
  EXPECT_EQ(CheckMeshes(on_cpu.MakeContext(4)).outcome, Outcome::kFailed);
  FakePrograms silent = WithMeshes(1);
  silent.outputs["mpirun"] = "DEVICE=cuda\n";
  EXPECT_EQ(CheckMeshes(silent.MakeContext(4)).outcome, Outcome::kFailed);
  FakePrograms failing = WithMeshes(1);
  failing.code = 1;
  EXPECT_EQ(CheckMeshes(failing.MakeContext(4)).outcome, Outcome::kFailed);
}

TEST(MeshesCheck, NeedsMpirun) {
  FakePrograms programs = WithMeshes(1);
  std::erase(programs.known, "mpirun");
  EXPECT_EQ(CheckMeshes(programs.MakeContext(4)).outcome, Outcome::kSkipped);
}

TEST(MeshesCheck, RanksThatShareAGpuGetHostNamesOfTheirOwn) {
  if (geteuid() != 0) {
    EXPECT_EQ(CheckMeshes(WithMeshes(1).MakeContext(1)).outcome, Outcome::kSkipped);
    return;
  }
  FakePrograms programs = WithMeshes(1);
  programs.outputs["mpirun"] = "";  // shorter than the key below
  programs.outputs
      ["NCCL_SOCKET_IFNAME=lo timeout --kill-after=5 90 mpirun -n 2 --oversubscribe --bind-to none unshare "
       "--uts sh -c hostname"] = programs.outputs
                                     ["NCCL_SOCKET_IFNAME=lo timeout --kill-after=5 90 mpirun -n 4 "
                                      "--oversubscribe --bind-to none unshare --uts sh -c hostname"] =
      "DEVICE=cuda\nstep=1 loss=4.25 dt=1\n";
  EXPECT_EQ(CheckMeshes(programs.MakeContext(1)).outcome, Outcome::kPassed);
}

TEST(DoctorCheck, FailsOnErrorAlone) {
  FakePrograms programs;
  programs.outputs["doctor"] = "OK       MPI: fine\nWARNING  gnuplot: none\n";
  EXPECT_EQ(CheckDoctor(programs.MakeContext()).numbers, "1 OK, 1 WARNING");
  programs.outputs["doctor"] = "OK       MPI: fine\nERROR    devices: no driver\n";
  const Result failed = CheckDoctor(programs.MakeContext());
  EXPECT_EQ(failed.outcome, Outcome::kFailed);
  EXPECT_THAT(failed.numbers, HasSubstr("no driver"));
  programs.outputs["doctor"] = "";
  EXPECT_EQ(CheckDoctor(programs.MakeContext()).outcome, Outcome::kFailed);
}

TEST(ProgramChecks, MissingProgramsAreSkipped) {
  const Context context = FakePrograms{.known = {}}.MakeContext(2);
  for (const auto check : {CheckNccl, CheckTestDist, CheckTestDistRanks, CheckDoctor}) {
    EXPECT_EQ(check(context).outcome, Outcome::kSkipped);
    EXPECT_THAT(check(context).numbers, HasSubstr(" in bin"));
  }
  EXPECT_EQ(CheckTrainer(context, "train_gpt").outcome, Outcome::kSkipped);
  EXPECT_EQ(CheckMeshes(FakePrograms{.known = {"mpirun"}}.MakeContext(4)).outcome, Outcome::kSkipped);
}

TEST(Select, ByName) {
  const absl::StatusOr<std::vector<Check>> two = Select(AllChecks(), "doctor,nccl");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->at(0).name, "doctor");
  EXPECT_EQ(two->at(1).name, "nccl");
  EXPECT_EQ(Select(AllChecks(), "")->size(), AllChecks().size());
  EXPECT_THAT(std::string(Select(AllChecks(), "gpu").status().message()),
              HasSubstr("--checks: no check \"gpu\"; expected some of nccl,gru_cell,"));
}

TEST(RunCheck, TurnsExceptionsIntoFailures) {
  const Check check = {"a", "b",
                       [](const Context&) -> Result { throw std::runtime_error("line 1\nline 2"); }};
  const Result result = RunCheck(check, FakePrograms().MakeContext());
  EXPECT_EQ(result.outcome, Outcome::kFailed);
  EXPECT_EQ(result.numbers, "line 1");
}

TEST(Report, HasFactsLinesAndSummary) {
  const Check check = {"a", "what", nullptr};
  const Finished passed = {check, {Outcome::kPassed, "1e-9"}}, failed = {check, {Outcome::kFailed, "nan"}},
                 skipped = {check, {Outcome::kSkipped, "no GPU"}};
  EXPECT_EQ(
      Report({{"device", "H100"}}, {passed, skipped}),
      "device: H100\nPASSED   a: what: 1e-9\nSKIPPED  a: what: no GPU\n1 passed, 0 failed, 1 skipped\n");
  EXPECT_EQ(ExitCode({passed, skipped}), 0);
  EXPECT_EQ(ExitCode({passed, failed}), 1);
  EXPECT_EQ(ExitCode({skipped}), 1);  // nothing was checked
}

}  // namespace
}  // namespace plait::gpu_checks
