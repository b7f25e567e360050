#include "tools/llama_training/step_output.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

namespace plait::llama_training {
namespace {

using rank_history::RankStatistics;
using text_training::StepNumbers;

std::string Line(const StepNumbers& n) {
  std::string line = absl::StrFormat(
      "iter=%d loss=%.6f dt=%.6f dtf=%.6f dtb=%.6f tps=%.6f", n.report.step - 1, n.report.loss,
      n.report.dt_seconds, n.report.forward_seconds, n.report.backward_seconds, n.tokens_per_second());
  if (!std::isnan(n.mfu_percent)) absl::StrAppendFormat(&line, " mfu=%.6f", n.mfu_percent);
  if (n.losses.has_value()) {
    absl::StrAppendFormat(&line, " train_loss=%.6f val_loss=%.6f", n.losses->train, n.losses->validation);
  }
  return line;
}

std::vector<data::Scalar> ScalarsOf(const StepNumbers& n, bool of_text) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<data::Scalar> scalars = {{"iter", static_cast<double>(n.report.step - 1)},
                                       {"loss", n.report.loss},
                                       {"dt", n.report.dt_seconds},
                                       {"dtf", n.report.forward_seconds},
                                       {"dtb", n.report.backward_seconds},
                                       {"tps", n.tokens_per_second()},
                                       {"tokens", static_cast<double>(n.tokens)},
                                       {"mfu", n.mfu_percent}};
  if (of_text) {
    scalars.push_back({"train_loss", n.losses ? n.losses->train : kNone});
    scalars.push_back({"val_loss", n.losses ? n.losses->validation : kNone});
  }
  return scalars;
}

}  // namespace

text_training::StepOutput LlamaOutput(bool of_text) {
  std::vector<training::Recorded> metrics = {
      {data::Count("iter", "training iteration, from 0; -1: before the first")},
      {{"loss", "1", "cross entropy of the whole batch"}},
      {{"dt", "s", "time per iteration"}, RankStatistics::kEachRank},
      {{"dtf", "s", "forward passes and losses"}, RankStatistics::kEachRank},
      {{"dtb", "s", "backward passes, reductions and optimizer"}, RankStatistics::kEachRank},
      {{"tps", "1/s", "tokens per second of all ranks"}},
      {data::Count("tokens", "tokens of the iteration, of all ranks")},
      {{"mfu", "percent", "model flops utilization"}, RankStatistics::kEachRank}};
  training::HistoryPlots plots = {
      .x = "iter", .skips_nan = true, .plots = {{"iter"}, {"loss"}, {"dt"}, {"dtf"}, {"dtb"}, {"tps"}}};
  if (of_text) {
    metrics.push_back({{"train_loss", "1", "estimate on training text, after the iteration"}});
    metrics.push_back({{"val_loss", "1", "estimate on validation text, after the iteration"}});
    plots.plots[1].metrics = {"loss", "train_loss", "val_loss"};
  }
  return {.metrics = std::move(metrics),
          .plots = std::move(plots),
          .line = Line,
          .scalars = [of_text](const StepNumbers& numbers) { return ScalarsOf(numbers, of_text); }};
}

}  // namespace plait::llama_training
