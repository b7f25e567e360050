#include "tools/gpt_training/step_line.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace plait::gpt_training {
namespace {

using rank_history::RankStatistics;
using text_training::StepNumbers;

std::vector<training::Recorded> Metrics() {
  return {{{"loss", "1", "cross entropy of the whole batch"}},
          {{"dt", "s", "time per step"}, RankStatistics::kEachRank},
          {{"dtf", "s", "forward passes and losses"}, RankStatistics::kEachRank},
          {{"dtb", "s", "backward passes, reductions and optimizer"}, RankStatistics::kEachRank},
          {{"dto", "s", "optimizer and what it waits for"}, RankStatistics::kStatistics},
          {{"sps", "1/s", "samples per second of all ranks"}},
          {{"tps", "1/s", "tokens per second of all ranks"}},
          {data::Count("tokens", "tokens of the step, of all ranks")},
          {{"mfu", "percent", "model flops utilization"}, RankStatistics::kEachRank},
          {{"lr", "1", "learning rate"}},
          {{"gradient_norm", "1", "2-norm of all gradients, before clipping"}},
          {{"train_loss", "1", "estimate on training text, after the step"}},
          {{"val_loss", "1", "estimate on validation text, after the step"}},
          {{"dt_eval", "s", "estimates and sample after the step, not in dt"}, RankStatistics::kStatistics}};
}

std::vector<data::Scalar> ScalarsOf(const StepNumbers& n) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return {{"loss", n.report.loss},
          {"dt", n.report.dt_seconds},
          {"dtf", n.report.forward_seconds},
          {"dtb", n.report.backward_seconds},
          {"dto", n.report.optimizer_seconds},
          {"sps", n.samples_per_second()},
          {"tps", n.tokens_per_second()},
          {"tokens", static_cast<double>(n.tokens)},
          {"mfu", n.mfu_percent},
          {"lr", n.report.learning_rate},
          {"gradient_norm", n.report.gradient_norm},
          {"train_loss", n.losses ? n.losses->train : kNone},
          {"val_loss", n.losses ? n.losses->validation : kNone},
          {"dt_eval", n.evaluation_seconds}};
}

training::HistoryPlots Plots() {
  return {.x = "step",
          .skips_nan = true,
          .plots = {{"dt"},
                    {"dtf"},
                    {"dtb"},
                    {"sps"},
                    {"tps"},
                    {.name = "loss", .metrics = {"loss", "train_loss", "val_loss"}}}};
}

constexpr char kLegend[] = R"(                                Training Legend                                 
┏━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃     abbr     ┃ desc                                                          ┃
┡━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│     step     │ Current training iteration                                    │
│     loss     │ Loss value                                                    │
│      dt      │ Elapsed time per training step, seconds                       │
│     dtf      │ Elapsed time per forward step                                 │
│     dtb      │ Elapsed time per backward step, with reductions and optimizer │
│     sps      │ Samples per second                                            │
│ sps_per_rank │ Samples per second (per rank)                                 │
│     tps      │ Tokens per second                                             │
│ tps_per_rank │ Tokens per second (per rank)                                  │
│     mfu      │ Model flops utilization, percent                              │
│  train_loss  │ Training loss value, estimated after this step                │
│   val_loss   │ Validation loss value, estimated after this step              │
└──────────────┴───────────────────────────────────────────────────────────────┘
)";

}  // namespace

std::string StepLine(const StepNumbers& s) {
  const double ranks = s.ranks;
  std::string line = absl::StrFormat(
      "step=%d loss=%.6f dt=%.6f dtf=%.6f dtb=%.6f sps=%.6f sps_per_rank=%.6f tps=%.6f tps_per_rank=%.6f",
      s.report.step, s.report.loss, s.report.dt_seconds, s.report.forward_seconds, s.report.backward_seconds,
      s.samples_per_second(), s.samples_per_second() / ranks, s.tokens_per_second(),
      s.tokens_per_second() / ranks);
  if (!std::isnan(s.mfu_percent)) absl::StrAppendFormat(&line, " mfu=%.6f", s.mfu_percent);
  if (s.losses.has_value()) {
    absl::StrAppendFormat(&line, " train_loss=%.6f val_loss=%.6f", s.losses->train, s.losses->validation);
  }
  return line;
}

text_training::StepOutput GptOutput() {
  return {.metrics = Metrics(), .plots = Plots(), .line = StepLine, .scalars = ScalarsOf};
}

std::string TrainingLegend(bool utf8, bool with_mfu) {
  std::string table = kLegend;
  if (!with_mfu) {
    const std::size_t row = table.find("│     mfu");
    table.erase(row, table.find('\n', row) + 1 - row);
  }
  if (utf8) return table;
  for (const char* corner : {"┏", "┳", "┓", "┡", "╇", "┩", "└", "┴", "┘"}) {
    table = absl::StrReplaceAll(table, {{corner, "+"}});
  }
  return absl::StrReplaceAll(table, {{"━", "-"}, {"─", "-"}, {"┃", "|"}, {"│", "|"}});
}

}  // namespace plait::gpt_training
