#include "tools/gpt_training/step_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::gpt_training {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

Rows LegendRows(bool with_mfu) {
  Rows rows = {{"step", "Current training iteration"},
               {"loss", "Loss value"},
               {"dt", "Elapsed time per training step, seconds"},
               {"dtf", "Elapsed time per forward step"},
               {"dtb", "Elapsed time per backward step, with reductions and optimizer"},
               {"sps", "Samples per second"},
               {"sps_per_rank", "Samples per second (per rank)"},
               {"tps", "Tokens per second"},
               {"tps_per_rank", "Tokens per second (per rank)"}};
  if (with_mfu) rows.emplace_back("mfu", "Model flops utilization, percent");
  rows.emplace_back("train_loss", "Training loss value, estimated after this step");
  rows.emplace_back("val_loss", "Validation loss value, estimated after this step");
  return rows;
}

std::string Repeated(const std::string& text, std::size_t count) {
  std::string result;
  for (std::size_t k = 0; k < count; ++k) result += text;
  return result;
}

std::string Centred(const std::string& text, std::size_t width) {
  const std::size_t left = (width - text.size()) / 2;
  return std::string(left, ' ') + text + std::string(width - text.size() - left, ' ');
}

// A rule of a table of two columns: its ends, its crossing, and what it is drawn with.
std::string Rule(const std::array<const char*, 4>& signs, std::size_t first, std::size_t second) {
  return absl::StrCat(signs[0], Repeated(signs[3], first + 2), signs[1], Repeated(signs[3], second + 2),
                      signs[2], "\n");
}

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

std::string TrainingLegend(bool utf8, bool with_mfu) {
  const Rows rows = LegendRows(with_mfu);
  std::size_t first = 0, second = 0;
  for (const auto& [word, meaning] : rows) {
    first = std::max(first, word.size());
    second = std::max(second, meaning.size());
  }
  const char* heavy = utf8 ? "┃" : "|";
  const char* light = utf8 ? "│" : "|";
  using Signs = std::array<const char*, 4>;
  std::string table = Centred("Training Legend", first + second + 7) + "\n";
  table += Rule(utf8 ? Signs{"┏", "┳", "┓", "━"} : Signs{"+", "+", "+", "-"}, first, second);
  absl::StrAppendFormat(&table, "%s %s %s %-*s %s\n", heavy, Centred("abbr", first), heavy,
                        static_cast<int>(second), "desc", heavy);
  table += Rule(utf8 ? Signs{"┡", "╇", "┩", "━"} : Signs{"+", "+", "+", "-"}, first, second);
  for (const auto& [word, meaning] : rows) {
    absl::StrAppendFormat(&table, "%s %s %s %-*s %s\n", light, Centred(word, first), light,
                          static_cast<int>(second), meaning, light);
  }
  return table + Rule(utf8 ? Signs{"└", "┴", "┘", "─"} : Signs{"+", "+", "+", "-"}, first, second);
}

}  // namespace plait::gpt_training
