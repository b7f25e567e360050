#include "tools/training/optimizer_settings.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "tools/training/settings.h"

namespace plait::training {

void OptimizerSettings::Bind(SettingsTable& table) {
  table.Group("Optimizer");
  table.Add(learning_rate_flag, &learning_rate, "maximum learning rate", OnResume::kAdopt);
  table.Add(
      "optimizer", &optimizer,
      "adamw; or muon: steps of orthogonalized momentum for the matrices of blocks, of the size that AdamW's "
      "would have, and AdamW for all others",
      OnResume::kSame);
  table.Add("muon_momentum", &muon_momentum, "muon's decay of the mean of gradients", OnResume::kSame);
  table.Add("warmup_iters", &warmup_iters, "steps of linear warm-up", OnResume::kAdopt);
  table.Add("lr_schedule", &lr_schedule,
            "learning rate after warm-up: cosine or linear decay, or wsd: constant, then a decay of 1 - sqrt",
            OnResume::kAdopt);
  table.Add("lr_decay_iters", &lr_decay_iters, "step at which the decay ends; 0: constant after warm-up",
            OnResume::kAdopt);
  table.Add("lr_decay_fraction", &lr_decay_fraction,
            "wsd: fraction of --lr-decay-iters, at its end, that decays", OnResume::kAdopt);
  table.Add("min_lr", &min_lr, "learning rate from --lr-decay-iters on", OnResume::kAdopt);
  table.Add("decay_lr", &decay_lr, "warm-up and decay; without, the learning rate is constant",
            OnResume::kAdopt);
  table.Add("weight_decay", &weight_decay, "decoupled weight decay of matrices and embeddings",
            OnResume::kSame);
  table.Add("beta1", &beta1, "AdamW's decay of the mean of gradients", OnResume::kSame);
  table.Add("beta2", &beta2, "AdamW's decay of the mean of their squares", OnResume::kSame);
  table.Add("grad_clip", &grad_clip, "maximum global norm of the gradients; 0: no clipping", OnResume::kSame);
}

absl::Status OptimizerSettings::ChooseDefaults(SettingsTable& table) {
  const auto given = [&](std::vector<std::string> names) {
    std::erase_if(names, [&](const std::string& name) { return !table.Given(name); });
    return names.empty() ? "" : names[0];
  };
  if (!given({"warmup_iters", "lr_schedule", "lr_decay_iters", "lr_decay_fraction", "min_lr"}).empty()) {
    PLAIT_RETURN_IF_ERROR(table.SetImplied("decay_lr", "true"));
  }
  decay_iters_given = table.Given("lr_decay_iters");
  given_of_decay = given({"lr_schedule", "lr_decay_fraction", "min_lr"});
  return absl::OkStatus();
}

absl::Status OptimizerSettings::CheckGiven(const SettingsTable& table) const {
  if (!is_muon()) PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("muon_momentum", "--optimizer=muon"));
  if (lr_schedule != "wsd") {
    PLAIT_RETURN_IF_ERROR(table.CheckNoneGiven("lr_decay_fraction", "--lr-schedule=wsd"));
  }
  return absl::OkStatus();
}

absl::Status OptimizerSettings::CheckPlaces(const std::vector<comm::MeshAxis>& axes,
                                            const std::string& offload) const {
  if (!is_muon()) return absl::OkStatus();
  if (const int tp = RanksAlong(axes, "tp"); tp > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--optimizer=muon: not with tp=", tp,
                     " in --mesh, where a rank has parts of matrices; expected other axes, or adamw"));
  }
  if (offload == "none") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--optimizer=muon: not with --offload=", offload, "; expected none, or adamw"));
}

absl::Status OptimizerSettings::Check() const {
  const std::string rate_flag = absl::StrReplaceAll(learning_rate_flag, {{"_", "-"}});
  PLAIT_RETURN_IF_ERROR(Positive(rate_flag.c_str(), learning_rate));
  PLAIT_RETURN_IF_ERROR(AtLeast("min-lr", min_lr, 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("warmup-iters", static_cast<double>(warmup_iters), 0));
  PLAIT_RETURN_IF_ERROR(AtLeast("lr-decay-iters", static_cast<double>(lr_decay_iters), 0));
  PLAIT_RETURN_IF_ERROR(OneOf("lr-schedule", lr_schedule, {"cosine", "linear", "wsd"}));
  PLAIT_RETURN_IF_ERROR(Between("lr-decay-fraction", lr_decay_fraction, 0, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("weight-decay", weight_decay, 0));
  PLAIT_RETURN_IF_ERROR(OneOf("optimizer", optimizer, {"adamw", "muon"}));
  PLAIT_RETURN_IF_ERROR(Fraction("muon-momentum", muon_momentum));
  PLAIT_RETURN_IF_ERROR(Fraction("beta1", beta1));
  PLAIT_RETURN_IF_ERROR(Fraction("beta2", beta2));
  PLAIT_RETURN_IF_ERROR(AtLeast("grad-clip", grad_clip, 0));
  if (!given_of_decay.empty() && decay_lr && lr_decay_iters == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", absl::StrReplaceAll(given_of_decay, {{"_", "-"}}),
                     ": the learning rate does not decay; expected --lr-decay-iters=N"));
  }
  if (decay_iters_given && decay_lr && lr_decay_iters > 0 && lr_decay_iters < warmup_iters) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--lr-decay-iters=", lr_decay_iters, ": the learning rate rises for --warmup-iters=", warmup_iters,
        " steps; expected at least as many, or a shorter warm-up"));
  }
  if (min_lr <= learning_rate) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--min-lr=", min_lr, ": must be at most --", rate_flag, "=", learning_rate));
}

parallel::LrSchedule OptimizerSettings::Schedule() const {
  const bool decays = lr_decay_iters > 0;
  if (!decay_lr || (!decays && warmup_iters == 0)) return parallel::LrSchedule::Constant(learning_rate);
  const std::int64_t end = std::max(lr_decay_iters, warmup_iters);
  parallel::WarmupDecayOptions options = {.lr = learning_rate,
                                          .warmup_steps = warmup_iters,
                                          .decay_steps = end,
                                          // A decay to the maximum is none.
                                          .min_lr = decays ? min_lr : learning_rate};
  if (lr_schedule == "linear") options.decay = parallel::LrDecay::kLinear;
  if (lr_schedule == "wsd") {
    options.decay = parallel::LrDecay::kSqrt;
    options.stable_steps = end - std::llround(lr_decay_fraction * static_cast<double>(end));
  }
  return parallel::LrSchedule::WarmupDecay(options);
}

parallel::ShardedOptimizerOptions OptimizerSettings::Options() const {
  return {.kind = is_muon() ? parallel::OptimizerKind::kMuon : parallel::OptimizerKind::kAdamW,
          .lr = learning_rate,
          .beta1 = beta1,
          .beta2 = beta2,
          .momentum = is_muon() ? muon_momentum : 0,
          .weight_decay = weight_decay};
}

}  // namespace plait::training
