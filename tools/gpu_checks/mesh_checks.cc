// Meshes of several ranks on GPUs, each with a communicator of NCCL, against one rank on CPU.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/gpu_checks/check.h"
#include "tools/gpu_checks/program_runs.h"

namespace plait::gpu_checks {
namespace {

struct MeshCase {
  std::string model;  // a key of Models()
  int ranks;
  std::vector<std::string> flags;
};

struct Model {
  std::string program;
  std::vector<std::string> flags;  // of every run, that of one rank too
};

// Four blocks and heads: enough for each mesh. Dropout's masks do not depend on devices and meshes.
std::map<std::string, Model> Models(const Context& context) {
  const std::vector<std::string> gpt = {"--data=" + TextFile(context),
                                        "--n-layer=4",
                                        "--n-head=4",
                                        "--n-embd=32",
                                        "--block-size=16",
                                        "--global-batch-size=8",
                                        "--gradient-accumulation-steps=2",
                                        "--dropout=0.1",
                                        "--max-iters=3",
                                        "--log-interval=1",
                                        "--eval-interval=3",
                                        "--eval-iters=2",
                                        "--sample-tokens=0"};
  std::vector<std::string> moe = gpt;
  moe.insert(moe.end(), {"--moe", "--moe-experts=4", "--moe-hidden=24"});
  return {
      {"gpt", {"train_gpt", gpt}},
      {"experts", {"train_gpt", moe}},
      {"llama",
       {"train_llama",
        {"--n-layers=4", "--dim=32", "--n-heads=4", "--n-kv-heads=2", "--hidden=48", "--vocab-size=60",
         "--seq-length=16", "--global-batch-size=8", "--gradient-accumulation-steps=2", "--max-iters=3"}}},
      // As many iterations as there are C-points: the solver is exact then.
      {"gru",
       {"train_gru",
        {"--epochs=1", "--percent-data=0.01", "--batch-size=20", "--log-interval=1", "--force-lp",
         "--lp-levels=2", "--lp-cfactor=16", "--lp-fwd-iters=9", "--lp-iters=9"}}}};
}

std::vector<MeshCase> Cases() {
  return {{"gpt", 2, {"--strategy=ddp"}},
          {"gpt", 2, {"--strategy=zero2"}},
          {"gpt", 2, {"--strategy=fsdp"}},
          {"gpt", 2, {"--mesh=tp=2", "--sequence-parallel"}},
          {"gpt", 2, {"--mesh=pp=2", "--pipeline-schedule=1f1b"}},
          {"gpt", 2, {"--mesh=pp=2", "--pipeline-schedule=zb-h1"}},
          {"gpt", 2, {"--mesh=cp=2"}},
          {"gpt", 2, {"--mesh=cp=2", "--context-attention=ulysses"}},
          {"gpt", 2, {"--mesh=lp=2", "--lp-levels=2", "--lp-cfactor=2", "--lp-fwd-iters=3", "--lp-iters=3"}},
          {"experts", 2, {"--mesh=dp_shard=2,ep=2", "--strategy=fsdp"}},
          {"llama", 2, {"--mesh=tp=2", "--sequence-parallel"}},
          {"llama", 4, {"--mesh=dp_shard=2,cp=2", "--strategy=fsdp"}},
          {"gpt", 4, {"--mesh=dp_replicate=2,dp_shard=2", "--strategy=zero1"}},
          {"gpt", 4, {"--mesh=dp_replicate=2,dp_shard=2", "--strategy=fsdp"}},
          {"gpt", 4, {"--mesh=pp=2,tp=2"}},
          {"gru", 2, {"--mesh=lp=2"}}};
}

ProgramRun RunModel(const Context& context, const Model& model, const std::string& name,
                    std::vector<std::string> command, const std::vector<std::string>& flags) {
  command.insert(command.end(),
                 {PathOf(context, model.program), "--dtype=float64", "--no-plots", "--no-trace",
                  absl::StrCat("--outputs=", context.programs.scratch, "/", name)});
  command.insert(command.end(), model.flags.begin(), model.flags.end());
  command.insert(command.end(), flags.begin(), flags.end());
  return context.programs.run(command);
}

}  // namespace

Result CheckMeshes(const Context& context) {
  if (const std::string obstacle = ObstacleToRanks(context, 4); !obstacle.empty()) return Skipped(obstacle);
  const std::map<std::string, Model> models = Models(context);
  std::map<std::string, std::vector<double>> expected;
  for (const auto& [name, model] : models) {
    if (!Has(context, model.program)) return Missing(context, model.program);
    const ProgramRun run = RunModel(context, model, name, {}, {"--nproc=1", "--device=cpu"});
    expected[name] = TrainerLosses(run.output);
    if (run.code != 0 || expected[name].empty()) return Failed(run);
  }
  double worst = 0;
  std::vector<std::string> failures;
  const std::vector<MeshCase> cases = Cases();
  for (const MeshCase& mesh : cases) {
    const std::string name = absl::StrCat(mesh.model, " ", absl::StrJoin(mesh.flags, " "));
    std::vector<std::string> flags = mesh.flags;
    flags.push_back("--device=cuda");
    const ProgramRun run =
        RunModel(context, models.at(mesh.model), absl::StrCat("mesh", &mesh - cases.data()),
                 CommandOfRanks(context, mesh.ranks), flags);
    const double error = LossError(TrainerLosses(run.output), expected[mesh.model]);
    if (run.code != 0 || !absl::StrContains(run.output, "DEVICE=cuda")) {
      failures.push_back(absl::StrCat(name, ": ", Failed(run).numbers));
    } else if (!(error <= kTrainerTolerance)) {
      failures.push_back(absl::StrCat(name, ": error ", error));
    } else {
      worst = std::max(worst, error);
    }
  }
  Result result = Compared(worst, kTrainerTolerance);
  absl::StrAppend(&result.numbers, " (relative, of ", cases.size() - failures.size(), " meshes)");
  if (failures.empty()) return result;
  return {Outcome::kFailed, absl::StrCat(absl::StrJoin(failures, "; "), "; the others: ", result.numbers)};
}

}  // namespace plait::gpu_checks
