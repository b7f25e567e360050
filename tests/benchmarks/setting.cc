#include "tests/benchmarks/setting.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tools/gru_training/settings.h"

namespace plait::benchmarks {
namespace {

using gru::CoarseStep;
using mgrit::Options;

absl::Status Unexpected(absl::string_view key, absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("setting: ", key, "=", value, ": expected ", expected));
}

absl::StatusOr<std::vector<int>> Numbers(absl::string_view key, absl::string_view value) {
  std::vector<int> numbers;
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    numbers.emplace_back();
    if (!absl::SimpleAtoi(part, &numbers.back())) return Unexpected(key, value, "integers, such as 8,4");
  }
  return numbers;
}

// The words of a choice of two, the first one first.
template <typename Choice>
absl::Status Choose(absl::string_view key, absl::string_view value, absl::string_view first,
                    Choice first_choice, absl::string_view second, Choice second_choice, Choice& out) {
  if (value != first && value != second) return Unexpected(key, value, absl::StrCat(first, " or ", second));
  out = value == first ? first_choice : second_choice;
  return absl::OkStatus();
}

absl::Status SetStep(absl::string_view key, absl::string_view value, gru::GruStepOptions& step, bool& known) {
  known = true;
  if (key == "hold") {
    PLAIT_ASSIGN_OR_RETURN(step.coarse_hold, Numbers(key, value));
    return absl::OkStatus();
  }
  if (key == "step") {
    return Choose(key, value, "one", CoarseStep::kOneStep, "frozen", CoarseStep::kFrozenGates,
                  step.coarse_step);
  }
  known = false;
  return absl::OkStatus();
}

absl::Status SetNumbers(absl::string_view key, absl::string_view value, mgrit::LayerParallelOptions& solver) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<int> numbers, Numbers(key, value));
  Options& forward = solver.forward;
  Options& backward = solver.backward;
  if (key == "levels") {
    forward.max_levels = backward.max_levels = numbers[0];
  } else if (key == "cfactor") {
    forward.cfactors = backward.cfactors = numbers;
  } else if (key == "iterations") {
    forward.max_iterations = numbers.front();
    backward.max_iterations = numbers.back();
  } else if (key == "sweeps") {
    forward.cf_sweeps = backward.cf_sweeps = numbers;
  } else if (key == "bsweeps") {
    backward.cf_sweeps = numbers;
  } else if (key == "fmg") {
    forward.fmg = backward.fmg = numbers[0] != 0;
  } else if (key == "bfmg") {
    backward.fmg = numbers[0] != 0;
  } else if (key == "skip") {
    forward.skip_downcycle = backward.skip_downcycle = numbers[0] != 0;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("setting: no key ", key));
  }
  return absl::OkStatus();
}

absl::Status Set(absl::string_view part, Setting& setting) {
  const std::pair<absl::string_view, absl::string_view> entry = absl::StrSplit(part, absl::MaxSplits('=', 1));
  bool known = false;
  PLAIT_RETURN_IF_ERROR(SetStep(entry.first, entry.second, setting.step, known));
  return known ? absl::OkStatus() : SetNumbers(entry.first, entry.second, setting.solver);
}

}  // namespace

std::int64_t Evaluations(const Setting& setting, const std::vector<std::int64_t>& steps) {
  std::int64_t evaluations = 0;
  std::int64_t stride = 1;
  for (std::size_t level = 0; level < steps.size(); ++level) {
    evaluations += steps[level] * gru::SubstepsOf(setting.step, static_cast<int>(level), stride);
    stride *= mgrit::AtLevel(setting.solver.forward.cfactors, static_cast<int>(level));
  }
  return evaluations;
}

mgrit::scaling::BatchShape ShapeOf(const Setting& setting, std::int64_t steps, int ranks) {
  const auto evaluations = [step = setting.step](const mgrit::StepInterval& interval) {
    return gru::SubstepsOf(step, interval.level, interval.fine_stop - interval.fine_start);
  };
  return {.solver = setting.solver, .steps = steps, .ranks = ranks, .evaluations = evaluations};
}

Setting PublishedSetting() {
  return {mgrit::MakeLayerParallelOptions(3, 4, 2, 1),
          {.coarse_step = CoarseStep::kOneStep, .coarse_hold = {0}}};
}

absl::StatusOr<Setting> ParseSetting(absl::string_view text) {
  Setting setting = PublishedSetting();
  if (text == "published") return setting;
  if (text == "published-cycle") {
    setting.step = gru_training::GruSettings().StepOptions();
    return setting;
  }
  if (text == "default") {
    const gru_training::GruSettings settings;
    return Setting{settings.lp.Options(), settings.StepOptions()};
  }
  for (const absl::string_view part : absl::StrSplit(text, '/')) PLAIT_RETURN_IF_ERROR(Set(part, setting));
  return setting;
}

std::string TextOf(const mgrit::LayerParallelOptions& solver) {
  const Options& forward = solver.forward;
  const Options& backward = solver.backward;
  std::string text =
      absl::StrCat("levels=", forward.max_levels, "/cfactor=", absl::StrJoin(forward.cfactors, ","),
                   "/iterations=", forward.max_iterations, ",", backward.max_iterations,
                   "/sweeps=", absl::StrJoin(forward.cf_sweeps, ","), "/fmg=", forward.fmg ? 1 : 0);
  if (backward.cf_sweeps != forward.cf_sweeps) {
    absl::StrAppend(&text, "/bsweeps=", absl::StrJoin(backward.cf_sweeps, ","));
  }
  if (backward.fmg != forward.fmg) absl::StrAppend(&text, "/bfmg=", backward.fmg ? 1 : 0);
  absl::StrAppend(&text, "/skip=", forward.skip_downcycle ? 1 : 0);
  return text;
}

std::string TextOf(const Setting& setting) {
  return absl::StrCat(TextOf(setting.solver),
                      "/step=", setting.step.coarse_step == CoarseStep::kOneStep ? "one" : "frozen",
                      "/hold=", absl::StrJoin(setting.step.coarse_hold, ","));
}

}  // namespace plait::benchmarks
