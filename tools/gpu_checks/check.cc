#include "tools/gpu_checks/check.h"

#include <algorithm>
#include <exception>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace plait::gpu_checks {
namespace {

const char* NameOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "PASSED";
    case Outcome::kSkipped:
      return "SKIPPED";
    case Outcome::kFailed:
      break;
  }
  return "FAILED";
}

int Count(const std::vector<Finished>& finished, Outcome outcome) {
  return static_cast<int>(std::count_if(finished.begin(), finished.end(),
                                        [&](const Finished& f) { return f.result.outcome == outcome; }));
}

}  // namespace

std::vector<Check> AllChecks() {
  const auto trainer = [](const std::string& program) {
    return Check{program, "steps and test on one GPU against the losses on CPU, in float64",
                 [program](const Context& context) { return CheckTrainer(context, program); }};
  };
  return {
      {"nccl", "conformance suite of communicators on device memory", CheckNccl},
      {"gru_cell", "GRU cell on the device against float64 on the host", CheckGruCell},
      {"layer_parallel", "MGRIT forward and backward on the device against autograd on the host",
       CheckLayerParallel},
      {"cross_entropy", "loss and gradient on the device against float64 on the host", CheckCrossEntropy},
      {"test_dist", "every strategy on one GPU against the losses on CPU", CheckTestDist},
      {"test_dist_ranks", "one rank per GPU: parameters bitwise identical", CheckTestDistRanks},
      trainer("train_gpt"),
      trainer("train_llama"),
      trainer("train_vit"),
      trainer("train_cnn"),
      trainer("train_gru"),
      trainer("train_odenet"),
      {"meshes", "steps of several ranks on GPUs against the losses of one on CPU, in float64", CheckMeshes},
      {"doctor", "no ERROR", CheckDoctor}};
}

absl::StatusOr<std::vector<Check>> Select(std::vector<Check> checks, absl::string_view names) {
  if (names.empty()) return checks;
  std::vector<Check> selected;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    const auto found =
        std::find_if(checks.begin(), checks.end(), [&](const Check& c) { return c.name == name; });
    if (found == checks.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--checks: no check \"", name, "\"; expected some of ",
          absl::StrJoin(checks, ",", [](std::string* out, const Check& c) { out->append(c.name); })));
    }
    selected.push_back(*found);
  }
  return selected;
}

Result RunCheck(const Check& check, const Context& context) {
  try {
    return check.run(context);
  } catch (const std::exception& error) {
    // c10::Error appends a backtrace.
    const std::vector<std::string> lines = absl::StrSplit(error.what(), absl::MaxSplits('\n', 1));
    return {Outcome::kFailed, lines[0]};
  }
}

std::string Line(const Check& check, const Result& result) {
  return absl::StrFormat("%-8s %s: %s: %s", NameOf(result.outcome), check.name, check.what, result.numbers);
}

std::string Report(const std::vector<std::pair<std::string, std::string>>& facts,
                   const std::vector<Finished>& finished) {
  std::string text;
  for (const auto& [name, value] : facts) absl::StrAppend(&text, name, ": ", value, "\n");
  for (const Finished& f : finished) absl::StrAppend(&text, Line(f.check, f.result), "\n");
  return absl::StrCat(text, Summary(finished), "\n");
}

std::string Summary(const std::vector<Finished>& finished) {
  return absl::StrCat(Count(finished, Outcome::kPassed), " passed, ", Count(finished, Outcome::kFailed),
                      " failed, ", Count(finished, Outcome::kSkipped), " skipped");
}

int ExitCode(const std::vector<Finished>& finished) {
  return Count(finished, Outcome::kFailed) == 0 && Count(finished, Outcome::kPassed) > 0 ? 0 : 1;
}

Result Compared(double error, double tolerance) {
  return {error <= tolerance ? Outcome::kPassed : Outcome::kFailed,
          absl::StrFormat("largest error %.2g, tolerance %.2g", error, tolerance)};
}

}  // namespace plait::gpu_checks
