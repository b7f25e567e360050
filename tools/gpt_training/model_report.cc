#include "tools/gpt_training/model_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace plait::gpt_training {
namespace {

struct Tally {
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;

  std::string Words() const {
    return absl::StrCat(tensors, ", with ", base::FormatCount(parameters), " parameters");
  }
};

}  // namespace

std::vector<std::string> ParameterLines(const models::BlockModel& model, std::int64_t quoted) {
  Tally decayed, others;
  for (const models::ParameterUnit& unit : model.units()) {
    for (const models::ParameterSpec& spec : unit.parameters) {
      if (spec.role == models::ParameterRole::kBuffer) continue;
      Tally& tally = spec.decays ? decayed : others;
      ++tally.tensors;
      tally.parameters += spec.tensor.numel();
    }
  }
  return {absl::StrFormat("number of parameters: %.2fM", static_cast<double>(quoted) / 1e6),
          absl::StrCat("Model size: num_params=", quoted),
          absl::StrCat("num decayed parameter tensors: ", decayed.Words()),
          absl::StrCat("num non-decayed parameter tensors: ", others.Words())};
}

std::string OptimizerText(const parallel::ShardedOptimizerOptions& options) {
  // Muon takes the matrices of blocks out of group 0, with its own momentum and this learning rate.
  std::string text = options.kind == parallel::OptimizerKind::kMuon
                         ? absl::StrFormat("Muon (momentum: %g, lr: %g, weight_decay: %g), AdamW (\n",
                                           options.momentum, options.lr, options.weight_decay)
                         : "AdamW (\n";
  for (const int group : {0, 1}) {
    absl::StrAppendFormat(
        &text,
        "Parameter Group %d\n    betas: (%g, %g)\n    eps: %g\n    fused: True\n    lr: %g\n"
        "    weight_decay: %g\n%s",
        group, options.beta1, options.beta2, options.epsilon, options.lr,
        group == 0 ? options.weight_decay : 0.0, group == 0 ? "\n" : ")");
  }
  return text;
}

}  // namespace plait::gpt_training
