#include "tools/gpt_training/step_line.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace plait::gpt_training {
namespace {

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
